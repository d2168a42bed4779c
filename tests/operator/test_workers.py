"""operator/workers.py: reconciles that block the event loop, Retry-After, groups of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest

from aioinformer import KubeObject, WorkQueue
from aioinformer._core import slow_calls
from aioinformer._core.slow_calls import ADVICE
from aioinformer.errors import TerminalError, TooManyRequestsError, VersionTimeout
from aioinformer.operator import LOW_PRIORITY, Change, Controller, Manager, Request, Result, When
from aioinformer.operator import workers as workers_module
from aioinformer.operator.workers import Workers
from aioinformer.testing import Simulation
from aioinformer.workqueue import ItemExponentialFailureRateLimiter
from tests.virtual_time import simulate_scenario

from ..steps import run_during, until
from .worlds import (
    Reconciler,
    StubbornReconcile,
    change,
    create,
    feed_queue,
    quiet,
    return_or_raise,
    run_controller,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    for module in (workers_module, slow_calls):
        monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    return clock


@pytest.mark.parametrize("is_async", [False, True])
async def test_reconcile_that_blocks_the_event_loop_is_logged(
    caplog: pytest.LogCaptureFixture, clock: list[float], is_async: bool
) -> None:
    """An async reconcile from its second slow call on, like handlers; also if it fails."""

    def plain(key: str) -> None:
        clock[0] += 0.3 if key.startswith("slow") else 0.01
        if key == "slow-2":
            raise ValueError

    async def later(key: str) -> None:
        await asyncio.sleep(0)
        plain(key)

    queue: WorkQueue[str] = WorkQueue()
    for key in ("quick-1", "slow-1", "quick-2", "slow-2", "last"):
        queue.add(key)
    workers = Workers("tests", queue, later if is_async else plain, {"timeout": None})
    async with run_during(workers.run()):
        await until(lambda: workers.counts.total >= 5)  # one of them is retried
    key, waiting = ("slow-2", 1) if is_async else ("slow-1", 3)
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        f"tests: a reconcile blocked the event loop for 300 ms on {key}, with {waiting} waiting; {ADVICE}"
    ]


async def test_repeated_error_is_logged_with_its_traceback_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A new type of error is logged with its traceback again, as is the first error after a success."""
    raised = iter([KeyError("b"), KeyError("c"), ValueError(), None, KeyError("d")])
    queue: WorkQueue[str] = WorkQueue(ItemExponentialFailureRateLimiter())

    async def reconcile(key: str) -> None:
        if (error := next(raised, None)) is not None:
            raise error
        queue.add(key)

    queue.add("a")
    workers = Workers("tests", queue, reconcile, {"timeout": None})
    async with run_during(workers.run()):
        await until(lambda: workers.counts.success > 1)
    failed = [(record.message, record.exc_info is not None) for record in caplog.records]
    assert failed == [
        ("tests: a failed; retrying in 0.005 s: KeyError: 'b'", True),
        ("tests: a failed, 2 times in a row; retrying in 0.01 s: KeyError: 'c'", False),
        ("tests: a failed, 3 times in a row; retrying in 0.02 s: ValueError()", True),
        ("tests: a failed; retrying in 0.005 s: KeyError: 'd'", True),
    ]


