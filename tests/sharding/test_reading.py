"""Reading a share, on the embedded server and on the real one, with and without its feature gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from aioinformer import (
    ApiError,
    Client,
    KubeObject,
    ListOptions,
    ListWatch,
    Resource,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.operator import owner_reference
from aioinformer.sharding import Sharding
from aioinformer.sharding.slots import selector_of, slot_of
from aioinformer.testing import APIServer
from aioinformer.testing.waiting import eventually
from tests.kubernetes.controlplane import ControlPlane

SLOTS = 8
REAL = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes"), pytest.mark.timeout(600)]


class World:
    """A server with ConfigMaps in a namespace of their own."""

    def __init__(self, client: Client, namespace: str, selects: bool) -> None:
        self.client, self.namespace, self.selects = client, namespace, selects
        self.configmaps: Resource[KubeObject] = Resource(client, "v1", "configmaps")
        self.sharding = Sharding(client, "demo", "default", slots=SLOTS)

    async def create(self, name: str, **metadata: Any) -> KubeObject:
        return await self.configmaps.create(
            {"metadata": {"name": name, "namespace": self.namespace, **metadata}, "data": {"a": "b"}}
        )

    async def change(self, name: str, value: str) -> None:
        await self.configmaps.apply(
            {"metadata": {"name": name, "namespace": self.namespace}, "data": {"a": value}}, force=True
        )

    def list_watch(self, **options: Any) -> ListWatch:
        return ListWatch.for_resource(self.client, "v1", "configmaps", self.namespace, **options)


@pytest.fixture(
    params=[
        "embedded",
        "embedded without the gate",
        pytest.param("real", marks=REAL),
        pytest.param("real without the gate", marks=REAL),
    ]
)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    selects = "without" not in request.param
    if "embedded" in request.param:
        async with APIServer(shards=selects) as server, Client.from_url(server.url) as client:
            server.create("v1", "namespaces", {"metadata": {"name": "mine"}})
            yield World(client, "mine", selects)
    else:
        name = "sharded_control_plane" if selects else "control_plane"
        control_plane: ControlPlane = request.getfixturevalue(name)
        async with Client.from_kubeconfig(path=control_plane.kubeconfig) as client:
            yield World(client, control_plane.create_namespace(), selects)


def _names(objects: list[KubeObject], slots: set[int]) -> set[str]:
    return {obj.name for obj in objects if slot_of(obj.uid, SLOTS) in slots}


@pytest.mark.parametrize("protobuf", [False, True])
async def test_server_selects_by_the_hash_of_the_uid_and_says_so(world: World, protobuf: bool) -> None:
    objects = [await world.create(f"c{number}") for number in range(40)]
    selector = selector_of({1, 2, 5}, SLOTS)
    listed = await world.list_watch(protobuf=protobuf).list(ListOptions(shard_selector=selector))
    names = {
        KubeObject.from_bytes(item).name if isinstance(item, bytes) else item.name for item in listed.items
    }
    assert listed.shard_selector == (selector if world.selects else "")
    own = {obj.name for obj in objects}
    assert names & own == (_names(objects, {1, 2, 5}) if world.selects else own)


@pytest.mark.parametrize(
    "selector",
    [
        "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')",
        "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
        "nonsense",
    ],
)
async def test_wrong_selector_is_refused_by_servers_that_select(world: World, selector: str) -> None:
    list_watch = world.list_watch()
    if not world.selects:
        await list_watch.list(ListOptions(shard_selector=selector))
        return
    with pytest.raises(ApiError, match="invalid shard selector") as refused:
        await list_watch.list(ListOptions(shard_selector=selector))
    assert refused.value.status == 500


async def _until(condition: Callable[[], object]) -> None:
    await eventually(condition, within=30.0, every=0.02)


async def test_informer_reads_its_slots_and_says_who_selects(world: World) -> None:
    objects = [await world.create(f"c{number}") for number in range(40)]
    world.sharding.share.change({0, 1, 2})
    reader = world.sharding.read(world.list_watch())
    async with SharedIndexInformer(reader, KubeObject) as informer:
        await informer.wait_synced(30)
        mine = _names(objects, {0, 1, 2})
        assert {obj.name for obj in informer.store.list()} - {"kube-root-ca.crt"} == mine
        assert world.sharding.state.is_filtered_by_server == {reader.description: world.selects}
        late = [await world.create(f"late{number}") for number in range(20)]
        mine |= _names(late, {0, 1, 2})
        await _until(lambda: {obj.name for obj in informer.store.list()} - {"kube-root-ca.crt"} == mine)
        gone = next(obj for obj in objects if obj.name in mine)
        await world.configmaps.delete(gone.key)
        await _until(lambda: gone.key not in informer.store)


async def test_slots_that_move_do_not_relist_the_others(world: World) -> None:
    objects = [await world.create(f"c{number}") for number in range(60)]
    world.sharding.share.change({0, 1, 2})
    events: list[tuple[str, str]] = []
    async with SharedIndexInformer(world.sharding.read(world.list_watch()), KubeObject) as informer:
        informer.add_event_handler(
            on_add=lambda obj, first: events.append(("add", obj.name)),
            on_update=lambda old, new: events.append(("update", new.name)),
            on_delete_object=lambda obj: events.append(("delete", obj.name)),
        )
        await informer.wait_synced(30)

        def has(slots: set[int]) -> bool:
            return {o.name for o in informer.store.list()} - {"kube-root-ca.crt"} == _names(objects, slots)

        await _until(
            lambda: (
                len({event for event in events if event[1].startswith("c")})
                == len(_names(objects, {0, 1, 2}))
            )
        )
        for slots in ({0, 1, 2, 3, 6}, {1, 2, 3}, set[int](), {4, 5}, set(range(SLOTS))):
            before = _names(objects, set(world.sharding.share.slots))
            events.clear()
            world.sharding.share.change(slots)
            after = _names(objects, slots)
            await _until(lambda wanted=slots: has(wanted))  # type: ignore[misc]
            await _until(
                lambda old=before, new=after: (  # type: ignore[misc]
                    {e for e in events if e[1] != "kube-root-ca.crt"}
                    == {*(("delete", name) for name in old - new), *(("add", name) for name in new - old)}
                )
            )
            changed = next(iter(sorted(after)), None)
            if changed is not None:
                await world.change(changed, str(slots))
                await _until(lambda name=changed: ("update", name) in events)  # type: ignore[misc]
        assert sum(reflector.lists for reflector in informer.state.reflectors) == 1


async def test_change_during_a_move_is_not_lost(world: World) -> None:
    """Objects change and come while slots move back and forth; in the end the cache equals the server."""
    objects = [await world.create(f"c{number}") for number in range(30)]
    world.sharding.share.change({0})
    async with SharedIndexInformer(world.sharding.read(world.list_watch()), KubeObject) as informer:
        await informer.wait_synced(30)

        async def move() -> None:
            for step in range(30):
                world.sharding.share.change({slot for slot in range(SLOTS) if (slot * 7 + step) % 3})
                await asyncio.sleep(0.01 * (step % 4))

        async def write() -> None:
            for step in range(60):
                if step % 10 == 9:
                    await world.configmaps.delete(f"{world.namespace}/c{step // 10}")
                else:
                    await world.change(f"c{10 + step % 20}", str(step))

        async with asyncio.TaskGroup() as group:
            group.create_task(move())
            group.create_task(write())
        wanted = set(world.sharding.share.slots)
        newest = await world.configmaps.list(world.namespace)
        assert len(newest) >= len(objects) - 6

        def equal() -> bool:
            cached = {obj.key: obj.resource_version for obj in informer.store.list()}
            return cached == {
                obj.key: obj.resource_version for obj in newest if slot_of(obj.uid, SLOTS) in wanted
            }

        await _until(equal)


class Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class Typed(msgspec.Struct):
    metadata: Meta


async def test_typed_objects_need_no_uid(world: World) -> None:
    objects = [await world.create(f"c{number}") for number in range(30)]
    world.sharding.share.change({0, 1, 2, 3})
    async with SharedIndexInformer(world.sharding.read(world.list_watch()), Typed) as informer:
        await informer.wait_synced(30)
        for slots in ({2, 3, 4, 5}, {5}):
            world.sharding.share.change(slots)
            wanted = _names(objects, slots)
            await _until(
                lambda names=wanted: (  # type: ignore[misc]
                    {o.metadata.name for o in informer.store.list()} - {"kube-root-ca.crt"} == names
                )
            )
        assert informer.state.undecodable == 0


@pytest.mark.parametrize(
    "options",
    [{"metadata_only": True}, {"protobuf": True}, {"compress": True}],
    ids=lambda options: next(iter(options)),
)
async def test_slots_move_for_each_way_of_reading(world: World, options: dict[str, Any]) -> None:
    objects = [await world.create(f"c{number}") for number in range(20)]
    world.sharding.share.change({0, 1, 2, 3})
    factory = SharedInformerFactory(world.client, world.namespace, sharding=world.sharding)
    informer = factory.for_resource("v1", "configmaps", **options)
    async with factory:
        for slots in ({0, 1, 2, 3}, {2, 3, 4, 5}, set[int](), {5, 6}):
            world.sharding.share.change(slots)
            wanted = _names(objects, slots)
            await _until(
                lambda names=wanted: (  # type: ignore[misc]
                    {obj.metadata.name for obj in informer.store.list()} - {"kube-root-ca.crt"} == names
                )
            )


class Strict(msgspec.Struct):
    metadata: Meta
    immutable: bool


async def test_objects_that_do_not_fit_leave_with_their_slots(world: World) -> None:
    objects = [await world.create(f"c{number}") for number in range(20)]
    world.sharding.share.change({0, 1, 2, 3})
    async with SharedIndexInformer(world.sharding.read(world.list_watch()), Strict) as informer:
        for slots in ({0, 1, 2, 3}, {2, 3, 4, 5}, set[int](), {5, 6}):
            world.sharding.share.change(slots)
            wanted = {f"{world.namespace}/{name}" for name in _names(objects, slots)}
            await _until(
                lambda keys=wanted: (  # type: ignore[misc]
                    {obj.key for obj in informer.store.undecodable() if "kube-root" not in obj.key} == keys
                )
            )


async def test_owned_objects_follow_their_owner(world: World) -> None:
    owner = await world.create("owner")
    for number in range(12):
        await world.create(f"owned{number}", ownerReferences=[owner_reference(owner)])
    slot = slot_of(owner.uid, SLOTS)
    world.sharding.share.change({slot})
    async with SharedIndexInformer(world.sharding.read(world.list_watch(), "owner"), KubeObject) as informer:
        await informer.wait_synced(30)
        names = {obj.name for obj in informer.store.list()}
        assert {f"owned{number}" for number in range(12)} <= names
        world.sharding.share.change({(slot + 1) % SLOTS})
        await _until(lambda: not any(obj.name.startswith("owned") for obj in informer.store.list()))
