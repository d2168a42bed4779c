"""operator/finalizing.py: a finalizer before the first reconcile, cleanup before the deletion."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import Client, ConfigError, KubeObject, contains_finalizer
from aioinformer.errors import InvalidResultError
from aioinformer.operator import Controller, LabelsMatch, Manager, Reconciler, Request, Result
from aioinformer.resources import CachedResource
from aioinformer.testing import Simulation
from aioinformer.testing.errors import StatusError
from tests.virtual_time import simulate_scenario

from .worlds import change, create, quiet

OURS = "example.com/ours"
THEIRS = "example.com/theirs"


class Caretaker(Reconciler[KubeObject]):
    """Records its requests, and cleans up as the test says."""

    finalizer = OURS

    def __init__(self, clean: Callable[[], Any] = lambda: None) -> None:
        self._clean = clean
        self.calls: list[tuple[str, str]] = []

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        assert request.object is not None
        assert contains_finalizer(request.object, OURS)
        assert request.object.metadata.deletion_timestamp is None
        self.calls.append(("reconcile", request.name))
        return None

    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        assert request.object is not None
        assert contains_finalizer(request.object, OURS)
        assert request.object.metadata.deletion_timestamp is not None
        self.calls.append(("cleanup", request.name))
        result: Result | None = self._clean()
        return result


@asynccontextmanager
async def run_caretaker(
    world: Simulation, reconcile: Any, **options: Any
) -> AsyncIterator[tuple[Controller[KubeObject], CachedResource[KubeObject]]]:
    manager = Manager(world.client)
    maps = manager.resource("v1", "configmaps")
    controller = manager.add(Controller("tests", reconcile, maps, **options))
    async with manager:
        yield controller, maps


def finalizers(world: Simulation, name: str) -> list[str] | None:
    """Return an object's finalizers; None if it is gone."""
    try:
        names: list[str] = world.server.get("v1", "configmaps", name)["metadata"].get("finalizers", [])
    except StatusError:
        return None
    return names


@simulate_scenario
async def test_finalizers_work_with_metadata_only(world: Simulation) -> None:
    create(world, "a")
    caretaker = Caretaker()
    manager = Manager(world.client)
    maps = manager.resource("v1", "configmaps", metadata_only=True)
    controller = manager.add(Controller("tests", caretaker, maps))
    async with manager:
        await quiet(controller)
        assert (await maps.get("default/a")).kind == "PartialObjectMetadata"
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller)
        assert (caretaker.calls[0], caretaker.calls[-1]) == (("reconcile", "a"), ("cleanup", "a"))
        assert not world.server.snapshot("v1", "configmaps")


@simulate_scenario
async def test_finalizer_is_added_before_the_first_reconcile_and_removed_after_cleanup(
    world: Simulation,
) -> None:
    create(world, "there-before", metadata={"finalizers": [THEIRS]})
    caretaker = Caretaker()
    async with run_caretaker(world, caretaker) as (controller, _):
        await quiet(controller)
        create(world, "new")
        await quiet(controller)
        assert finalizers(world, "there-before") == [THEIRS, OURS]
        assert finalizers(world, "new") == [OURS]
        assert set(caretaker.calls) == {("reconcile", "there-before"), ("reconcile", "new")}
        world.server.delete("v1", "configmaps", "new")
        assert finalizers(world, "new") == [OURS]
        await quiet(controller)
        assert finalizers(world, "new") is None
        assert caretaker.calls[-1] == ("cleanup", "new")
        assert caretaker.calls.count(("cleanup", "new")) == 1
        assert controller.state.failed == 0


@asynccontextmanager
async def run_selecting(
    world: Simulation, caretaker: Caretaker, **options: Any
) -> AsyncIterator[Controller[KubeObject]]:
    """Care for the objects with a label."""
    manager = Manager(world.client)
    maps = manager.resource("v1", "configmaps", label_selector="app=web")
    controller = manager.add(Controller("tests", caretaker, maps, **options))
    async with manager:
        yield controller


@pytest.mark.parametrize("blocks", [False, True], ids=["no predicate", "predicate"])
def test_an_object_that_leaves_the_selection_loses_the_finalizer(
    blocks: bool, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"predicate": lambda change: change.new is not None} if blocks else {}

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        caretaker = Caretaker()
        async with run_selecting(world, caretaker, **options) as controller:
            create(world, "a", metadata={"labels": {"app": "web"}})
            await quiet(controller)
            assert finalizers(world, "a") == [OURS]
            change(world, "a", metadata={"labels": {"app": "db"}})
            await quiet(controller)
            assert finalizers(world, "a") == []
            world.server.delete("v1", "configmaps", "a")
            await quiet(controller)
            assert finalizers(world, "a") is None
            assert {call for call, _ in caretaker.calls} == {"reconcile"}

    scenario()
    assert (
        "configmaps with app=web: default/a has left the selection app=web: removing the finalizer"
        in caplog.text
    )
    assert "keeps it, and cannot be deleted" in caplog.text


