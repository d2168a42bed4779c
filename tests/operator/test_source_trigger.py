"""operator/source_trigger.py: requests from sources, and sources that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from itertools import pairwise
from typing import Any

import pytest

from aioinformer.operator import Controller, Manager, Request, TriggerState
from aioinformer.operator.source_trigger import SourceTrigger
from aioinformer.testing import Simulation
from aioinformer.workqueue import WorkQueue
from tests.virtual_time import simulate_scenario

from ..virtual_time import virtual_time
from .worlds import Reconciler, elector, feed_queue, quiet, run_controller


def lister_watcher_of(controller: Controller[Any], number: int = 0) -> TriggerState:
    return controller.state.triggers[1 + number]


async def fails_at_its_end() -> AsyncIterator[Request[Any]]:
    try:
        await asyncio.sleep(3600)
        yield Request("default", "a")
    finally:
        raise ConnectionError("could not unsubscribe")


async def makes_a_failure_of_it() -> AsyncIterator[Request[Any]]:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError as error:
        raise ConnectionError("closed") from error
    yield Request("default", "a")


async def swallows_it() -> AsyncIterator[Request[Any]]:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        yield Request("default", "a")


@simulate_scenario
async def test_requests_of_sources_are_reconciled(world: Simulation) -> None:
    async def ticks() -> AsyncIterator[Request[Any]]:
        for number in range(3):
            await asyncio.sleep(10)
            yield Request("default", str(number))

    reconciler = Reconciler()
    async with run_controller(world, reconciler, sources=[ticks()]) as controller:
        await quiet(controller, 25)
        assert reconciler.keys == ["default/0", "default/1"]
        assert lister_watcher_of(controller).running
        await quiet(controller, 25)
        state = lister_watcher_of(controller)
        assert (state.seen, state.passed, state.failed, state.running) == (3, 3, 0, False)
        assert str(state).endswith("ended")


@simulate_scenario
async def test_failed_source_is_restarted_if_it_is_a_function(world: Simulation) -> None:
    begun: list[float] = []

    async def source() -> AsyncIterator[Request[Any]]:
        begun.append(world.now)
        yield Request("default", "a")
        raise ConnectionError("lost")

    reconciler = Reconciler()
    async with run_controller(world, reconciler, sources=[source, source()]) as controller:
        await asyncio.sleep(3600)
        restarting, failed = lister_watcher_of(controller), lister_watcher_of(controller, 1)
        assert (failed.seen, failed.failed, failed.running) == (1, 1, False)
        assert restarting.running
        assert 60 < restarting.failed < 70, "once a minute in the end"
        assert restarting.seen == restarting.failed


@simulate_scenario
async def test_restart_delay_is_reset_after_a_long_run(world: Simulation) -> None:
    begun: list[float] = []

    async def source() -> AsyncIterator[Request[Any]]:
        begun.append(world.now)
        await asyncio.sleep(600 if len(begun) % 5 == 0 else 0)
        if len(begun) == 3:
            raise asyncio.CancelledError
        if begun:
            raise ConnectionError("lost")
        yield Request("default", "a")

    async with run_controller(world, Reconciler(), sources=[source]):
        await asyncio.sleep(700)
    pauses = [later - earlier for earlier, later in pairwise(begun)]
    assert pauses[:6] == pytest.approx([1, 2, 4, 8, 601, 2], abs=0.01)


@simulate_scenario
async def test_invalid_request_is_counted_as_a_failure(world: Simulation) -> None:
    async def source() -> AsyncIterator[Any]:
        yield "default/a"
        yield Request("default", "b")

    reconciler = Reconciler()
    async with run_controller(world, reconciler, sources=[source]) as controller:
        await quiet(controller)
        assert reconciler.keys == ["default/b"]
        state = lister_watcher_of(controller)
        assert (state.seen, state.passed, state.failed) == (2, 1, 1)
        assert "not a Request" in str(state.last_error)


async def test_source_that_never_waits_does_not_block_the_event_loop() -> None:
    many, stopped = 200_000, asyncio.Event()

    async def source() -> AsyncIterator[Request[Any]]:
        for _ in range(many):
            if stopped.is_set():
                return
            yield Request("default", "a")

    trigger, queue = SourceTrigger(source), WorkQueue[str]()
    asyncio.get_running_loop().call_soon(stopped.set)
    await trigger.run(queue)
    assert trigger.seen < many


@simulate_scenario
async def test_sources_are_closed_at_the_end(world: Simulation) -> None:
    closed: list[str] = []

    async def source() -> AsyncIterator[Request[Any]]:
        try:
            await asyncio.sleep(3600)
            yield Request("default", "a")
        finally:
            closed.append("closed")

    async with run_controller(world, Reconciler(), sources=[source]):
        await asyncio.sleep(1)
    assert closed == ["closed"]


@pytest.mark.parametrize("source", [fails_at_its_end, makes_a_failure_of_it, swallows_it])
@virtual_time
async def test_cancelled_source_is_not_restarted(source: Callable[[], AsyncIterator[Request[Any]]]) -> None:
    trigger = SourceTrigger(source)
    running = asyncio.create_task(trigger.run(WorkQueue()))
    await asyncio.sleep(1)
    assert trigger.is_running
    running.cancel()
    await asyncio.wait({running}, timeout=600)
    assert running.cancelled()
    assert not trigger.is_running


@simulate_scenario
async def test_source_cancelled_before_its_first_step_yields_nothing(world: Simulation) -> None:
    async def source() -> AsyncIterator[Request[Any]]:
        yield Request("default", "a")

    informer = Manager(world.client).for_resource("v1", "configmaps")
    controller = Controller("tests", Reconciler(), informer, sources=[source])
    assert not lister_watcher_of(controller).running
    async with feed_queue(controller):
        assert not lister_watcher_of(controller).running
    assert not lister_watcher_of(controller).running  # cancelled before its first step


async def test_exhausted_source_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def source() -> AsyncIterator[Request[Any]]:
        yield Request("default", "a")

    caplog.set_level("INFO")
    await SourceTrigger(source).run(WorkQueue())
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.message.endswith("source is exhausted: it triggers no more reconciles")


class Out(BaseException):
    pass


@pytest.mark.parametrize("meanwhile", ["works", "stands by", "waits for caches"])
def test_base_exception_of_a_source_ends_the_manager(meanwhile: str) -> None:
    """As from a reconciler, a predicate or a map function."""

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        async def source() -> AsyncIterator[Request[Any]]:
            await asyncio.sleep(10)
            if world.now:
                raise Out("of memory")
            yield Request("default", "a")

        if meanwhile == "waits for caches":
            for verb in ("list", "watch"):
                world.server.forbid(verb, "configmaps")
        election = elector(world.client) if meanwhile == "stands by" else None
        manager = Manager(world.client, leader_election=election)
        maps = manager.for_resource("v1", "configmaps")
        controller = manager.add(Controller("tests", Reconciler(), maps, sources=[source]))
        async with AsyncExitStack() as stack:
            if election is not None:
                await stack.enter_async_context(elector(world.new_client()))
                await asyncio.sleep(5)
            running = manager.begin()
            await asyncio.sleep(5)
            assert manager.healthy()
            assert controller.state.working == (meanwhile == "works")
            await asyncio.wait({running}, timeout=10)
            assert isinstance(running.exception(), Out)
        assert (lister_watcher_of(controller).failed, lister_watcher_of(controller).running) == (1, False)
        assert "has ended: Out(" in str(manager.healthy())

    scenario()


@simulate_scenario
async def test_source_that_ignores_cancellation_is_abandoned(world: Simulation) -> None:
    ended: list[float] = []

    async def source() -> AsyncIterator[Request[Any]]:
        try:
            await asyncio.sleep(3600)
            yield Request("default", "a")
        finally:
            await asyncio.sleep(60)  # the peer is silent
            ended.append(world.now)

    async with run_controller(world, Reconciler(), sources=[source]):
        await asyncio.sleep(5)
        began = world.now
    assert world.now - began == pytest.approx(10, abs=0.1)
    logged = [str(entry) for entry in world.history if "not waiting for them any longer" in str(entry)]
    assert len(logged) == 1
    assert " ERROR " in logged[0]
    assert "not waiting for them any longer: source " in logged[0]
    await asyncio.sleep(60)
    assert len(ended) == 1


@simulate_scenario
async def test_source_whose_task_group_failed_is_restarted(world: Simulation) -> None:
    async def fail() -> None:
        raise ConnectionError("closed")

    calls = 0

    async def source() -> AsyncIterator[Request[Any]]:
        nonlocal calls
        calls += 1
        if calls == 1:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        yield Request("default", "a")

    async with run_controller(world, Reconciler(), sources=[source]) as controller:
        await quiet(controller, 10)
        trigger = controller.state.triggers[-1]
        assert (calls, trigger.passed, trigger.failed) == (2, 1, 1)
