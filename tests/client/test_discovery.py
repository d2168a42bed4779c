"""Finding a resource by its name."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from aioinformer import ApiError, Client, ConfigError, SyncTimeout, TransportError
from aioinformer.cli.watching import Watching, watch_resource
from aioinformer.client.discovery import find_resource
from aioinformer.errors import DecodeError
from aioinformer.testing import APIServer, ResourceType
from tests.client.transports import Server

GROUP = "gateway.example.com"


def make_watching(resource: str, timeout: float) -> Watching:
    return Watching(resource, None, True, None, None, "jsonl", False, False, True, timeout)


@pytest.fixture
def gateways(server: APIServer) -> None:
    """The preferred version of a group lacks a resource of its other version."""
    for version, plural, kind in (
        ("v1", "gateways", "Gateway"),
        ("v1alpha2", "gateways", "Gateway"),
        ("v1alpha2", "tcproutes", "TCPRoute"),
    ):
        server.register(ResourceType(GROUP, version, plural, kind))


@pytest.mark.usefixtures("gateways")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gateways", "v1 gateways"),
        (f"gateways.{GROUP}", "v1 gateways"),
        (f"gateways.v1alpha2.{GROUP}", "v1alpha2 gateways"),
        ("tcproutes", "v1alpha2 tcproutes"),
        ("TCPRoute", "v1alpha2 tcproutes"),
        (f"tcproutes.{GROUP}", "v1alpha2 tcproutes"),
        (f"tcproutes.v1alpha2.{GROUP}", "v1alpha2 tcproutes"),
    ],
)
async def test_preferred_version_of_a_group_comes_first(client: Client, name: str, expected: str) -> None:
    resource = await find_resource(client, name)
    assert f"{resource.api_version} {resource.plural}" == f"{GROUP}/{expected}"


@pytest.mark.usefixtures("gateways")
async def test_a_version_that_lacks_a_resource(client: Client) -> None:
    with pytest.raises(ConfigError, match=f"has no resource 'tcproutes.v1.{GROUP}'"):
        await find_resource(client, f"tcproutes.v1.{GROUP}")


BUILT_IN = [
    ("pods", "v1 pods", True),
    ("po", "v1 pods", True),
    ("Pod", "v1 pods", True),
    ("pods.v1", "v1 pods", True),
    ("nodes", "v1 nodes", False),
    ("events", "v1 events", True),
    ("deploy", "apps/v1 deployments", True),
    ("deployments.apps", "apps/v1 deployments", True),
    ("deployments.v1.apps", "apps/v1 deployments", True),
    ("leases.coordination", "coordination.k8s.io/v1 leases", True),
    ("clusterroles", "rbac.authorization.k8s.io/v1 clusterroles", False),
    ("crds", "apiextensions.k8s.io/v1 customresourcedefinitions", False),
]


@pytest.mark.parametrize("status", [403, 404, 405, 500])
async def test_a_built_in_resource_needs_no_discovery(server: APIServer, client: Client, status: int) -> None:
    server.faults.fail(status, times=None, matching=lambda request: not request.resource)
    for name, expected, namespaced in BUILT_IN:
        resource = await find_resource(client, name)
        assert (f"{resource.api_version} {resource.plural}", resource.namespaced) == (expected, namespaced), (
            name
        )
    with pytest.raises(ApiError, match=f": {status} "):
        await find_resource(client, "caves")


async def test_a_built_in_resource_of_a_group_that_refuses_to_be_read(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults.fail(403, times=None, matching=lambda request: request.path == "/apis/apps/v1")
    assert (await find_resource(client, "deployments")).api_version == "apps/v1"
    (said,) = caplog.messages
    assert "get /apis/apps/v1: 403" in said
    assert said.endswith("assuming that deployments means the built-in deployments of apps/v1")


@pytest.mark.parametrize("name", ["pods", "deployments"])
async def test_built_in_resource_missing_in_discovery_is_an_error(name: str) -> None:
    client = Client(Documents({"/api/v1": {"resources": []}, "/apis": {"groups": []}}))
    with pytest.raises(ConfigError, match=f"has no resource '{name}'"):
        await find_resource(client, name)


async def test_unauthorized_server_is_an_error(server: APIServer, client: Client) -> None:
    server.faults.fail(401, times=None, matching=lambda request: not request.resource)
    with pytest.raises(ApiError, match="401 Unauthorized"):
        await find_resource(client, "pods")


async def test_a_resource_of_the_core_needs_no_list_of_groups(server: APIServer, client: Client) -> None:
    server.faults.freeze(matching=lambda request: request.path == "/apis")
    assert (await find_resource(client, "pods")).plural == "pods"


async def test_a_built_in_resource_is_watched_where_apis_cannot_be_read(
    server: APIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.create("apps/v1", "deployments", {"metadata": {"name": "web"}})
    server.faults.fail(403, times=None, matching=lambda request: not request.resource)
    await watch_resource(Client.from_url(server.url), make_watching("deploy", timeout=30))
    assert capsys.readouterr().out.count("ADDED") == 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("name", ["pods", "pods.v1", "events"])
async def test_unavailable_core_group_is_an_error(
    server: APIServer, client: Client, status: int, name: str
) -> None:
    server.faults.fail(status, message="etcd is away", matching=lambda request: request.path == "/api/v1")
    with pytest.raises(ApiError, match=rf"/api/v1: {status} \w+: etcd is away"):
        await find_resource(client, name)


@pytest.mark.usefixtures("gateways")
async def test_unavailable_group_does_not_hide_others(server: APIServer, client: Client) -> None:
    server.faults.fail(503, times=None, matching=lambda request: request.path == f"/apis/{GROUP}/v1")
    assert (await find_resource(client, "deploy")).plural == "deployments"
    assert (await find_resource(client, "tcproutes")).plural == "tcproutes"
    with pytest.raises(
        TransportError, match=rf"'podz'\. Did you mean 'pods'\? .*may have it: get /apis/{GROUP}/v1: 503"
    ):
        await find_resource(client, "podz")
    with pytest.raises(ApiError, match=f"get /apis/{GROUP}/v1: 503"):
        await find_resource(client, f"gateways.{GROUP}")


@pytest.mark.usefixtures("gateways")
@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, ConfigError), (500, ConfigError), *((status, TransportError) for status in (429, 502, 503, 504))],
)
async def test_unavailable_group_may_have_the_resource(
    server: APIServer, client: Client, status: int, kind: type[Exception]
) -> None:
    server.faults.fail(status, times=None, matching=lambda request: request.path == f"/apis/{GROUP}/v1")
    with pytest.raises(
        kind, match=f"'caves' .unreadable API groups may have it: get /apis/{GROUP}/v1: {status}"
    ):
        await find_resource(client, "caves")


@pytest.mark.usefixtures("gateways")
async def test_unavailable_group_is_retried_within_the_timeout(server: APIServer) -> None:
    away = server.faults.fail(503, times=None, matching=lambda request: GROUP in request.path)
    why = f"has no resource 'tcproutes' .unreadable API groups may have it: get /apis/{GROUP}/v1: 503"
    with pytest.raises(SyncTimeout, match=why):
        await watch_resource(Client.from_url(server.url), make_watching("tcproutes", timeout=1))
    asyncio.get_running_loop().call_later(0.3, away.remove)
    await watch_resource(Client.from_url(server.url), make_watching("tcproutes", timeout=60))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("limits", "stable.example.com/v1 limits"),
        ("limit", "stable.example.com/v1 limits"),
        ("quota", "stable.example.com/v1 quotas"),
        ("limitranges", "v1 limitranges"),
        ("deep", "v1 pods"),
        ("Cave", "b.example.com/v1 hollows"),
    ],
)
async def test_a_full_name_comes_before_a_short_name_and_a_kind_last(
    server: APIServer, client: Client, name: str, expected: str
) -> None:
    """client-go restmapper/shortcut.go ``expandResourceShortcut``."""
    for resource_type in (
        ResourceType("stable.example.com", "v1", "limits", "Limit"),
        ResourceType("stable.example.com", "v1", "quotas", "Quota"),
        ResourceType("a.example.com", "v1", "rooms", "Cave", singular="room"),
        ResourceType("b.example.com", "v1", "hollows", "Hollow", short_names=("cave",)),
        ResourceType("", "v1", "pods", "Pod", short_names=("deep",)),
    ):
        server.register(resource_type)
    resource = await find_resource(client, name)
    assert f"{resource.api_version} {resource.plural}" == expected


@pytest.mark.usefixtures("gateways")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ingresses.networking", "networking.k8s.io/v1 ingresses"),
        ("leases.coordination", "coordination.k8s.io/v1 leases"),
        ("deploy.ap", "apps/v1 deployments"),
        ("pods.v1", "v1 pods"),
        ("pods.v1.", "v1 pods"),
        ("pods.", "v1 pods"),
    ],
)
async def test_a_group_by_its_beginning_and_the_core_by_its_version(
    client: Client, name: str, expected: str
) -> None:
    resource = await find_resource(client, name)
    assert f"{resource.api_version} {resource.plural}" == expected


BROKEN = "/apis/broken.io/v1"
GROUPS = {
    "groups": [
        {"name": name, "versions": [version], "preferredVersion": version}
        for name in ("broken.io", "apps")
        for version in ({"groupVersion": f"{name}/v1", "version": "v1"},)
    ]
}
DEPLOYMENTS = {"name": "deployments", "namespaced": True, "verbs": ["list", "watch"]}


class Documents(Server):
    """A transport that returns given discovery documents."""

    def __init__(self, documents: dict[str, Any]) -> None:
        super().__init__()
        self._documents: dict[str, Any] = {
            "/apis": GROUPS,
            "/api/v1": {
                "resources": [{"name": "componentstatuses", "shortNames": ["cs"], "verbs": ["list"]}]
            },
            "/apis/apps/v1": {"resources": [DEPLOYMENTS]},
            BROKEN: {"resources": []},
            **documents,
        }

    async def get(self, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
        answer = self._documents[path]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)


UNREADABLE: dict[str, Any] = {
    "HTML": b"<html>",
    "nothing": b"",
    "null": None,
    "a list": [],
    "resources that are none": {"resources": [None]},
    "texts": {"resources": ["x"]},
    "an odd name": {"resources": [{"name": 5, "verbs": ["watch"]}]},
    "a cut connection": TransportError(f"get {BROKEN}: cut"),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
async def test_unreadable_group_does_not_hide_others(answer: Any) -> None:
    client = Client(Documents({BROKEN: answer}))
    assert (await find_resource(client, "deployments")).api_version == "apps/v1"
    kind = TransportError if isinstance(answer, TransportError) else ConfigError  # to be asked again
    with pytest.raises(kind, match=f"'caves' .unreadable API groups may have it: get {BROKEN}: "):
        await find_resource(client, "caves")
    with pytest.raises((DecodeError, TransportError), match=f"get {BROKEN}: "):
        await find_resource(client, "caves.broken.io")


INCOMPLETE = {
    "no verbs": {BROKEN: {"resources": [{"name": "xs", "kind": "X", "verbs": None}]}},
    "no name": {BROKEN: {"resources": [{"kind": "X", "verbs": ["watch"]}]}},
    "no resources": {BROKEN: {"resources": None}},
    **{
        name: {"/apis": {"groups": [group, *GROUPS["groups"][1:]]}}
        for name, group in {
            "a nameless group": {},
            "no versions": {**GROUPS["groups"][0], "versions": None},
            "none preferred": {"name": "broken.io", "versions": GROUPS["groups"][0]["versions"]},
            "nothing preferred": {
                "name": "broken.io",
                "preferredVersion": {"groupVersion": "", "version": ""},
            },
        }.items()
    },
}


@pytest.mark.parametrize("documents", INCOMPLETE.values(), ids=INCOMPLETE)
async def test_missing_fields_of_a_group_do_not_hide_others(documents: dict[str, Any]) -> None:
    assert (await find_resource(Client(Documents(documents)), "deployments")).api_version == "apps/v1"


@pytest.mark.parametrize("path", ["/apis", "/api/v1"])
@pytest.mark.parametrize("answer", [b"<html>", None, []], ids=str)
async def test_unreadable_discovery_is_an_error(path: str, answer: Any) -> None:
    client = Client(Documents({path: answer}))
    with pytest.raises(DecodeError, match=f"get {path}: the (answer|response) is n"):
        await find_resource(client, "caves")
    assert (await find_resource(client, "deployments")).api_version == "apps/v1"


@pytest.mark.usefixtures("gateways")
async def test_hanging_group_delays_others_only_briefly(server: APIServer, client: Client) -> None:
    server.faults.freeze(matching=lambda request: request.path == f"/apis/{GROUP}/v1")
    assert (await find_resource(client, "pods")).plural == "pods", "no group comes before the core"
    assert (await find_resource(client, "deployments", group_timeout=1.0)).plural == "deployments"


@pytest.mark.usefixtures("gateways")
async def test_hanging_group_leaves_time_for_the_list(
    server: APIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.create("apps/v1", "deployments", {"metadata": {"name": "web"}})
    server.faults.freeze(matching=lambda request: request.path == f"/apis/{GROUP}/v1")
    await watch_resource(Client.from_url(server.url), make_watching("deployments", timeout=4))
    assert capsys.readouterr().out.count("ADDED") == 1
    with pytest.raises(
        SyncTimeout, match=f"has no resource 'caves'.*: get /apis/{GROUP}/v1: .*no answer within"
    ):
        await watch_resource(Client.from_url(server.url), make_watching("caves", timeout=2))


async def test_unwatchable_resource_is_an_error() -> None:
    with pytest.raises(ConfigError, match="'componentstatuses', but it cannot be watched"):
        await find_resource(Client(Documents({})), "cs")
    # A watchable resource is preferred.
    hidden = {"resources": [{**DEPLOYMENTS, "verbs": ["get"]}]}
    assert (await find_resource(Client(Documents({BROKEN: hidden})), "deployments")).api_version == "apps/v1"
