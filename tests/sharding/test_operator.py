"""Managers, operators and factories whose replicas share the objects, on the embedded server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from aioinformer import Client, KubeObject, SharedInformerFactory
from aioinformer.errors import ConfigError
from aioinformer.operator import (
    Context,
    Controller,
    Manager,
    Operator,
    Request,
    RunOptions,
    Watch,
    owner_reference,
)
from aioinformer.sharding import Sharding, slot_in
from aioinformer.sharding.slots import slot_of
from aioinformer.testing import APIServer
from aioinformer.testing.waiting import eventually

SLOTS = 8
FAST: dict[str, Any] = {"lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.1, "move_grace": 0.2}


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer(shards=True) as running:
        yield running


@pytest.fixture
async def client(server: APIServer) -> AsyncIterator[Client]:
    async with Client.from_url(server.url) as running:
        yield running


def new_sharding(client: Client) -> Sharding:
    return Sharding(client, "demo", "default", slots=SLOTS, **FAST)


def create(server: APIServer, name: str, round: str = "0") -> KubeObject:
    obj = {"metadata": {"name": name, "namespace": "default"}, "data": {"round": round}}
    return KubeObject.from_dict(server.create("v1", "configmaps", obj))


class Recorder:
    """A replica with one controller, which records its reconciles."""

    def __init__(self, client: Client, *, seconds: float = 0.0) -> None:
        self.sharding = new_sharding(client)
        self.manager = Manager(client, namespace="default", sharding=self.sharding)
        self.keys: list[tuple[str, bool]] = []
        self.running: set[str] = set()
        self.cancelled: set[str] = set()
        self._seconds = seconds
        informer = self.manager.for_resource("v1", "configmaps")
        self.manager.add(Controller("configmaps", self._reconcile, informer, concurrency=50))

    async def _reconcile(self, request: Request[KubeObject]) -> None:
        self.keys.append((request.name, request.object is None))
        self.running.add(request.name)
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.cancelled.add(request.name)
            raise
        finally:
            self.running.discard(request.name)

    @property
    def slots(self) -> set[int]:
        return set(self.sharding.share.slots)


async def test_replica_that_joins_gets_half_and_each_object_is_reconciled_by_its_owner(
    server: APIServer, client: Client
) -> None:
    objects = [create(server, f"c{number}") for number in range(40)]
    first, second = Recorder(client), Recorder(client)
    async with first.manager:
        await eventually(lambda: len(first.keys) == 40)
        async with second.manager:
            await eventually(lambda: len(first.slots) == len(second.slots) == SLOTS // 2)
            mine = {obj.name for obj in objects if slot_of(obj.uid, SLOTS) in second.slots}
            await eventually(lambda: {name for name, _ in second.keys} == mine)
            await eventually(lambda: len(first.manager.informers[0].store) == 40 - len(mine))
            assert not any(is_gone for _, is_gone in first.keys)  # objects that leave are not deletions
            gone = next(iter(mine))
            server.delete("v1", "configmaps", gone, "default")
            await eventually(lambda: (gone, True) in second.keys)
            assert (gone, True) not in first.keys
        await eventually(lambda: len(first.slots) == SLOTS)
        await eventually(lambda: {name for name, _ in first.keys[40:]} >= mine - {gone})
    assert [lease["metadata"]["name"] for lease in server.list("coordination.k8s.io/v1", "leases")] == [
        "demo-slots"
    ]


async def test_slow_reconcile_is_cancelled_and_ends_before_its_slot_moves(
    server: APIServer, client: Client
) -> None:
    for number in range(16):
        create(server, f"c{number}")
    first, second = Recorder(client, seconds=3600.0), Recorder(client, seconds=3600.0)
    async with first.manager:
        await eventually(lambda: len(first.running) == 16)
        async with second.manager:
            await eventually(lambda: len(second.running) == len(first.cancelled) > 0)
            assert not first.running & second.running
            assert len(first.running | second.running) == 16
            first.manager._grace_period = second.manager._grace_period = 0.0


def test_sharding_and_leader_election_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="leader_elect and shards exclude each other"):
        RunOptions(leader_elect=True, shards=8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slots": 0}, "slots"),
        ({"slots": 2000}, "slots must be from 1 to 1024"),
        ({"key": "name"}, "key must be 'uid', 'namespace' or a function"),
        ({"lease_duration": 1.0}, "lease_duration"),
        ({"lease_duration": 7200.0}, "lease_duration must be at most 3600 seconds"),
        ({"move_grace": -1.0}, "move_grace"),
    ],
)
async def test_wrong_options_are_refused(client: Client, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sharding(client, "demo", "default", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "Big", "a.b", "a" * 41, None])
async def test_wrong_name_is_refused(client: Client, name: Any) -> None:
    with pytest.raises(ConfigError, match="DNS label of at most 40 characters"):
        Sharding(client, name, "default")


async def test_replica_with_another_number_of_slots_does_not_start(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Recorder(client)
    async with replica.manager:
        await eventually(lambda: len(replica.slots) == SLOTS)
        with pytest.raises(
            ConfigError, match=r"default/demo-slots has 8 slots, but this replica is configured for 16"
        ):
            await Sharding(client, "demo", "default", slots=16, **FAST).run()
        assert len(replica.slots) == SLOTS
    assert "given back" not in "".join(
        record.message for record in caplog.records if record.levelname == "WARNING"
    )


async def test_watched_collection_must_be_read_whole(client: Client) -> None:
    manager = Manager(client, sharding=new_sharding(client))
    pods, secrets = manager.for_resource("v1", "pods"), manager.for_resource("v1", "secrets")

    async def reconcile(request: Request[KubeObject]) -> None:
        """Do nothing."""

    with pytest.raises(ConfigError, match=r"secrets is read with shard_by='uid' and needed with ''"):
        manager.add(Controller("pods", reconcile, pods, watches=[Watch(secrets, lambda secret: None)]))
    whole = manager.for_resource("v1", "secrets", shard_by="")
    manager.add(Controller("pods", reconcile, pods, watches=[Watch(whole, lambda secret: None)]))


async def test_operator_reads_each_resource_by_its_role(server: APIServer, client: Client) -> None:
    operator = Operator("websites", events=False)
    seen: set[str] = set()

    @operator.controller("configmaps", owns=["secrets"])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        seen.add(request.name)

    sharding = new_sharding(client)
    owner = create(server, "owner")
    metadata = {"name": "owned", "namespace": "default", "ownerReferences": [owner_reference(owner)]}
    server.create("v1", "secrets", {"metadata": metadata})
    async with operator.manager(client, namespace="default", sharding=sharding) as manager:
        await eventually(lambda: "owner" in seen)
        primary, owned = manager.informers
        await eventually(lambda: slot_in(owned, "default/owned") == slot_in(primary, "default/owner"))
        state = manager.state
        assert state.sharding is not None
        assert state.sharding.owned == tuple(range(SLOTS))
        assert state.sharding.objects == {slot_of(owner.uid, SLOTS): 2}
        assert "owns 8 of 8 slots (0-7); 1 replicas" in str(state)
        metrics = manager.metrics()
        assert 'aioinformer_sharding_owned_slots{name="demo"} 8' in metrics
        assert state.to_dict()["sharding"]["slots"] == SLOTS
    assert {"list", "delete"} <= {verb for right in operator.rights(sharding=True) for verb in right.verbs}


async def test_factory_reads_a_share_and_claims_keep_their_slot(server: APIServer, client: Client) -> None:
    objects = [create(server, f"c{number}") for number in range(20)]
    first, second = new_sharding(client), new_sharding(client)
    cancelled: list[str] = []
    async with first, SharedInformerFactory(client, "default", sharding=first) as factory:
        informer = factory.for_resource("v1", "configmaps")
        await eventually(lambda: len(informer.store) == 20)
        claims = {obj.name: first.claim(obj, partial(cancelled.append, obj.name)) for obj in objects}
        assert all(claims.values())
        async with second:
            await eventually(lambda: len(cancelled) > 0)
            assert not second.share.slots & {first.slot_of(obj) for obj in objects}  # the work has not ended
            for claim in claims.values():
                assert claim is not None
                claim.end()
            await eventually(lambda: len(second.share.slots) == SLOTS // 2)
            assert all(first.owns(obj) is not second.owns(obj) for obj in objects)


async def test_controllers_in_several_namespaces_share_all_their_objects(
    server: APIServer, client: Client
) -> None:
    for namespace in ("red", "blue", "other"):
        server.create("v1", "namespaces", {"metadata": {"name": namespace}})
        for number in range(10):
            for plural in ("configmaps", "secrets"):
                server.create("v1", plural, {"metadata": {"name": f"o{number}", "namespace": namespace}})
    seen: list[dict[str, set[str]]] = []

    def new_manager() -> Manager:
        manager = Manager(client, namespaces=["red", "blue"], sharding=new_sharding(client))
        keys: dict[str, set[str]] = {"configmaps": set(), "secrets": set()}
        seen.append(keys)

        async def reconcile(request: Request[KubeObject], plural: str) -> None:
            keys[plural].add(request.key)

        for plural in keys:
            informer = manager.for_resource("v1", plural)
            manager.add(Controller(plural, partial(reconcile, plural=plural), informer))
        return manager

    wanted = {f"{namespace}/o{number}" for namespace in ("red", "blue") for number in range(10)}
    async with new_manager() as first:
        await eventually(lambda: all(keys == wanted for keys in seen[0].values()))
        async with new_manager() as second:

            def is_shared() -> bool:
                for plural, one, other in zip(seen[1], first.informers, second.informers, strict=True):
                    mine, theirs = (
                        {obj.key for obj in one.store.list()},
                        {obj.key for obj in other.store.list()},
                    )
                    if mine | theirs != wanted or mine & theirs or not mine or seen[1][plural] != theirs:
                        return False
                return True

            await eventually(is_shared)
