"""A CustomResource class: its definition at the server, its objects, and what the server refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from aioinformer import (
    CachedResource,
    ConflictError,
    InvalidError,
    ListWatch,
    Resource,
    SharedIndexInformer,
)
from aioinformer.operator import Operator, Request
from aioinformer.typed import CamelStruct, Condition, CustomResource, MapOf, Metadata, PreserveUnknown, crd

from ..typed.kinds import Feature, FeatureStatus, Port, Size, Website
from . import api
from .api import DEFINITIONS
from .clusters import Cluster
from .conftest import REAL
from .definitions import define

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

WEBSITES = api.Resource("typed.example.com/v1", "websites")

SERVERS = ["embedded", pytest.param("real", marks=REAL)]


CAVES = "caves.example.com/v1"


class Room(CamelStruct):
    name: str
    size: int = 1


class CaveSpec(CamelStruct, kw_only=True):
    max_depth: int
    rooms: list[Annotated[Room, PreserveUnknown]] = []


class Cave(CustomResource, group="caves.example.com", version="v1"):
    spec: Annotated[CaveSpec, PreserveUnknown]  # as a newer definition has more fields than the class


@pytest.fixture(params=SERVERS)
def validating(request: pytest.FixtureRequest) -> Cluster:
    """A server that enforces the schemas of custom resources."""
    chosen: Cluster = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
async def sites(validating: Cluster) -> AsyncIterator[Resource[Website]]:
    await define(validating.api, crd(Website))
    async with validating.client() as client:
        yield Resource(client, Website)


def site(cluster: Cluster, name: str = "a", /, **fields: Any) -> dict[str, Any]:
    """An object as JSON, with these fields in its spec."""
    return {
        "metadata": {"name": name, "namespace": cluster.namespace},
        "spec": {"host": "a.example", **fields},
    }


@pytest.fixture
async def caves(cluster: Cluster) -> AsyncIterator[CachedResource[Cave]]:
    """Caves, on either server."""
    await define(cluster.api, crd(Cave))
    async with cluster.client() as client:
        informer = SharedIndexInformer(
            ListWatch.for_resource(client, Cave, namespace=cluster.namespace), Cave
        )
        async with informer:
            yield CachedResource(Resource(client, Cave), informer)


async def test_objects_are_read_and_written_in_their_class(
    cluster: Cluster, caves: CachedResource[Cave]
) -> None:
    metadata = Metadata(name="a", namespace=cluster.namespace, labels={"deep": "yes"})
    created = await caves.create(Cave(CaveSpec(max_depth=3), metadata=metadata))
    assert created.metadata.uid
    assert created.metadata.creation_timestamp is not None
    assert await caves.get(created.key) == created
    applied = await caves.apply(
        Cave(CaveSpec(max_depth=4), metadata=Metadata(name="a", namespace=cluster.namespace)), force=True
    )
    assert (applied.spec.max_depth, applied.metadata.labels) == (4, {"deep": "yes"})
    with_finalizer = await caves.ensure_finalizer(applied, "example.com/a")
    assert with_finalizer is not None
    assert with_finalizer.metadata.finalizers == ["example.com/a"]
    await caves.drop_finalizer(with_finalizer, "example.com/a")
    await caves.delete(created)
    assert await caves.list() == []


async def test_unknown_fields_survive_a_read_modify_write(
    cluster: Cluster, caves: CachedResource[Cave]
) -> None:
    metadata = {"name": "b", "namespace": cluster.namespace, "labels": {"x": "y"}}
    spec = {"maxDepth": 1, "future": {"a": [1]}, "rooms": [{"name": "r", "color": "red"}]}
    cave = await caves.create({"metadata": metadata, "spec": spec})
    assert cave.spec.rooms == [Room("r")]
    cave.spec.max_depth = 2
    cave.spec.rooms[0].size = 5
    cave.spec.rooms.append(Room("s"))
    del cave.metadata.labels["x"]
    await caves.update(cave)
    stored = (await cluster.list(api.Resource(CAVES, "caves")))[cave.key]
    assert stored["spec"] == {
        "maxDepth": 2,
        "future": {"a": [1]},
        "rooms": [{"name": "r", "color": "red", "size": 5}, {"name": "s", "size": 1}],
    }
    assert "labels" not in stored["metadata"]
    with pytest.raises(ConflictError):
        await caves.update(cave)


async def test_the_server_takes_the_definition_as_it_is(
    sites: Resource[Website], validating: Cluster
) -> None:
    definition = crd(Website)
    path = DEFINITIONS.path(None, definition["metadata"]["name"])
    stored = await validating.api.do("GET", path)
    (version,) = stored["spec"]["versions"]
    assert version == definition["spec"]["versions"][0]
    assert stored["spec"]["names"] == definition["spec"]["names"]
    conditions = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
    assert "NonStructuralSchema" not in conditions
    assert conditions["Established"] == "True"


async def test_defaults_of_the_class_are_the_servers(sites: Resource[Website], validating: Cluster) -> None:
    created = await sites.create(site(validating))
    assert created.spec == Feature(host="a.example")
    spec = (await validating.list(WEBSITES))[created.key]["spec"]
    assert spec["replicas"] == 2
    assert spec["limits"] == {"cpu": "1", "timeout": 10}
    assert spec["settings"] == {}
    assert "mode" not in spec


async def test_everything_that_the_class_can_say_is_accepted(
    sites: Resource[Website], validating: Cluster
) -> None:
    spec = Feature(
        host="b.example",
        replicas=4,
        ratio=2.5,
        enabled=False,
        size=Size.LARGE,
        mode="slow",
        level=3,
        target_port=80,
        ports=[Port(80), Port(80, "UDP"), Port(443)],
        aliases=["x", "y"],
        tags={1, 2},
        env={"A": "1"},
        settings={"a": {"b": [1, None]}},
        anything=[{"x": 1}],
        data=b"\x00\x01",
        rows=[[1], []],
    )
    created = await sites.create(Website(spec, metadata=Metadata(name="b", namespace=validating.namespace)))
    assert created.spec == spec
    assert created.metadata.uid
    assert created.metadata.generation == 1


LIMITED = [
    ({"host": "ab"}, "spec.host"),
    ({"host": "a" * 41}, "spec.host"),
    ({"host": "A.example"}, "spec.host"),
    ({"host": None}, "spec.host"),
    ({"replicas": -2}, "spec.replicas"),
    ({"replicas": 12}, "spec.replicas"),
    ({"replicas": 3}, "spec.replicas"),
    ({"replicas": "2"}, "spec.replicas"),
    ({"replicas": 2.5}, "spec.replicas"),
    ({"ratio": 0.4}, "spec.ratio"),
    ({"enabled": "yes"}, "spec.enabled"),
    ({"size": "huge"}, "spec.size"),
    ({"mode": "other"}, "spec.mode"),
    ({"level": 4}, "spec.level"),
    ({"targetPort": 1.5}, "spec.targetPort"),
    ({"targetPort": True}, "spec.targetPort"),
    ({"limits": {"cpu": "much"}}, "spec.limits.cpu"),
    ({"limits": {"timeout": 0}}, "spec.limits.timeout"),
    ({"limits": {"timeout": 100}}, "spec.limits.timeout"),
    ({"ports": [{"protocol": "TCP"}]}, "spec.ports[0].number"),
    ({"ports": [{"number": 1}, {"number": 1}]}, "spec.ports[1]"),
    ({"ports": [{"number": 1}, {"number": 2}, {"number": 3}, {"number": 4}]}, "spec.ports"),
    ({"aliases": ["x", "x"]}, "spec.aliases[1]"),
    ({"tags": [1, 1]}, "spec.tags[1]"),
    ({"tags": ["x"]}, "spec.tags[0]"),
    ({"env": {"A": 1}}, "spec.env.A"),
    ({"env": {"A": "1", "B": "2", "C": "3"}}, "spec.env"),
    ({"settings": 1}, "spec.settings"),
    ({"since": "yesterday"}, "spec.since"),
    ({"day": "2026-13-01"}, "spec.day"),
    ({"data": "%"}, "spec.data"),
    ({"rows": [1]}, "spec.rows[0]"),
    ({"rows": [["x"]]}, "spec.rows[0][0]"),
    ({"replicas": 10}, "spec.replicas"),
]


@pytest.mark.parametrize(("fields", "path"), LIMITED, ids=str)
async def test_the_server_refuses_what_the_class_forbids(
    sites: Resource[Website], validating: Cluster, fields: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidError) as raised:
        await sites.create(site(validating, **fields))
    assert any(cause.field.startswith(path) for cause in raised.value.causes), raised.value.causes


NULLS = ["mode", "since", "day", "extra"]


async def test_nullable_fields_take_null(sites: Resource[Website], validating: Cluster) -> None:
    fields = {**dict.fromkeys(NULLS), "limits": {"memory": None}, "ports": [{"number": 1, "host": None}]}
    created = await sites.create(site(validating, **fields))
    assert [getattr(created.spec, name) for name in NULLS] == [None] * len(NULLS)


async def test_unknown_fields_are_pruned_or_preserved(sites: Resource[Website], validating: Cluster) -> None:
    fields = {"unknown": 1, "extra": {"unknown": 1}, "settings": {"x": 1}, "limits": {"unknown": 1}}
    created = await sites.create(site(validating, **fields))
    stored = (await validating.list(WEBSITES))[created.key]["spec"]
    assert "unknown" not in stored
    assert "unknown" not in stored["limits"]
    assert stored["extra"] == {"cpu": "1", "timeout": 10, "unknown": 1}
    assert stored["settings"] == {"x": 1}


async def test_rules_refuse_with_their_messages(sites: Resource[Website], validating: Cluster) -> None:
    with pytest.raises(InvalidError, match=r"this name is forbidden"):
        await sites.create(site(validating, "forbidden"))
    with pytest.raises(InvalidError, match=r"too many replicas for a.example"):
        await sites.create(site(validating, replicas=10))
    created = await sites.create(site(validating))
    created.spec.host = "b.example"
    with pytest.raises(InvalidError, match=r"host cannot change"):
        await sites.update(created)


async def test_status_and_scale_are_subresources(sites: Resource[Website], validating: Cluster) -> None:
    created = await sites.create({**site(validating), "status": {"replicas": 7}})
    assert created.status is None
    created.status = FeatureStatus(replicas=2, selector="app=web")
    created.spec.replicas = 8
    updated = await sites.update_status(created)
    assert (updated.spec.replicas, updated.status) == (2, created.status)
    scale = await validating.api.do("GET", f"{WEBSITES.path(validating.namespace, 'a')}/scale")
    assert scale["spec"]["replicas"] == 2
    assert scale["status"] == {"replicas": 2, "selector": "app=web"}
    with pytest.raises(InvalidError, match=r"status\.replicas"):
        await sites.patch_status(updated, {"status": {"replicas": "many"}})


async def test_kubectl_shows_names_columns_and_categories(
    sites: Resource[Website], validating: Cluster
) -> None:
    created = await sites.create(site(validating, replicas=4))
    ready = {"type": "Ready", "status": "True"}
    await sites.patch_status(created, {"status": {"conditions": [ready]}})
    path = WEBSITES.path(validating.namespace)
    table = (
        await validating.api.ask("GET", path, accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    ).body
    assert [definition["name"] for definition in table["columnDefinitions"]] == [
        "Name", "Host", "Replicas", "Ready", "ReadyAt", "Age",
    ]  # fmt: skip
    assert table["rows"][0]["cells"][:4] == ["a", "a.example", 4, "True"]
    document = await validating.api.do("GET", "/apis/typed.example.com/v1")
    resource = next(listed for listed in document["resources"] if listed["name"] == "websites")
    assert (resource["shortNames"], resource["categories"]) == (["web"], ["all", "sites"])


class WebsiteV2(Website, version="v2", group="versions.example.com"):
    region: str = ""


class WebsiteV1(Website, group="versions.example.com"):
    pass


async def test_all_versions_of_a_kind_are_served(validating: Cluster) -> None:
    await define(validating.api, crd(WebsiteV1, WebsiteV2))
    async with validating.client() as client:
        await Resource(client, WebsiteV1).create(site(validating))
        website = await Resource(client, WebsiteV2).get(validating.key("a"))
    assert (website.api_version, website.region, website.spec.host) == (
        "versions.example.com/v2",
        "",
        "a.example",
    )


class Door(CamelStruct, kw_only=True):
    host: str | None
    mode: Literal["in", "out"] | None
    lock: Lock | None
    colour: str | None = "red"
    marks: dict[str, str | None] = {}
    anything: dict[str, Any] = {}
    keys: set[str] = set()


class Lock(CamelStruct):
    since: datetime | None = None


class DoorStatus(CamelStruct, kw_only=True):
    is_open: bool = False
    conditions: Annotated[list[Condition], MapOf("type")] = []


class DoorKind(CustomResource, group="doors.example.com", version="v1", kind="Door"):
    spec: Door
    status: DoorStatus = msgspec.field(default_factory=DoorStatus)


@pytest.fixture
async def doors(validating: Cluster) -> AsyncIterator[Resource[DoorKind]]:
    await define(validating.api, crd(DoorKind))
    async with validating.client() as client:
        yield Resource(client, DoorKind)


async def test_none_is_written_and_read(doors: Resource[DoorKind], validating: Cluster) -> None:
    metadata = Metadata(name="a", namespace=validating.namespace)
    spec = Door(
        host=None, mode=None, lock=None, colour=None, marks={"k": None}, anything={"a": None, "b": [None]}
    )
    created = await doors.create(DoorKind(spec, metadata=metadata))
    assert created.spec == spec
    assert created.status == DoorStatus()  # the server's default
    created.spec.host, created.spec.colour = "a", "blue"
    changed = await doors.update(created)
    assert changed.spec == created.spec
    changed.spec.host = changed.spec.colour = None
    emptied = await doors.update(changed)
    assert emptied.spec == spec
    emptied.status.is_open = True
    assert (await doors.update_status(emptied)).status.is_open


async def test_an_object_without_the_fields_of_a_newer_class_is_read(
    doors: Resource[DoorKind], validating: Cluster
) -> None:
    created = await doors.create(
        {"metadata": {"name": "b", "namespace": validating.namespace}, "spec": {"anything": {"x": 1}}}
    )
    assert created.spec == Door(host=None, mode=None, lock=None, anything={"x": 1})


async def test_sets_are_written_in_one_order(doors: Resource[DoorKind], validating: Cluster) -> None:
    keys = [f"k{number}" for number in range(8)]
    metadata = Metadata(name="c", namespace=validating.namespace)
    created = await doors.create(
        DoorKind(Door(host=None, mode=None, lock=None, keys=set(keys)), metadata=metadata)
    )
    stored = (await validating.list(api.Resource("doors.example.com/v1", "doors")))[created.key]
    assert stored["spec"]["keys"] == keys


HOSTILE = [
    ("0000-01-01T00:00:00Z", False),
    ("2020-01-01T00:00:00+99:99", False),
    ("2020-01-01T00:00:00x5Z", False),
    ([True], False),
    ("0001-01-01T00:00:00Z", True),
    ("9999-12-31T23:59:59.999999-23:59", True),
]


@pytest.mark.parametrize(("moment", "is_taken"), HOSTILE, ids=str)
async def test_the_server_takes_only_times_that_the_class_can_hold(
    doors: Resource[DoorKind], validating: Cluster, moment: Any, is_taken: bool
) -> None:
    created = await doors.create(
        {"metadata": {"name": "d", "namespace": validating.namespace}, "spec": {"lock": {}}}
    )
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
    for patched in (
        doors.patch(created, {"spec": {"lock": {"since": moment}}}),
        doors.patch_status(created, {"status": {"conditions": [condition]}}),
    ):
        if is_taken:
            assert isinstance(await patched, DoorKind)
        else:
            with pytest.raises(InvalidError):
                await patched


class StrictDoor(CamelStruct, kw_only=True, forbid_unknown_fields=True):
    host: Annotated[str, Meta(min_length=3, pattern="^[a-z]+$")]
    mode: Literal["in"]


class StrictKind(CustomResource, group="loose.example.com", version="v1", kind="Door"):
    spec: StrictDoor


class LooseDoor(CamelStruct, kw_only=True):
    host: str
    mode: str
    newer: str = "n"


class LooseKind(CustomResource, group="loose.example.com", version="v1", kind="Door"):
    spec: LooseDoor


async def test_objects_beyond_the_limits_of_the_class_are_cached_and_reconciled(validating: Cluster) -> None:
    """An older or a newer release wrote them, or the server's definition is another one."""
    await define(validating.api, crd(LooseKind))
    async with validating.client() as client:
        await Resource(client, LooseKind).create(
            LooseKind(
                LooseDoor(host="A!", mode="out"), metadata=Metadata(name="a", namespace=validating.namespace)
            )
        )
        assert (await Resource(client, StrictKind).get(validating.key("a"))).spec.host == "A!"
        seen: asyncio.Queue[StrictKind | None] = asyncio.Queue()
        operator = Operator("doors")

        @operator.controller(StrictKind)
        async def reconcile(request: Request[StrictKind]) -> None:
            if request.namespace == validating.namespace:  # tests share the real server
                seen.put_nowait(request.object)

        async with operator.running(client):
            door = await seen.get()
    assert door is not None
    assert type(door.spec) is StrictDoor
    assert (door.spec.host, door.spec.mode) == ("A!", "out")
