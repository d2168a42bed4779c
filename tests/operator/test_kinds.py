"""Kinds: resources with the type of their objects and their indexes."""

from __future__ import annotations

from typing import Any, assert_type

import msgspec
import pytest

from aioinformer import CachedResource, Client, ConfigError, KubeObject, OwnerReference, Resource
from aioinformer.errors import IndexerConflictError
from aioinformer.operator import Context, Kind, Operator, Owned, Request, Uses, Watched, owner_reference
from aioinformer.testing import APIServer, ResourceType, eventually
from aioinformer.typed import CustomResource


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    owner_references: list[OwnerReference] = []


class Secret(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


def by_colour(secret: Secret) -> list[str]:
    return [secret.data.get("colour", "none")]


SECRETS = Kind("secrets", Secret, indexers={"colour": by_colour})
CONFIGMAPS = Kind("configmaps", indexers={"colour": "data.colour"})


async def test_indexes_and_object_types_of_owned_watched_and_primary_kinds() -> None:
    operator = Operator("colours", events=False)

    def same_colour(secret: Secret, context: Context) -> list[Request[KubeObject]]:
        colour = secret.data.get("colour", "none")
        index = context.resource(CONFIGMAPS).informer.indexer
        return [Request.of(obj) for obj in index.by_index("colour", colour)]

    @operator.controller(CONFIGMAPS, owns=[Owned(SECRETS)], watches=[Watched(SECRETS, same_colour)])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        obj = request.object
        if obj is None or obj["data"]["colour"] != "Ymx1ZQ==":
            return
        secrets = context.resource(SECRETS)
        assert_type(secrets, CachedResource[Secret])
        blue_secrets = await secrets.by_index("colour", "Ymx1ZQ==")
        names = {secret.metadata.name for secret in blue_secrets}
        if names and obj.name not in names:
            metadata = {
                "name": obj.name,
                "namespace": obj.namespace,
                "ownerReferences": [owner_reference(obj)],
            }
            await secrets.create({"metadata": metadata, "data": {"seen": "eWVz"}})

    async with APIServer() as server, Client.from_url(server.url) as client:
        for name, colour in (("a", "Ymx1ZQ=="), ("b", "cmVk")):
            server.create("v1", "configmaps", {"metadata": {"name": name}, "data": {"colour": colour}})
        async with operator.running(client):
            server.create("v1", "secrets", {"metadata": {"name": "ink"}, "data": {"colour": "Ymx1ZQ=="}})
            await eventually(lambda: "default/a" in server.snapshot("v1", "secrets"))
        assert server.count("list") + server.count("watch") == 2, "each kind has one informer"


class Site(CustomResource, group="example.com", version="v1"):
    spec: dict[str, int]


async def test_a_kind_without_a_type_and_its_name_are_the_same_cache() -> None:
    operator = Operator("same", events=False, uses=[Uses(Kind("pods", indexers={"node": "spec.nodeName"}))])
    contexts: list[Context] = []

    @operator.controller("configmaps", watches=[Watched(Kind("pods"), lambda pod: None)])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        contexts.append(context)

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: contexts)
            assert await contexts[0].resource("pods").by_index("node", "node-1") == []


async def test_a_discovered_kind_may_have_a_type() -> None:
    class Farm(msgspec.Struct):
        metadata: Meta

    operator = Operator("farms", events=False)
    seen: list[str] = []

    @operator.controller(Kind("farms.example.com", Farm))
    async def reconcile(request: Request[Farm]) -> None:
        if request.object is not None:
            seen.append(request.object.metadata.name)

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.register(ResourceType("example.com", "v1", "farms", "Farm"))
        server.create("example.com/v1", "farms", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: seen == ["a"])


OWN_SECRETS = Kind("secrets", Secret, label_selector="app=web", field_selector="type=Opaque")


async def test_a_kind_with_selectors_caches_what_they_select() -> None:
    operator = Operator("selecting", events=False)
    reconciled: list[tuple[str, set[str]]] = []

    def the_map(secret: Secret) -> list[Request[KubeObject]]:
        return [Request("default", "map")]

    @operator.controller("configmaps", watches=[Watched(OWN_SECRETS, the_map)])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        secrets = await context.resource(OWN_SECRETS).list()
        with pytest.raises(ConfigError, match="'secrets' with another object type or other selectors"):
            context.resource("secrets")
        assert (await context.uncached(OWN_SECRETS).get("default/other")).metadata.name == "other"
        reconciled.append((request.name, {secret.metadata.name for secret in secrets}))

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "secrets", {"metadata": {"name": "own", "labels": {"app": "web"}}})
        server.create("v1", "secrets", {"metadata": {"name": "other"}})
        async with operator.running(client):
            await eventually(lambda: ("map", {"own"}) in reconciled)
            server.patch("v1", "secrets", "other", {"data": {"colour": "Ymx1ZQ=="}})
            server.create("v1", "secrets", {"metadata": {"name": "more", "labels": {"app": "web"}}})
            await eventually(lambda: ("map", {"own", "more"}) in reconciled)
        requests = [name for name, _ in reconciled]
        assert requests.count("map") == 2, "a secret without the label triggers nothing"


