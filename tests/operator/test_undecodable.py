"""Operators, when an object does not fit its type: it fails visibly, and is cleaned up all the same."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from aioinformer import CachedResource, UndecodableObject
from aioinformer.errors import DecodeError, UndecodableError
from aioinformer.operator import Controller, LabelsChanged, Manager, Owns, Request, Watch, owner_reference
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from ..narrow import Metadata
from .worlds import Reconciler, change, create, quiet, trigger

FINALIZER = "example.com/f"


class Data(msgspec.Struct):
    node: str


class Map(msgspec.Struct):
    """A ConfigMap that names a node. Its data may lack it, as of an earlier release."""

    metadata: Metadata
    data: Data
    kind: str = ""


FITS: dict[str, Any] = {"data": {"node": "n1"}}
UNFIT: dict[str, Any] = {"data": {"node": None, "other": "x"}}


def maps_of(manager: Manager) -> CachedResource[Map]:
    return manager.resource("v1", "configmaps", Map)


def make_recorder() -> Any:
    """A reconciler of any type of objects."""
    return Reconciler()


def list_failing(controller: Controller[Any]) -> list[tuple[str, str]]:
    return [(failure.key, failure.error) for failure in controller.failing()]


@simulate_scenario
async def test_undecodable_object_is_a_failing_key_until_it_changes(world: Simulation) -> None:
    manager, reconciler = Manager(world.client), make_recorder()
    controller = manager.add(Controller("tests", reconciler, maps_of(manager), predicate=LabelsChanged()))
    create(world, "good", **FITS)
    create(world, "bad", data={"other": "x"})
    async with manager:
        await quiet(controller, 100)
        assert reconciler.keys == ["default/good"]
        ((key, said),) = list_failing(controller)
        assert key == "default/bad"
        assert "not a Map: Object missing required field `node` - at `$.data`" in said
        state = controller.state
        assert (state.failed, state.terminal, state.failing) == (1, 1, 1)
        assert isinstance(state.last_error, UndecodableError)
        assert isinstance(state.last_error, DecodeError)
        ready = manager.ready()
        assert ready
        assert "default/bad" in ready.warnings[0]
        assert "2, 1 undecodable" in str(manager.state)
        change(world, "bad", **FITS)  # the predicate passes no change of data, but this one repairs it
        await quiet(controller, 10)
        assert reconciler.keys == ["default/good", "default/bad"]
        assert list_failing(controller) == []
        assert not manager.ready().warnings
        change(world, "good", **UNFIT)
        await quiet(controller, 10)
        assert [key for key, _ in list_failing(controller)] == ["default/good"]
        world.server.delete("v1", "configmaps", "good", "default")
        await quiet(controller, 10)
        assert reconciler.seen[-1] == ("default/good", None)
        assert list_failing(controller) == []


@simulate_scenario
async def test_controller_without_writes_does_not_reconcile_undecodable_objects(world: Simulation) -> None:
    manager, reconciler = Manager(world.client), make_recorder()
    controller = manager.add(Controller("tests", reconciler, manager.for_resource("v1", "configmaps", Map)))
    create(world, "bad", data={"other": "x"})
    async with manager:
        await quiet(controller, 10)
        assert reconciler.keys == []
        assert [key for key, _ in list_failing(controller)] == ["default/bad"]


@simulate_scenario
async def test_undecodable_object_is_cleaned_up_and_its_finalizer_removed(world: Simulation) -> None:
    cleaned: list[Any] = []
    manager, reconciler = Manager(world.client), make_recorder()

    async def cleanup(request: Request[Map]) -> None:
        obj: Any = request.object
        cleaned.append(
            (request.key, type(obj), obj.uid, obj.metadata.finalizers, obj.last and obj.last.data.node)
        )

    maps = maps_of(manager)
    controller = manager.add(Controller("tests", reconciler, maps, finalizer=FINALIZER, cleanup=cleanup))
    create(world, "a", **FITS)
    never = create(world, "never", metadata={"finalizers": [FINALIZER, "example.com/other"]})
    create(world, "without")
    async with manager:
        await quiet(controller)
        stored = change(world, "a", **UNFIT)
        await quiet(controller)
        for name in ("a", "never", "without"):
            world.server.delete("v1", "configmaps", name, "default")
        await quiet(controller, 10)
        assert sorted(cleaned) == [
            ("default/a", UndecodableObject, stored["metadata"]["uid"], [FINALIZER], "n1"),
            (
                "default/never",
                UndecodableObject,
                never["metadata"]["uid"],
                [FINALIZER, "example.com/other"],
                None,
            ),
        ]
        (left,) = world.server.list("v1", "configmaps")
        assert (left["metadata"]["name"], left["metadata"]["finalizers"]) == ("never", ["example.com/other"])
        assert list_failing(controller) == []
        assert set(reconciler.keys) == {"default/a"}


@simulate_scenario
async def test_cleanup_that_reads_the_content_fails_visibly_and_is_retried(world: Simulation) -> None:
    nodes: list[str] = []
    manager = Manager(world.client)

    async def cleanup(request: Request[Map]) -> None:
        assert request.object is not None
        nodes.append(request.object.data.node)

    maps = maps_of(manager)
    controller = manager.add(Controller("tests", make_recorder(), maps, finalizer=FINALIZER, cleanup=cleanup))
    create(world, "bad", metadata={"finalizers": [FINALIZER]}, data={"other": "x"})
    async with manager:
        await quiet(controller)
        world.server.delete("v1", "configmaps", "bad", "default")
        await quiet(controller, 60)
        ((key, said),) = list_failing(controller)
        assert key == "default/bad"
        assert "has no attribute 'data'" in said
        assert controller.queue.num_requeues("default/bad") > 5
        change(world, "bad", **FITS)
        await quiet(controller, 10)
        assert nodes == ["n1"]
        assert world.server.list("v1", "configmaps") == []
        assert list_failing(controller) == []


@simulate_scenario
async def test_owner_of_an_undecodable_object_is_reconciled(world: Simulation) -> None:
    manager, reconciler = Manager(world.client), make_recorder()
    owners = manager.for_resource("v1", "secrets")
    owned = manager.for_resource("v1", "configmaps", Map)
    controller = manager.add(Controller("tests", reconciler, owners, owns=[Owns(owned, LabelsChanged())]))
    first, second = (
        {"ownerReferences": [owner_reference(create(world, name, "secrets"))]} for name in ("first", "second")
    )
    create(world, "child", metadata=first, **FITS)
    async with manager:
        await quiet(controller)
        steps: list[tuple[Any, set[str]]] = [
            (lambda: change(world, "child", **UNFIT), {"default/first"}),
            (lambda: change(world, "child", metadata=second), {"default/first", "default/second"}),
            (lambda: change(world, "child", **FITS), {"default/first", "default/second"}),
            (lambda: change(world, "child", **UNFIT), {"default/second"}),
            (lambda: world.server.delete("v1", "configmaps", "child", "default"), {"default/second"}),
        ]
        for act, wanted in steps:
            reconciler.seen.clear()
            act()
            await quiet(controller)
            assert set(reconciler.keys) == wanted
        assert trigger(controller, 1).failed == 0


@simulate_scenario
async def test_undecodable_owner_is_found_by_its_owned_objects(world: Simulation) -> None:
    manager = Manager(world.client)
    owners = manager.for_resource("v1", "configmaps", Map)
    controller = manager.add(
        Controller("tests", make_recorder(), owners, owns=[manager.for_resource("v1", "secrets")])
    )
    owner = create(world, "owner", data={"other": "x"})
    async with manager:
        await quiet(controller)
        failed = controller.state.failed
        create(world, "child", "secrets", metadata={"ownerReferences": [owner_reference(owner)]})
        await quiet(controller)
        assert controller.state.failed == failed + 1


@simulate_scenario
async def test_map_function_is_not_called_with_an_undecodable_object_and_that_is_visible(
    world: Simulation,
) -> None:
    mapped: list[Map] = []

    def mapping(obj: Map) -> Request[Any]:
        mapped.append(obj)
        return Request("default", obj.data.node)

    manager, reconciler = Manager(world.client), make_recorder()
    watched = manager.for_resource("v1", "configmaps", Map)
    controller = manager.add(
        Controller(
            "tests", reconciler, manager.for_resource("v1", "secrets"), watches=[Watch(watched, mapping)]
        )
    )
    create(world, "a", **FITS)
    create(world, "never", data={"other": "x"})
    async with manager:
        await quiet(controller)
        assert trigger(controller, 1).failed == 1
        reconciler.seen.clear()
        change(world, "a", **UNFIT)
        await quiet(controller)
        assert reconciler.keys == ["default/n1"]
        state = trigger(controller, 1)
        assert state.failed == 2
        assert "default/a" in str(state.last_error)
        change(world, "a", data={"node": "n2"})
        await quiet(controller)
        assert reconciler.keys[1:] == ["default/n1", "default/n2"]
        change(world, "a", **UNFIT)
        world.server.delete("v1", "configmaps", "a", "default")
        await quiet(controller)
        assert "default/n2" in reconciler.keys[3:]
        assert all(type(obj) is Map for obj in mapped)


@simulate_scenario
async def test_writes_whose_answer_does_not_fit_are_awaited_by_reads(world: Simulation) -> None:
    manager = Manager(world.client)
    maps = maps_of(manager)
    controller = manager.add(Controller("tests", make_recorder(), maps))
    create(world, "a", data={"other": "x"})
    async with manager:
        await quiet(controller)
        (unfit,) = maps.informer.store.undecodable()
        patched: Any = await maps.patch(unfit, {"metadata": {"labels": {"a": "1"}}})
        assert isinstance(patched, UndecodableObject)
        assert patched.metadata.labels == {"a": "1"}
        kept: Any = await maps.ensure_finalizer(unfit, FINALIZER)
        assert (type(kept), kept.metadata.finalizers) == (UndecodableObject, [FINALIZER])
        version = kept.resource_version
        assert await maps.ensure_finalizer(kept, FINALIZER) is kept
        with pytest.raises(DecodeError, match="not a Map"):
            await maps.get("default/a")
        (now,) = maps.informer.store.undecodable()
        assert now.resource_version == version
        dropped: Any = await maps.drop_finalizer(now, FINALIZER)
        assert (type(dropped), dropped.metadata.finalizers) == (UndecodableObject, [])
        with pytest.raises(DecodeError, match="not a Map"):
            await maps.patch("default/a", {"metadata": {"labels": {"a": "2"}}})
        with pytest.raises(DecodeError, match="not a Map"):
            await maps.get("default/a")
        (now,) = maps.informer.store.undecodable()
        assert now.metadata.labels == {"a": "2"}
        assert await maps.delete(dropped) is None


@simulate_scenario
async def test_key_whose_object_is_gone_is_given_up_after_twenty_failures(world: Simulation) -> None:
    def fail(request: Request[Any]) -> None:
        raise OSError("the store is down")

    manager, reconciler = Manager(world.client), Reconciler(fail)
    controller = manager.add(Controller("tests", reconciler, manager.for_resource("v1", "configmaps")))
    create(world, "a")
    async with manager:
        await asyncio.sleep(60)
        before = len(reconciler.seen)
        assert before > 5
        assert list_failing(controller)
        world.server.delete("v1", "configmaps", "a", "default")
        await asyncio.sleep(30_000)
        assert len(reconciler.seen) == before + 20
        assert list_failing(controller) == []
        state = controller.state
        assert (state.failing, state.given_up) == (0, 1)
        assert "1 keys given up, whose objects are gone" in str(state)
        samples = {sample.name: sample.value for sample in controller.samples()}
        assert (samples["aioinformer_failing_keys"], samples["aioinformer_given_up_keys_total"]) == (0, 1)
        create(world, "a")
        await asyncio.sleep(60)
        assert len(reconciler.seen) > before + 25
        assert list_failing(controller)