@simulate_scenario
async def test_an_object_that_leaves_the_selection_while_it_is_deleted_is_cleaned_up(
    world: Simulation,
) -> None:
    failures = itertools.chain([StatusError(500, "InternalError", "not yet")], itertools.repeat(None))
    left: list[bool] = []

    def clean() -> None:
        if not left:
            left.append(True)
            change(world, "a", metadata={"labels": {"app": "db"}})
        if (failure := next(failures)) is not None:
            raise failure

    caretaker = Caretaker(clean)
    async with run_selecting(world, caretaker) as controller:
        create(world, "a", metadata={"labels": {"app": "web"}})
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller, 5)
        assert finalizers(world, "a") is None
        assert caretaker.calls.count(("cleanup", "a")) == 2


@simulate_scenario
async def test_an_object_that_comes_back_into_the_selection_keeps_or_gets_its_finalizer(
    world: Simulation,
) -> None:
    caretaker = Caretaker()
    async with run_selecting(world, caretaker) as controller:
        create(world, "a", metadata={"labels": {"app": "web"}})
        await quiet(controller)
        for label in ("db", "web", "db", "web"):
            change(world, "a", metadata={"labels": {"app": label}})
        await quiet(controller, 5)
        assert finalizers(world, "a") == [OURS]


@simulate_scenario
async def test_functions_can_clean_up(world: Simulation) -> None:
    calls: list[str] = []

    async def reconcile(request: Request[KubeObject]) -> None:
        calls.append("reconcile")

    def cleanup(request: Request[KubeObject]) -> None:
        calls.append("cleanup")

    create(world, "a")
    async with run_caretaker(world, reconcile, finalizer=OURS, cleanup=cleanup) as (controller, _):
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller)
        assert finalizers(world, "a") is None
    assert list(dict.fromkeys(calls)) == ["reconcile", "cleanup"]


@pytest.mark.parametrize("is_stopped", [False, True], ids=["overdue", "stopped"])
def test_cancelled_cleanup_keeps_the_finalizer(is_stopped: bool) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        create(world, "a")
        begun = asyncio.Event()

        async def cleanup(request: Request[KubeObject]) -> None:
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                return

        async with run_caretaker(
            world, lambda request: None, finalizer=OURS, cleanup=cleanup, timeout=60
        ) as (
            controller,
            maps,
        ):
            await world.eventually(lambda: finalizers(world, "a") == [OURS])
            await maps.delete("default/a")
            await begun.wait()
            if not is_stopped:
                await asyncio.sleep(100)
                assert controller.state.timed_out
        assert finalizers(world, "a") == [OURS]

    scenario()


@simulate_scenario
async def test_cleanup_may_be_inherited(world: Simulation) -> None:
    class Apprentice(Caretaker):
        pass

    create(world, "a")
    async with run_caretaker(world, apprentice := Apprentice()) as (controller, _):
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller)
        assert finalizers(world, "a") is None
    assert apprentice.calls[-1] == ("cleanup", "a")


@simulate_scenario
async def test_cleanup_that_requeues_is_called_again(world: Simulation) -> None:
    dependents = 3
    times: list[float] = []

    def clean() -> Result | None:
        nonlocal dependents
        times.append(world.now)
        dependents -= 1
        return Result(requeue_after=20) if dependents else None

    create(world, "a")
    async with run_caretaker(world, Caretaker(clean)) as (controller, _):
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller, 30)
        assert finalizers(world, "a") == [OURS]
        await quiet(controller, 30)
        assert finalizers(world, "a") is None
        assert [b - a for a, b in itertools.pairwise(times)] == pytest.approx([20, 20], abs=0.1)


@simulate_scenario
async def test_cleanup_that_raises_keeps_the_object(world: Simulation) -> None:
    answers: list[Any] = [ValueError("not yet"), "nonsense", Result(requeue=True)]

    def clean() -> Any:
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            assert finalizers(world, "a") == [OURS]
            raise answer
        return answer

    create(world, "a")
    caretaker = Caretaker(clean)
    async with run_caretaker(world, caretaker) as (controller, _):
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller, 5)
        assert finalizers(world, "a") is None
        assert caretaker.calls.count(("cleanup", "a")) == 4
        assert controller.state.failed == 2
        assert isinstance(controller.state.last_error, InvalidResultError)