async def test_waiting_reconciles_are_not_logged_as_slow(
    caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    """Including several concurrent reconciles, each of which is timed on its own."""

    async def reconcile(key: str) -> None:
        for _ in range(10):
            clock[0] += 0.05
            await asyncio.sleep(0)

    queue: WorkQueue[str] = WorkQueue()
    for number in range(10):
        queue.add(str(number))
    workers = Workers("tests", queue, reconcile, {"concurrency": 3, "timeout": None})
    async with run_during(workers.run()):
        await until(lambda: workers.counts.total == 10)
    assert caplog.messages == []


async def test_source_that_fails_as_the_leadership_is_lost_is_raised_on_standby() -> None:
    async def reconcile(key: str) -> None: ...

    workers = Workers("tests", WorkQueue(), reconcile, {"timeout": None})
    working = asyncio.create_task(workers.run())
    await until(lambda: len(workers) == 1)
    workers.fail(SystemExit("the source has ended"))
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled()
    async with asyncio.timeout(1):
        with pytest.raises(SystemExit, match="the source has ended"):
            await workers.raise_failure()


@simulate_scenario
async def test_other_workers_end_when_a_reconcile_is_abandoned(world: Simulation) -> None:
    reconcile = StubbornReconcile()
    maps = Manager(world.client).for_resource("v1", "configmaps")
    controller = Controller("tests", reconcile, maps)
    async with maps, feed_queue(controller):
        create(world, "a")
        working = asyncio.create_task(controller.work())
        await world.eventually(lambda: controller.state.running)
        await controller.stop(0)
        await asyncio.wait({working}, timeout=1)
        assert working.done()
        assert controller.state.stuck
        reconcile.gives_in = True
        await world.eventually(lambda: not controller.state.running)


@simulate_scenario
async def test_retry_after_of_a_server_is_respected(world: Simulation) -> None:
    create(world, "a")
    times: list[float] = []

    async def act(request: Request[KubeObject]) -> None:
        times.append(world.now)
        await maps.patch(request.key, {"data": {"tries": str(len(times))}})

    manager = Manager(world.client)
    maps = manager.resource("v1", "configmaps")
    manager.add(Controller("tests", act, maps, predicate=When(lambda change: change.old is None)))
    world.server.faults.fail(429, retry_after=5, times=3, resource="configmaps", verb="patch")
    async with manager:
        await asyncio.sleep(60)
    assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx([5.0] * 3, abs=0.1)
    logged = [str(entry) for entry in world.history if "; retrying in 5 s: " in str(entry)]
    assert len(logged) == 3
    assert all(" WARNING " in entry for entry in logged)
    assert [", 2 times in a row;" in entry for entry in logged] == [False, True, False]


@simulate_scenario
async def test_retry_after_below_the_backoff_has_no_effect(world: Simulation) -> None:
    create(world, "a")
    times: list[float] = []

    def act(request: Request[KubeObject]) -> None:
        times.append(world.now)
        if len(times) < 8:
            raise TooManyRequestsError(429, "TooManyRequests", "", {"retryAfterSeconds": 0.001})

    async with run_controller(world, Reconciler(act)) as controller:
        await quiet(controller, 10)
        assert len(times) == 8
        assert times[-1] - times[0] < 1


@simulate_scenario
async def test_error_group_counts_as_the_errors_in_it(world: Simulation) -> None:
    create(world, "a")
    behind = VersionTimeout("configmaps", "9", "7", "default/a", 10.0, "watching")
    busy = TooManyRequestsError(429, "TooManyRequests", "", {"retryAfterSeconds": 7})
    raised: list[list[Exception]] = [
        [behind, behind],
        [busy, ValueError("other")],
        [ValueError("other"), TerminalError("no use")],
        [ExceptionGroup("inner", [TerminalError("no use")])],
    ]
    times: list[float] = []

    async def act(request: Request[KubeObject]) -> None:
        times.append(world.now)
        raise ExceptionGroup("several", raised.pop(0))

    async with run_controller(world, Reconciler(act)) as controller:
        await quiet(controller, 3600)
        state = controller.state
    assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx([1, 7, 0.01], abs=0.1)
    assert (state.failed, state.terminal, repr(state.last_error)) == (4, 1, "TerminalError('no use')")


@simulate_scenario
async def test_failures_of_deleted_objects_are_forgotten(world: Simulation) -> None:
    """Even if a predicate hides the deletion from the reconciler: otherwise endless names would fill the memory."""

    async def act(request: Request[KubeObject]) -> None:
        raise TerminalError("no use") if failed else ValueError("no")

    def is_there(change: Change[KubeObject]) -> bool:
        return change.new is not None

    async with run_controller(world, Reconciler(act), predicate=is_there) as controller:
        for number in range(3):
            failed: list[int] = []
            create(world, f"a{number}")
            await asyncio.sleep(1)
            failed.append(number)
            await quiet(controller, 3600)
            assert (controller.state.failing, controller.queue.num_requeues(f"default/a{number}") > 0) == (
                1,
                True,
            )
            world.server.delete("v1", "configmaps", f"a{number}")
            await quiet(controller)
            assert (controller.state.failing, controller.queue.num_requeues(f"default/a{number}")) == (0, 0)


@simulate_scenario
async def test_terminal_error_keeps_the_backoff(world: Simulation) -> None:
    """A later failure of the same key counts as one in a row."""
    create(world, "a")
    raised = [ValueError("other")] * 3 + [TerminalError("no use")] + [ValueError("other")] * 2
    requeues: list[int] = []

    async def act(request: Request[KubeObject]) -> None:
        requeues.append(controller.queue.num_requeues(request.key))
        if raised:
            raise raised.pop(0)

    async with run_controller(world, Reconciler(act)) as controller:
        await quiet(controller, 3600)
        assert (requeues, controller.queue.num_requeues("default/a")) == ([0, 1, 2, 3], 3)
        change(world, "a", data={"k": "1"})
        await quiet(controller)
        assert requeues[4:] == [3, 4, 5]
        assert controller.queue.num_requeues("default/a") == 0


@pytest.mark.parametrize("asks", [Result(requeue=True), Result(requeue_after=1), ValueError("no")], ids=repr)
def test_requeued_key_keeps_its_priority(asks: Result | Exception) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        create(world, "a")
        priorities: list[int] = []

        async def act(request: Request[KubeObject]) -> Result | None:
            priorities.append(controller.queue.priority_of(request.key))
            if len(priorities) != 2:
                return None
            return return_or_raise(asks)

        async with run_controller(world, Reconciler(act)) as controller:
            await quiet(controller)
            controller.queue.add("default/a", 10)
            await quiet(controller, 10)
            assert priorities == [LOW_PRIORITY, 10, 10]

    scenario()


async def fail_in_a_group(error: Exception) -> None:
    """Fail in a child while the group waits, where Python before 3.13 leaves a request to cancel the task behind."""

    async def fail() -> None:
        raise error

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


@asynccontextmanager
async def run_with_finalizer(world: Simulation, act: Any) -> AsyncIterator[Controller[KubeObject]]:
    manager = Manager(world.client)
    maps = manager.resource("v1", "configmaps")
    controller = manager.add(
        Controller("tests", Reconciler(act), maps, finalizer="example.com/ours", cleanup=lambda request: None)
    )
    async with manager:
        yield controller


@simulate_scenario
async def test_task_group_of_a_reconciler_that_fails_is_a_failure_with_its_error(world: Simulation) -> None:
    create(world, "a")
    errors: list[Exception] = [ValueError("no quota"), TerminalError("no use")]

    async def act(request: Request[KubeObject]) -> None:
        if errors:
            await fail_in_a_group(errors.pop(0))

    async with run_with_finalizer(world, act) as controller:
        await asyncio.sleep(60)
        state = controller.state
    assert (state.failed, state.terminal, repr(state.last_error)) == (2, 1, "TerminalError('no use')")


@simulate_scenario
async def test_reconciler_that_catches_the_failure_of_a_task_group_succeeds(world: Simulation) -> None:
    create(world, "a")

    async def act(request: Request[KubeObject]) -> None:
        with suppress(ExceptionGroup):
            await fail_in_a_group(ValueError("no quota"))

    async with run_with_finalizer(world, act) as controller:
        await asyncio.sleep(60)
        assert controller.state.reconciles
        assert controller.state.failed == 0
