"""Malicious requests: harmful bodies and foreign origins."""

from __future__ import annotations

import gzip
import json
import logging
import stat
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import APIServer, ResourceType
from aioinformer.testing.objects import LARGEST_BODY

from .client import JSON_PATCH, MERGE, STRATEGIC, APIClient

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ONE = f"{CONFIGMAPS}/one"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/one/token"
SCALE = "/apis/apps/v1/namespaces/default/deployments/one/scale"
JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"

HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"


def aliases_of_aliases(levels: int, head: str = "a0: &a0 [x,x,x,x,x,x,x,x,x]") -> bytes:
    lines = [head, *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels))]
    return HEAD + "\n".join(lines).encode()


def merges_of_merges(levels: int) -> bytes:
    lines = [
        "a0: &a0 {x: y}",
        *(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, levels)),
    ]
    return HEAD + "\n".join(lines).encode()


@pytest.fixture(autouse=True)
def no_tracebacks(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (aliases_of_aliases(12), "document contains excessive aliasing"),
        (aliases_of_aliases(2000), "document contains excessive aliasing"),
        (merges_of_merges(12), "document contains excessive aliasing"),
        (HEAD + b"data: &a {b: *a}", "anchor value contains itself"),
        (HEAD + b"data: &a [*a]", "anchor value contains itself"),
        (HEAD + b"data: " + b"[" * 3000 + b"]" * 3000, "nested too deep"),
        (HEAD + b"data: " + b"9" * 5000, "error decoding YAML"),
        (HEAD + b"data: !!timestamp 2024-99-99", "error decoding YAML"),
        (HEAD + b"? null\n: x", "error decoding YAML"),
    ],
    ids=[
        "aliases of aliases",
        "many levels of them",
        "merges of merges",
        "a map in itself",
        "a list in itself",
        "deep",
        "digits",
        "no time",
        "a key that is no text",
    ],
)
@pytest.mark.parametrize("how", ["create", "apply"])
async def test_yaml_that_explodes_is_a_bad_request(
    server: APIServer, api: APIClient, body: bytes, said: str, how: str
) -> None:
    if how == "create":
        answer = await api.ask("POST", CONFIGMAPS, body, content_type=YAML)
    else:
        answer = await api.patch(ONE, body, APPLY, fieldManager="m")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert said in answer.body["message"]
    assert server.list("v1", "configmaps") == []


async def test_ordinary_yaml_aliases_are_expanded(server: APIServer, api: APIClient) -> None:
    metadata = b"metadata: {name: one, labels: &a {x: 'y'}, annotations: *a}"
    body = b"apiVersion: v1\nkind: ConfigMap\n" + metadata + b"\ndata: {<<: *a, w: 'v'}"
    assert (await api.ask("POST", CONFIGMAPS, body, content_type=YAML)).status == 201
    made = server.get("v1", "configmaps", "one")
    assert made["metadata"]["labels"] == made["metadata"]["annotations"] == {"x": "y"}
    assert made["data"] == {"x": "y", "w": "v"}


DEEP = b'{"metadata":{"name":"one"},"data":%s1%s}' % (b'{"a":' * 20_000, b"}" * 20_000)
DEEPER = [
    {"op": "add", "path": "/x", "value": {}},
    *({"op": "copy", "from": "/x", "path": "/x" * (2**n + 1)} for n in range(12)),
]
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("method", "path", "kind", "body"),
    [
        ("POST", CONFIGMAPS, "application/json", DEEP),
        ("PUT", ONE, "application/json", DEEP),
        ("PATCH", ONE, MERGE, DEEP),
        ("PATCH", ONE, STRATEGIC, DEEP),
        ("PATCH", ONE, APPLY, DEEP),
        ("PATCH", ONE, JSON_PATCH, b'[{"op":"add","path":"/x","value":%s}]' % DEEP),
        ("PATCH", ONE, JSON_PATCH, json.dumps(DEEPER).encode()),
        ("DELETE", ONE, "application/json", DEEP),
        ("POST", f"{PODS}/one/eviction", "application/json", DEEP),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/one/scale", "application/json", DEEP),
    ],
    ids=[
        "create",
        "update",
        "merge patch",
        "strategic patch",
        "apply",
        "JSON patch",
        "copies",
        "delete",
        "eviction",
        "scale",
    ],
)
async def test_deeply_nested_body_is_a_bad_request(
    server: APIServer, api: APIClient, method: str, path: str, kind: str, body: bytes
) -> None:
    server.create("v1", "configmaps", {"metadata": {"name": "one"}, "data": {"a": "b"}})
    server.create("apps/v1", "deployments", {"metadata": {"name": "one"}, "spec": {"replicas": 1}})
    before = server.list("v1", "configmaps")
    answer = await api.ask(method, path, body, content_type=kind, query={"fieldManager": "m"})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert "nested too deep" in answer.body["message"]
    assert server.list("v1", "configmaps") == before
    assert (await api.get(ONE)).status == 200