def test_two_controllers_of_the_same_objects_need_different_finalizers() -> None:
    """With a shared finalizer, the first cleanup would release the object before the second."""
    manager = Manager(Client.from_url("http://127.0.0.1:1"))
    maps = manager.resource("v1", "configmaps", namespace="a", label_selector="app=web")

    def controller(name: str, of: CachedResource[Any], finalizer: str | None = OURS) -> Controller[Any]:
        cleanup = None if finalizer is None else print
        return Controller(name, print, of, finalizer=finalizer, cleanup=cleanup)

    manager.add(controller("first", maps))
    for same in (
        maps,
        manager.resource("v1", "configmaps", dict, namespace="a", label_selector="app=web"),
        manager.resource("v1", "configmaps", namespaces=["b", "a"]),
        manager.resource("v1", "configmaps", label_selector="app=web"),
        manager.resource("v1", "configmaps"),
    ):
        with pytest.raises(ConfigError, match=f"second and first have the same objects .* {OURS}"):
            manager.add(controller("second", same))
    others = Manager(Client.from_url("http://127.0.0.1:1"))
    manager.add(controller("theirs", maps, THEIRS))
    manager.add(controller("none", maps, None))
    manager.add(controller("other namespace", manager.resource("v1", "configmaps", namespace="b")))
    manager.add(
        controller("others", manager.resource("v1", "configmaps", namespace="a", label_selector="app=db"))
    )
    manager.add(controller("other resource", manager.resource("v1", "secrets")))
    manager.add(controller("other server", others.resource("v1", "configmaps")))


@simulate_scenario
async def test_finalizers_of_others_are_kept_and_cause_no_call(world: Simulation) -> None:
    create(world, "a", metadata={"finalizers": [THEIRS]})
    caretaker = Caretaker()
    async with run_caretaker(world, caretaker) as (controller, _):
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller)
        assert finalizers(world, "a") == [THEIRS]
        change(world, "a", data={"k": "1"})
        await quiet(controller)
        change(world, "a", metadata={"finalizers": None})
        await quiet(controller)
        assert finalizers(world, "a") is None
        assert caretaker.calls.count(("cleanup", "a")) == 1
        assert controller.state.failed == 0


@simulate_scenario
async def test_object_marked_for_deletion_without_our_finalizer_is_not_reconciled(world: Simulation) -> None:
    create(world, "a", metadata={"finalizers": [THEIRS]})
    world.server.delete("v1", "configmaps", "a")
    caretaker = Caretaker()
    async with run_caretaker(world, caretaker) as (controller, _):
        await quiet(controller)
        assert (finalizers(world, "a"), caretaker.calls) == ([THEIRS], [])
        assert controller.state.failed == 0


@simulate_scenario
async def test_object_deleted_while_the_finalizer_is_added_is_not_reconciled(world: Simulation) -> None:
    caretaker = Caretaker()
    async with run_caretaker(world, caretaker) as (controller, _):
        await quiet(controller)
        world.server.faults.delay(5.0, verb="patch")
        create(world, "a")
        await asyncio.sleep(1)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller, 20)
        assert (finalizers(world, "a"), caretaker.calls) == (None, [])
        assert controller.state.failed == 0


@simulate_scenario
async def test_mark_for_deletion_passes_every_predicate(world: Simulation) -> None:
    create(world, "a", metadata={"labels": {"app": "web"}})
    caretaker = Caretaker()

    def only_new(change: Any) -> bool:
        return change.old is None

    async with run_caretaker(world, caretaker, predicate=LabelsMatch("app=web") & only_new) as (
        controller,
        _,
    ):
        await quiet(controller)
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller)
        assert finalizers(world, "a") is None
        assert caretaker.calls == [("reconcile", "a"), ("cleanup", "a")]


@simulate_scenario
async def test_mark_for_deletion_before_the_start_passes_every_predicate(
    world: Simulation,
) -> None:
    create(world, "a", metadata={"finalizers": [OURS]})
    world.server.delete("v1", "configmaps", "a")
    caretaker = Caretaker()
    async with run_caretaker(world, caretaker, predicate=LabelsMatch("app=web")) as (controller, _):
        await quiet(controller)
        assert finalizers(world, "a") is None
        assert caretaker.calls == [("cleanup", "a")]


@simulate_scenario
async def test_reconciler_reads_its_own_writes(world: Simulation) -> None:
    """Even if events are late: the next reconcile starts after the cache has the last write."""
    written: list[int] = []
    seen: list[int] = []

    async def reconcile(request: Request[KubeObject]) -> Result | None:
        assert request.object is not None
        count = int(request.object.metadata.annotations.get("count", "0"))
        seen.append(count)
        if count == 10:
            return None
        world.network.stall(world.random.random() * 5)
        await maps.patch(request.key, {"metadata": {"annotations": {"count": str(count + 1)}}})
        written.append(count + 1)
        return Result(requeue_after=0.001)

    create(world, "a")
    manager = Manager(world.client)
    maps = manager.resource("v1", "configmaps")
    controller = manager.add(Controller("tests", reconcile, maps))
    async with manager:
        await quiet(controller, 120)
    assert written == list(range(1, 11))
    assert list(dict.fromkeys(seen)) == list(range(11))
    assert seen == sorted(seen)
