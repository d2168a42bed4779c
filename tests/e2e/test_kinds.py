"""What definitions can say beyond schemas, pydantic models and unions, on both servers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest

from aioinformer import Client, InvalidError, ListWatch, Resource, SharedIndexInformer
from aioinformer.operator import Kind, Operator, Request
from aioinformer.typed import CamelStruct, CustomResource, MapOf, Metadata, crd

from ..kubernetes.kubectl import run_kubectl
from ..typed.models import Http, Open, Port, Site, SiteSpec, SiteStatus, Size, Tcp
from . import api
from .api import DEFINITIONS
from .clusters import Cluster
from .definitions import define

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

SITES = api.Resource("models.example.com/v1", "sites")
SITE = {"apiVersion": SITES.api_version, "kind": "Site"}


@pytest.fixture
async def sites(cluster: Cluster, client: Client) -> Resource[Site]:
    await define(cluster.api, crd(Site))
    return Resource(client, Site)


def named(cluster: Cluster, name: str = "a") -> Metadata:
    return Metadata(name=name, namespace=cluster.namespace)


def site(cluster: Cluster, name: str = "a", /, **fields: Any) -> dict[str, Any]:
    """Return an object as JSON, with these fields in its spec."""
    metadata = {"name": name, "namespace": cluster.namespace}
    return {"metadata": metadata, "spec": {"host": "a.example", **fields}}


async def test_the_server_takes_the_definition_of_a_model_as_it_is(
    sites: Resource[Site], cluster: Cluster
) -> None:
    definition = crd(Site)
    stored = await cluster.api.do("GET", DEFINITIONS.path(None, definition["metadata"]["name"]))
    assert stored["spec"]["versions"] == definition["spec"]["versions"]
    assert stored["metadata"]["labels"] == {"app.kubernetes.io/part-of": "sites"}
    assert stored["metadata"]["annotations"]["example.com/docs"] == "https://example.com/sites"
    conditions = {condition["type"] for condition in stored["status"]["conditions"]}
    assert "NonStructuralSchema" not in conditions


async def test_defaults_of_a_model_are_the_servers(sites: Resource[Site], cluster: Cluster) -> None:
    created = await sites.create(site(cluster))
    assert created.spec == SiteSpec(host="a.example")
    stored = (await cluster.list(SITES))[created.key]["spec"]
    assert stored["replicas"] == 2
    assert stored["wait"] == "PT300S"
    assert stored["open"] == {"level": 1}
    assert stored.keys().isdisjoint(["probe", "title"])


async def test_everything_that_a_model_can_say_is_accepted(sites: Resource[Site], cluster: Cluster) -> None:
    spec = SiteSpec.model_validate(
        {
            "host": "b.example",
            "replicas": 4,
            "ratio": 2.5,
            "size": Size.LARGE,
            "mode": "slow",
            "targetPort": 80,
            "budget": 3,
            "ports": [Port(number=80), Port(number=80, protocol="UDP"), Port(number=443, host_name="h")],
            "aliases": ["x", "y"],
            "tags": {1, 2},
            "env": {"A": "1"},
            "settings": {"a": {"b": [1, None]}},
            "open": Open.model_validate({"level": 2, "more": {"x": 1}}),
            "probe": Http(url="u"),
            "probes": [Tcp(port=1), Http(url="v", tries=5)],
            "home": "https://a.example/",
            "since": "2020-01-01T00:00:00Z",
            "day": "2020-02-01",
            "wait": "PT1M",
            "price": "2.50",
            "token": "12345678-1234-1234-1234-123456789abc",
            "rows": [[1], []],
        },
        strict=False,
    )
    created = await sites.create(Site(spec, metadata=named(cluster, "b")))
    assert created.spec == spec
    created.spec.probe = Tcp(port=9)
    created.spec.mode = None
    updated = await sites.update(created)
    assert updated.spec == created.spec
    updated.status = SiteStatus(replicas=2, selector="app=site")
    assert (await sites.update_status(updated)).status == updated.status


LIMITED = [
    ({"host": "ab"}, "spec.host"),
    ({"host": "A.example"}, "spec.host"),
    ({"replicas": 3}, "spec.replicas"),
    ({"replicas": 12}, "spec.replicas"),
    ({"ratio": 0.4}, "spec.ratio"),
    ({"size": "huge"}, "spec.size"),
    ({"mode": "other"}, "spec.mode"),
    ({"targetPort": 1.5}, "spec.targetPort"),
    ({"budget": 0}, "spec.budget"),
    ({"ports": [{"number": 0}]}, "spec.ports[0].number"),
    ({"ports": [{"number": 1}, {"number": 1}]}, "spec.ports[1]"),
    ({"aliases": ["x", "x"]}, "spec.aliases[1]"),
    ({"env": {"A": "1", "B": "2", "C": "3"}}, "spec.env"),
    ({"home": "no uri"}, "spec.home"),
    ({"since": "yesterday"}, "spec.since"),
    ({"wait": "5m"}, "spec.wait"),
    ({"price": 1.5}, "spec.price"),
    ({"token": "x"}, "spec.token"),
    ({"probe": {}}, "spec.probe"),
    ({"probe": {"kind": "other"}}, "spec.probe"),
    ({"probe": {"kind": "http", "port": 1}}, "spec.probe"),
    ({"probe": {"kind": "tcp", "port": 0}}, "spec.probe.port"),
    ({"probe": {"kind": "tcp", "port": "x"}}, "spec.probe.port"),
    ({"probes": [{"kind": "tcp", "port": 1}, {"kind": "tcp"}]}, "spec.probes[1]"),
]


@pytest.mark.parametrize(("fields", "path"), LIMITED, ids=str)
async def test_the_server_refuses_what_the_model_forbids(
    sites: Resource[Site], cluster: Cluster, fields: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidError) as raised:
        await sites.create(site(cluster, **fields))
    assert any(cause.field.startswith(path) for cause in raised.value.causes), raised.value.causes


async def test_null_is_taken_for_a_nullable_union(sites: Resource[Site], cluster: Cluster) -> None:
    created = await sites.create(site(cluster, probe=None, budget=None, since=None))
    assert (created.spec.probe, created.spec.budget, created.spec.since) == (None, None, None)


async def test_a_reconciler_gets_models_and_keeps_what_they_lack(
    sites: Resource[Site], cluster: Cluster, client: Client
) -> None:
    raw = Resource(client, "models.example.com/v1", "sites", dict, kind="Site")
    await raw.create(site(cluster, open={"more": 1}, ports=[{"number": 1}]))
    operator, done = Operator("sites", events=False), asyncio.Event()

    @operator.controller(Site)
    async def reconcile(request: Request[Site]) -> None:
        current = request.object
        if current is None or current.namespace != cluster.namespace:
            return
        if current.spec.replicas != 8:
            current.spec.replicas = 8
            await sites.update(current)
        else:
            done.set()

    async with operator.running(client), asyncio.timeout(20):
        await done.wait()
    stored = await raw.get(cluster.key("a"))
    assert stored["spec"]["open"] == {"level": 1, "more": 1}
    assert stored["spec"]["replicas"] == 8


async def test_field_selectors_choose_by_the_selectable_fields(
    sites: Resource[Site], cluster: Cluster, client: Client
) -> None:
    for name, host, replicas in (("a", "a.example", 2), ("b", "b.example", 2), ("c", "b.example", 4)):
        await sites.create(site(cluster, name, host=host, replicas=replicas, enabled=name != "c"))

    async def names(selector: str) -> list[str]:
        listed = await sites.list(namespace=cluster.namespace, field_selector=selector)
        return sorted(listed_site.name for listed_site in listed)

    assert await names("spec.host=b.example") == ["b", "c"]
    assert await names("spec.host!=b.example") == ["a"]
    assert await names("spec.host=b.example,spec.replicas=4") == ["c"]
    assert await names("spec.enabled=false") == ["c"]
    list_watch = ListWatch.for_resource(
        client, Site, namespace=cluster.namespace, field_selector="spec.replicas=4"
    )
    informer = SharedIndexInformer(list_watch, Site)
    async with informer, asyncio.timeout(20):
        await informer.wait_synced(timeout=20)
        assert [listed_site.name for listed_site in informer.lister.list()] == ["c"]
        await sites.patch(cluster.key("a"), {"spec": {"replicas": 4}})
        await sites.patch(cluster.key("c"), {"spec": {"replicas": 2}})
        while [listed_site.name for listed_site in informer.lister.list()] != ["a"]:  # noqa: ASYNC110 - events of a watch
            await asyncio.sleep(0.02)
    assert Kind(Site, field_selector="spec.replicas=4").field_selector == "spec.replicas=4"


class Http1(CamelStruct, tag="http", kw_only=True):
    url: str
    tries: int = 3


class Tcp1(CamelStruct, tag="tcp", kw_only=True):
    port: int
    tries: int = 3


class CheckSpec(CamelStruct, kw_only=True):
    """The wanted state."""

    one: Http1 | Tcp1
    many: Annotated[list[Http1 | Tcp1], MapOf("type")] = []


class Check(
    CustomResource,
    group="unions.example.com",
    version="v1alpha1",
    deprecated=True,
    description_limit=10,
    selectable_fields=(".spec.one.type",),
):
    spec: CheckSpec


class CheckV1Beta1(Check, version="v1beta1", deprecated='gone in 2.0: use "v1"'): ...


class CheckV1(Check, version="v1"): ...


@pytest.fixture
async def checks(cluster: Cluster, client: Client) -> Resource[CheckV1]:
    await define(cluster.api, crd(Check, CheckV1Beta1, CheckV1))
    return Resource(client, CheckV1)


async def test_unions_of_structs_are_read_and_written(checks: Resource[CheckV1], cluster: Cluster) -> None:
    spec = CheckSpec(one=Http1(url="u"), many=[Tcp1(port=1), Http1(url="v", tries=1)])
    created = await checks.create(CheckV1(spec, metadata=named(cluster)))
    assert created.spec == spec
    created.spec.one = Tcp1(port=2)
    assert (await checks.update(created)).spec == created.spec
    listed = await checks.list(namespace=cluster.namespace, field_selector="spec.one.type=tcp")
    assert [check.name for check in listed] == ["a"]


@pytest.mark.parametrize(
    "one",
    [{"url": "u"}, {"type": "http"}, {"type": "tcp", "url": "u"}, {"type": "udp", "port": 1}, {"type": 1}],
    ids=str,
)
async def test_a_union_needs_the_fields_of_its_tag(
    checks: Resource[CheckV1], cluster: Cluster, one: dict[str, Any]
) -> None:
    with pytest.raises(InvalidError) as raised:
        await checks.create({"metadata": {"name": "a", "namespace": cluster.namespace}, "spec": {"one": one}})
    assert any(cause.field.startswith("spec.one") for cause in raised.value.causes)


async def test_deprecated_versions_warn(checks: Resource[CheckV1], cluster: Cluster) -> None:
    seen: list[str] = []
    async with Client.from_kubeconfig(path=cluster.kubeconfig, on_warning=seen.append) as client:
        await Resource(client, CheckV1).list(namespace=cluster.namespace)
        assert seen == []
        for kind in (Check, CheckV1Beta1):
            await Resource(client, kind).list(namespace=cluster.namespace)
    assert seen == [
        "unions.example.com/v1alpha1 Check is deprecated; use unions.example.com/v1 Check",
        'gone in 2.0: use "v1"',
    ]


@pytest.fixture(params=["secure", "real"])
def with_kubectl(request: pytest.FixtureRequest) -> Cluster:
    """A server with TLS, without which kubectl sends no token."""
    chosen: Cluster = request.getfixturevalue(request.param)
    return chosen


@pytest.mark.kubernetes  # for the binary
@pytest.mark.xdist_group("kubernetes")
async def test_kubectl_scales_selects_and_warns(with_kubectl: Cluster, kubernetes_binaries: Path) -> None:
    cluster = with_kubectl
    await define(cluster.api, crd(Site))
    await define(cluster.api, crd(Check, CheckV1Beta1, CheckV1))
    command = [
        str(kubernetes_binaries / "kubectl"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--cache-dir={cluster.folder / 'kubectl'}",
        f"--namespace={cluster.namespace}",
    ]
    for name in ("a", "b"):
        await cluster.create(SITES, SITE | {"metadata": {"name": name}, "spec": {"host": f"{name}.example"}})
    assert await run_kubectl(command, "scale", "st/a", "--replicas=4") == "site.models.example.com/a scaled\n"
    selected = await run_kubectl(
        command, "get", "sites.models.example.com", "--field-selector=spec.replicas=4", "-o", "name"
    )
    assert selected == "site.models.example.com/a\n"
    assert "site.models.example.com/b" in await run_kubectl(command, "get", "all", "-o", "name")
    warned = await asyncio.create_subprocess_exec(
        *command, "get", "checks.v1beta1.unions.example.com", stderr=asyncio.subprocess.PIPE
    )
    _, errors = await warned.communicate()
    assert b'Warning: gone in 2.0: use "v1"' in errors


WRONG: dict[str, dict[str, Any]] = {
    "missing": {"selectableFields": [{"jsonPath": ".spec.none"}]},
    "object": {"selectableFields": [{"jsonPath": ".spec"}]},
    "metadata": {"selectableFields": [{"jsonPath": ".metadata.name"}]},
    "no dot": {"selectableFields": [{"jsonPath": "spec.host"}]},
    "brackets": {"selectableFields": [{"jsonPath": ".spec['host']"}]},
    "end": {"selectableFields": [{"jsonPath": ".spec."}]},
    "twice": {"selectableFields": [{"jsonPath": ".spec.host"}] * 2},
    "empty": {"selectableFields": [{"jsonPath": ""}]},
    "many": {"selectableFields": [{"jsonPath": f".spec.f{number}"} for number in range(9)]},
    "warning alone": {"deprecationWarning": "x"},
    "empty warning": {"deprecated": True, "deprecationWarning": ""},
    "long warning": {"deprecated": True, "deprecationWarning": "ä" * 129},
    "two lines": {"deprecated": True, "deprecationWarning": "ä\nb"},
    "one of two": {},
}


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
@pytest.mark.parametrize("case", WRONG)
async def test_both_servers_refuse_a_definition_with_the_same_words(
    embedded: Cluster, real: Cluster, case: str
) -> None:
    fields = {"host": {"type": "string"}} | {f"f{number}": {"type": "string"} for number in range(9)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "wrongs.wrong.example.com"},
        "spec": {
            "group": "wrong.example.com",
            "scope": "Namespaced",
            "names": {"plural": "wrongs", "kind": "Wrong"},
            "versions": [version | WRONG[case]],
        },
    }
    if case == "one of two":
        other = version | {"name": "v2", "storage": False, "selectableFields": [{"jsonPath": ".spec.host"}]}
        definition["spec"]["versions"].append(other)  # type: ignore[index]
    answers = [await cluster.api.ask("POST", DEFINITIONS.path(), definition) for cluster in (embedded, real)]
    assert [answer.status for answer in answers] == [422, 422]
    assert answers[0].body["message"] == answers[1].body["message"]
    assert answers[0].body["details"] == answers[1].body["details"]
