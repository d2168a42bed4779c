"""operator/informer_triggers.py: changes that reconcile an object's owner."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest

from aioinformer.operator import (
    Controller,
    LabelsMatch,
    Manager,
    Owns,
    Predicate,
    When,
    informer_triggers,
    owner_reference,
)
from aioinformer.testing import Simulation, simulate
from tests.virtual_time import simulate_scenario

from .worlds import CONTAINERS, Reconciler, change, create, quiet, trigger

LONG = "x" * 500_000

WHAT_TRIGGERS_KEEP = [
    tracemalloc.Filter(True, f"*/aioinformer/{where}") for where in ("operator/*", "objects.py")
]

OF_UPDATES = When(lambda change: change.is_update)


def child_of(owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [owner_reference(owner) | more]}}


def has_seen(controller: Controller[Any], pods: int) -> bool:
    return trigger(controller, 1).seen >= pods


@contextmanager
def hold_watches(world: Simulation, plural: str) -> Iterator[None]:
    """While inside, watches of a collection deliver nothing."""
    forbidden = [world.server.forbid(verb, plural) for verb in ("list", "watch")]
    world.network.cut()
    try:
        yield
    finally:
        for fault in forbidden:
            fault.remove()


@asynccontextmanager
async def run_owner(
    world: Simulation,
    predicate: Predicate | None = None,
    *,
    metadata_only: bool = False,
    controller_only: bool = True,
) -> AsyncIterator[tuple[Reconciler, Controller[Any]]]:
    """Run a controller of maps that own pods; existing objects have been reconciled."""
    reconciler = Reconciler()
    manager = Manager(world.client)
    maps, pods = (
        manager.for_resource("v1", plural, metadata_only=metadata_only) for plural in ("configmaps", "pods")
    )
    owns = [Owns(pods, controller_only=controller_only)]
    controller = manager.add(Controller("tests", reconciler, maps, predicate=predicate, owns=owns))
    async with manager:
        await quiet(controller)
        reconciler.seen.clear()
        yield reconciler, controller


@simulate_scenario
async def test_change_of_an_owned_object_reconciles_its_owner(world: Simulation) -> None:
    owner = create(world, "owner")
    other = create(world, "other")
    async with run_owner(world) as (reconciler, controller):
        create(world, "mine", "pods", **{**CONTAINERS, **child_of(owner)})
        create(world, "not-the-controller", "pods", **{**CONTAINERS, **child_of(other, controller=False)})
        create(world, "another-kind", "pods", **{**CONTAINERS, **child_of(other, kind="Secret")})
        create(world, "another-group", "pods", **{**CONTAINERS, **child_of(other, apiVersion="x.io/v1")})
        create(world, "nobodys", "pods", **CONTAINERS)
        await quiet(controller)
        assert reconciler.keys == ["default/owner"]
        change(world, "mine", "pods", metadata={"labels": {"a": "b"}})
        await quiet(controller)
        world.server.delete("v1", "pods", "mine", grace_period_seconds=0)
        await quiet(controller)
        assert len(reconciler.keys) in (3, 4)  # a pod is marked for deletion, then deleted
        assert set(reconciler.keys) == {"default/owner"}
        assert trigger(controller, 1).name.endswith("owned")


@simulate_scenario
async def test_changes_before_the_owners_are_cached_are_not_lost(world: Simulation) -> None:
    owner, namesake = create(world, "owner"), create(world, "namesake", "secrets")
    create(world, "namesake")
    create(world, "mine", "pods", **{**CONTAINERS, **child_of(owner)})
    create(world, "another-kind", "pods", **{**CONTAINERS, **child_of(namesake)})
    reconciler = Reconciler()
    manager = Manager(world.client)
    maps, pods = (manager.for_resource("v1", plural) for plural in ("configmaps", "pods"))
    controller = manager.add(Controller("tests", reconciler, maps, predicate=OF_UPDATES, owns=[pods]))
    forbidden = world.server.forbid("list", "configmaps"), world.server.forbid("watch", "configmaps")
    async with manager:
        await asyncio.sleep(5)
        change(world, "mine", "pods", metadata={"labels": {"a": "b"}})
        await asyncio.sleep(5)
        assert (reconciler.keys, trigger(controller, 1).seen) == ([], 3)
        for fault in forbidden:
            fault.remove()
        await world.eventually(lambda: controller.state.reconciles)
        await quiet(controller)
        assert reconciler.keys == ["default/owner"]


@pytest.mark.parametrize("metadata_only", [False, True])
def test_changes_before_an_owner_is_cached_are_not_lost(metadata_only: bool) -> None:
    """Even after the first list: the watch of the owners may be behind."""

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        async with run_owner(world, OF_UPDATES, metadata_only=metadata_only) as (reconciler, controller):
            with hold_watches(world, "configmaps"):
                owner, namesake = create(world, "owner"), create(world, "namesake", "secrets")
                create(world, "namesake")
                create(world, "mine", "pods", **CONTAINERS, **child_of(owner))
                if not metadata_only:  # metadata has no kind
                    create(world, "another-kind", "pods", **CONTAINERS, **child_of(namesake))
                await world.eventually(lambda: trigger(controller, 1).seen == 2 - metadata_only)
                assert reconciler.keys == []
            await world.eventually(lambda: trigger(controller, 0).seen == 2)
            await quiet(controller)
            assert reconciler.keys == ["default/owner"]

    scenario()


def test_number_of_awaited_owners_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_triggers, "MOST_AWAITED", 4)  # keys; an owner may have two

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        names = ["first", "second", "third"]
        async with run_owner(world, OF_UPDATES) as (reconciler, controller):
            with hold_watches(world, "configmaps"):
                for name in names:
                    create(world, name, "pods", **CONTAINERS, **child_of(create(world, name)))
                    await quiet(controller, 60)
                assert trigger(controller, 1).seen == 3
            await world.eventually(lambda: trigger(controller, 0).seen == 3)
            await quiet(controller)
            assert sorted(reconciler.keys) == ["default/second", "default/third"]

    scenario()


def test_awaited_owners_are_never_dropped_before_the_first_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_triggers, "MOST_AWAITED", 4)  # keys; an owner may have two

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        names = ["first", "second", "third"]
        for name in names:
            create(world, name, "pods", **CONTAINERS, **child_of(create(world, name)))
        reconciler = Reconciler()
        manager = Manager(world.client)
        maps, pods = (manager.for_resource("v1", plural) for plural in ("configmaps", "pods"))
        controller = manager.add(Controller("tests", reconciler, maps, predicate=OF_UPDATES, owns=[pods]))
        forbidden = world.server.forbid("list", "configmaps"), world.server.forbid("watch", "configmaps")
        async with manager:
            await world.eventually(lambda: trigger(controller, 1).seen == 3)
            for fault in forbidden:
                fault.remove()
            await world.eventually(lambda: trigger(controller, 0).seen == 3)
            await quiet(controller)
        assert sorted(reconciler.keys) == [f"default/{name}" for name in names]

    scenario()


@pytest.mark.parametrize("is_kind_known", [True, False])
@pytest.mark.parametrize(
    "lies",
    [
        [[{"name": f"{number}{LONG}"}] for number in range(30)],
        [[{"name": "one", "kind": f"{number}{LONG}"}] for number in range(30)],
        [
            [{"name": "one", "kind": f"{at + more}{LONG[:900]}"} for more in range(2000)]
            for at in range(0, 12_000, 2000)
        ],
    ],
    ids=["long names", "long kinds", "many kinds"],
)
def test_owners_that_never_exist_take_no_memory(
    is_kind_known: bool, lies: list[list[dict[str, str]]]
) -> None:
    """Users can write any owner references, as often as they like."""

    async def scenario(world: Simulation) -> None:
        if is_kind_known:
            create(world, "first")
        create(world, "mine", "pods", metadata={"finalizers": ["example.com/stays"]}, **CONTAINERS)
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}
        async with run_owner(world, controller_only=False) as (reconciler, controller):
            tracemalloc.start()
            try:
                for count, lie in enumerate(lies, start=2):
                    references = [reference | false_owner for false_owner in lie]
                    change(world, "mine", "pods", metadata={"ownerReferences": references})
                    await world.eventually(partial(has_seen, controller, count))
                await quiet(controller)
                kept = tracemalloc.take_snapshot().filter_traces(WHAT_TRIGGERS_KEEP).statistics("filename")
            finally:
                tracemalloc.stop()
            assert sum(cache.size for cache in kept) < 6_000_000
            assert reconciler.keys == []

    simulate(scenario, seed=0, shrink=False)


@simulate_scenario
async def test_owner_is_found_by_metadata_only(world: Simulation) -> None:
    owner = create(world, "owner")
    async with run_owner(world, metadata_only=True) as (reconciler, controller):
        create(world, "mine", "pods", **{**CONTAINERS, **child_of(owner)})
        await quiet(controller)
        assert reconciler.keys == ["default/owner"]


@simulate_scenario
async def test_recreated_owner_is_reconciled_for_objects_of_its_predecessor(world: Simulation) -> None:
    owner = create(world, "owner")
    owned = child_of(owner)
    owned["metadata"]["finalizers"] = ["example.com/stays"]
    create(world, "mine", "pods", **CONTAINERS, **owned)
    async with run_owner(world) as (reconciler, controller):
        world.server.delete("v1", "configmaps", "owner")
        create(world, "owner")
        await quiet(controller, 10)
        reconciler.seen.clear()
        change(world, "mine", "pods", metadata={"finalizers": None})
        assert "default/mine" not in world.server.snapshot("v1", "pods"), "it was to go with its owner"
        await quiet(controller)
        assert reconciler.keys == ["default/owner"]


@simulate_scenario
async def test_cluster_scoped_owners_and_owners_that_are_not_controllers(world: Simulation) -> None:
    node = world.server.create("v1", "nodes", {"metadata": {"name": "node-1"}})
    reconciler = Reconciler()
    manager = Manager(world.client)
    nodes, pods = (manager.for_resource("v1", plural) for plural in ("nodes", "pods"))
    controller = manager.add(
        Controller("tests", reconciler, nodes, owns=[Owns(pods, LabelsMatch("app"), controller_only=False)])
    )
    async with manager:
        await quiet(controller)
        reconciler.seen.clear()
        owned = child_of(node, controller=False)
        create(world, "unlabelled", "pods", **CONTAINERS, **owned)
        owned["metadata"]["labels"] = {"app": "web"}
        create(world, "labelled", "pods", **CONTAINERS, **owned)
        await quiet(controller)
        assert reconciler.keys == ["node-1"]