async def test_a_json_patch_copies_no_more_than_the_largest_request(
    server: APIServer, api: APIClient
) -> None:
    server.register(ResourceType("example.com", "v1", "caves", "Cave"))
    server.create("example.com/v1", "caves", {"metadata": {"name": "one"}, "x": ["y" * 50]})
    cave = "/apis/example.com/v1/namespaces/default/caves/one"
    double = {"op": "copy", "from": "/x", "path": "/x/-"}
    assert (await api.patch(cave, [double] * 3, JSON_PATCH)).status == 200
    before = server.get("example.com/v1", "caves", "one")
    answer = await api.patch(cave, [double] * 60, JSON_PATCH)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert server.get("example.com/v1", "caves", "one") == before
    assert len(json.dumps(before)) < LARGEST_BODY
    # A copy that a patch takes away again counts all the same.
    big = {"op": "add", "path": "/big", "value": "z" * 1_000_000}
    spent = [{"op": "copy", "from": "/big", "path": "/again"}, {"op": "remove", "path": "/again"}]
    assert (await api.patch(cave, [big, *spent * 3], JSON_PATCH)).status == 200
    assert (await api.patch(cave, [big, *spent * 4], JSON_PATCH)).status == 422


async def test_a_json_patch_has_no_more_than_10000_operations(server: APIServer, api: APIClient) -> None:
    server.create("v1", "configmaps", {"metadata": {"name": "one"}})
    add = {"op": "add", "path": "/x", "value": 1}
    assert (await api.patch(ONE, [add] * 10_000, JSON_PATCH)).status == 200
    answer = await api.patch(ONE, [add] * 10_001, JSON_PATCH)
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    assert answer.body["message"].endswith("a JSON patch is 10000, got 10001")


async def test_compressed_body_is_not_inflated(api: APIClient) -> None:
    body = gzip.compress(b'{"metadata":{"name":"one"},"data":{"k":"%s"}}' % (b"x" * 1_000_000))
    answer = await api.ask("POST", CONFIGMAPS, body, headers={"Content-Encoding": "gzip"})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


OWN = ["localhost", "LOCALHOST:8001", "127.0.0.1", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::1]:6443"]
OTHERS = ["evil.example", "evil.example:8001", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"]


@pytest.mark.parametrize("host", OWN)
async def test_loopback_host_and_origin_are_accepted(api: APIClient, host: str) -> None:
    assert (await api.get("/version", {"Host": host})).status == 200
    assert (await api.get("/version", {"Origin": f"http://{host}"})).status == 200


@pytest.mark.parametrize(
    ("header", "value"),
    [
        *(("Host", host) for host in [*OTHERS, "", "[", "127.0.0.1@evil.example"]),
        *(("Origin", f"http://{host}") for host in OTHERS),
        ("Origin", "null"),
        ("Origin", "file://"),
        ("Origin", "http://["),
    ],
)
async def test_foreign_host_or_origin_gets_403(
    server: APIServer, api: APIClient, header: str, value: str
) -> None:
    """Through a host name that resolves to loopback (DNS rebinding), or a cross-origin request."""
    server.create("v1", "secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    read = await api.get("/api/v1/secrets", {header: value})
    assert (read.status, read.body["reason"]) == (403, "Forbidden")
    assert header in read.body["message"]
    for sent in ({"Content-Type": "text/plain"}, {"Content-Type": ""}):
        body = b'{"metadata":{"name":"one"}}'
        assert (await api.ask("POST", CONFIGMAPS, body, headers={**sent, header: value})).status == 403
    assert server.list("v1", "configmaps") == []
    assert not server.requests


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/octet-stream", "multipart/form-data", "text/html"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", CONFIGMAPS), ("PUT", ONE), ("DELETE", ONE), ("PATCH", ONE), ("POST", f"{PODS}/one/eviction")],
)
async def test_body_of_an_unknown_media_type_is_refused(
    server: APIServer, api: APIClient, kind: str, method: str, path: str
) -> None:
    server.create("v1", "configmaps", {"metadata": {"name": "one"}})
    server.create("v1", "pods", {"metadata": {"name": "one"}, "spec": {}})
    answer = await api.ask(method, path, {"metadata": {"name": "one"}}, content_type=kind)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
    assert len(server.list("v1", "pods")) == len(server.list("v1", "configmaps")) == 1