async def test_an_owned_object_needs_the_labels_that_its_kind_selects() -> None:
    kind = Kind("secrets", label_selector="app=web,!old")
    operator = Operator("selecting", events=False)
    failed: list[str] = []

    @operator.controller("configmaps", owns=[kind])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        assert request.object is not None
        with pytest.raises(
            ConfigError, match=r"'secrets' default/a: .* only objects with app=web,!old"
        ) as caught:
            await context.apply_owned(request.object, kind, {"data": {}})
        failed.append(str(caught.value))

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: failed)
        assert server.count("patch", "secrets") == 0


async def test_a_kind_with_an_index_that_is_not_declared_is_named() -> None:
    operator = Operator("indexed", events=False)
    failed: list[str] = []

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        with pytest.raises(
            ConfigError, match="declares 'cm' without the index colour: declare the Kind"
        ) as caught:
            context.resource(Kind("cm", indexers={"colour": "data.color"}))
        failed.append(str(caught.value))

    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with operator.running(client):
            await eventually(lambda: failed)


def test_a_kind_is_shown_as_a_program_makes_it() -> None:
    assert (
        repr(OWN_SECRETS) == "Kind('secrets', Secret, label_selector='app=web', field_selector='type=Opaque')"
    )
    assert repr(Kind(Site, indexers={"text": "spec.text"})) == "Kind(Site, indexers={'text': 'spec.text'})"
    assert repr(Kind("caves.example.com", namespaced=False)) == "Kind('caves.example.com', namespaced=False)"
    with pytest.raises(ConfigError, match=r"such as Uses\(Kind\('pods'\), \.\.\.\), not Kind\('pods'\)$"):
        Operator("kinds", uses=[Kind("pods")])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("servces", "services"),
        ("deploymnts.apps", "deployments.apps"),
        ("secert", "secrets"),
        ("podz", "pods"),
    ],
)
def test_a_misspelled_name_gets_a_suggestion(name: str, meant: str) -> None:
    operator = Operator("typos")
    with pytest.raises(ConfigError, match=f"{name!r} is no built-in resource: .*Did you mean '{meant}'"):

        @operator.controller("configmaps", owns=[name])
        async def reconcile(request: Request[KubeObject]) -> None: ...


def test_an_invalid_selector_of_a_kind_is_a_mistake_of_the_declaration() -> None:
    operator = Operator("selecting")
    with pytest.raises(ConfigError, match=r"reconcile: 'secrets': label_selector='app in \(web'"):

        @operator.controller("configmaps", owns=[Kind("secrets", label_selector="app in (web")])
        async def reconcile(request: Request[KubeObject]) -> None: ...


async def test_two_indexes_of_one_name_are_refused() -> None:
    operator = Operator("twice", events=False, uses=[Uses(CONFIGMAPS)])
    operator.controller(Kind("cm", indexers={"colour": "data.color"}))(lambda request: None)
    async with APIServer() as server, Client.from_url(server.url) as client:
        with pytest.raises(IndexerConflictError, match="colour"):
            operator.manager(client)


class Other(CustomResource, group="example.com", version="v1", kind="Site", plural="sites"):
    spec: dict[str, int]


class Elsewhere(CustomResource, group="example.com", version="v2", kind="Site", plural="homes"):
    spec: dict[str, int]


class Newer(Site, version="v2", kind="Site", plural="sites"): ...


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            Other,
            r"sites.*: .*\.Site and .*\.Other are both the version v1 of the kind Site\.example\.com: use one ",
        ),
        (Elsewhere, r"Site and .*Elsewhere are both of example\.com and are called Site \(sites\) and Site"),
    ],
)
def test_two_classes_of_one_kind_are_refused(second: type[Any], message: str) -> None:
    operator = Operator("sites", events=False)
    operator.controller(Site)(lambda request: None)
    with pytest.raises(ConfigError, match=message):
        operator.controller("configmaps", uses=[Uses(Kind(second))])(lambda request: None)
    with pytest.raises(ConfigError, match=message):
        Operator("sites", uses=[Uses(Site), Uses(second)])
    operator.controller(Newer, name="newer")(lambda request: None)


def check_types(context: Context) -> None:
    """Not run: what type checkers know."""
    assert_type(context.uncached(SECRETS), Resource[Secret])
    assert_type(context.resource(CONFIGMAPS), CachedResource[KubeObject])
    assert_type(context.resource(Kind(Site)), CachedResource[Site])