@pytest.mark.parametrize(
    ("method", "path", "content_type", "obj", "why"),
    [
        ("POST", f"{PODS}/one/binding", JSON, {"target": 5}, "number into Go struct field Binding.target of"),
        (
            "POST",
            f"{PODS}/one/binding",
            JSON,
            {"metadata": {"finalizers": 5}},
            "ObjectMeta.metadata.finalizers",
        ),
        ("POST", f"{PODS}/one/eviction", JSON, {"deleteOptions": 5}, "Eviction.deleteOptions of"),
        ("POST", TOKEN, JSON, {"spec": 5}, "TokenRequest.spec of type v1.TokenRequestSpec"),
        ("POST", TOKEN, JSON, {"spec": {"boundObjectRef": {"kind": 5}}}, "spec.boundObjectRef.kind of"),
        ("POST", TOKEN, JSON, {"spec": {"audiences": [5]}}, "TokenRequestSpec.spec.audiences of"),
        ("PUT", SCALE, JSON, {"spec": 5}, "Scale.spec of type v1.ScaleSpec"),
        (
            "PUT",
            SCALE,
            JSON,
            {"spec": {"replicas": 1.5}},
            "number 1.5 into Go struct field ScaleSpec.spec.replicas",
        ),
        ("PATCH", SCALE, MERGE, {"spec": 5}, "Scale.spec of type v1.ScaleSpec"),
        (
            "DELETE",
            ONE,
            JSON,
            {"preconditions": {"uid": 5}},
            "Preconditions.preconditions.uid of type types.UID",
        ),
        ("DELETE", ONE, JSON, [], "couldn't get version/kind"),
        ("POST", TOKEN, JSON, [], "the object provided is unrecognized (must be of type TokenRequest)"),
    ],
)
async def test_values_of_another_type_in_objects_that_are_not_stored_are_refused(
    server: APIServer, api: APIClient, method: str, path: str, content_type: str, obj: Any, why: str
) -> None:
    for api_version, plural in (("v1", "pods"), ("v1", "configmaps"), ("v1", "serviceaccounts")):
        server.create(api_version, plural, {"metadata": {"name": "one"}})
    server.create("apps/v1", "deployments", {"metadata": {"name": "one"}, "spec": {"replicas": 1}})
    answer = await api.ask(method, path, obj, content_type=content_type)
    assert answer.status == (422 if method == "PATCH" else 400)
    assert why in answer.body["message"]


@pytest.mark.parametrize("kind", [None, ""])
async def test_body_without_content_type_is_json(server: APIServer, api: APIClient, kind: str | None) -> None:
    async with api.session.post(
        api.url + CONFIGMAPS,
        data=b'{"metadata":{"name":"one"}}',
        headers={} if kind is None else {"Content-Type": kind},
        skip_auto_headers=["Content-Type"],
    ) as response:
        assert response.status == 201


def test_only_the_owner_can_read_an_overwritten_kubeconfig(tmp_path: Path) -> None:
    server = APIServer(port=1, token="secret")
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("x" * 10_000)
    there.chmod(0o644)
    for path in (there, new):
        assert json.loads(json.dumps(server.kubeconfig(path))) == json.loads(path.read_text())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server.kubeconfig("/dev/null")  # which stays everybody's
    assert stat.S_IMODE(Path("/dev/null").stat().st_mode) == 0o666


async def test_thousands_of_owners_are_compared_quickly(server: APIServer, api: APIClient) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}
    owners = [{**owner, "uid": str(n % 20_000)} for n in range(25_000)]
    obj = {"metadata": {"name": "one", "ownerReferences": owners, "finalizers": ["example.com/x"]}}
    answer = await api.post(CONFIGMAPS, obj)
    assert answer.status == 201
    assert answer.body["metadata"]["ownerReferences"] == owners[:20_000]
