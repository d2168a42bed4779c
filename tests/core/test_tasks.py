"""tasks.py and coop.py: every task has an owner, and long work yields to others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from time import perf_counter

import anyio
import pytest

from aioinformer import StoppedError
from aioinformer._core.coop import (
    MAX_SHARES,
    SLICE,
    Budget,
    run_in_slices,
)
from aioinformer._core.tasks import (
    Running,
    finish,
    gather,
    raise_failures,
    run_until_first,
    shield,
)
from aioinformer.errors import AlreadyStartedError, ClientClosedError, WrongEventLoopError, message_of

from ..steps import cancel_after, turns, until


class Idle(Running):
    """Runs until it is cancelled."""

    async def run(self) -> None:
        await asyncio.Event().wait()


def test_require_not_started_needs_no_event_loop() -> None:
    """Handlers are added at module level, or before ``asyncio.run``."""
    Idle().require_not_started()


class Stubborn:
    """Ignores its cancellation until ``let_go`` is set."""

    def __init__(self) -> None:
        self.started = self.ended = False
        self.let_go = asyncio.Event()

    async def run(self) -> None:
        self.started = True
        try:
            await asyncio.Event().wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self.let_go.wait()
            self.ended = True


class TestFinish:
    async def test_finish_accepts_no_tasks(self) -> None:
        await finish()

    async def test_waits_until_all_tasks_have_ended(self) -> None:
        stubborn = Stubborn()
        tasks = [asyncio.create_task(stubborn.run()), asyncio.create_task(asyncio.sleep(3600))]
        await until(lambda: stubborn.started)
        finishing = asyncio.create_task(finish(*tasks))
        await until(tasks[1].done)
        assert not finishing.done()
        stubborn.let_go.set()
        await finishing
        assert stubborn.ended

    @pytest.mark.parametrize("times", [1, 3])
    async def test_cancelled_caller_waits_and_is_cancelled_afterwards(self, times: int) -> None:
        stubborn = Stubborn()
        task = asyncio.create_task(stubborn.run())
        await until(lambda: stubborn.started)
        finishing = asyncio.create_task(finish(task))
        for _ in range(times):
            await turns(3)
            finishing.cancel()
        await turns(3)
        assert not finishing.done()
        stubborn.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await finishing
        assert stubborn.ended

    async def test_keeps_the_error_of_a_task_that_has_ended(self) -> None:
        async def fail() -> None:
            raise ValueError

        task = asyncio.create_task(fail())
        await until(task.done)
        await finish(task)
        with pytest.raises(ValueError):
            task.result()


class TestRaiseFailures:
    async def test_raises_one_error_alone_and_several_as_a_group(self) -> None:
        async def fail(error: Exception) -> None:
            raise error

        async def fail_in_a_group(error: Exception) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail(error))

        cancelled = asyncio.create_task(asyncio.Event().wait())
        well = asyncio.create_task(asyncio.sleep(0))
        value, key = asyncio.create_task(fail(ValueError())), asyncio.create_task(fail_in_a_group(KeyError()))
        await until(lambda: well.done() and value.done() and key.done())
        await finish(cancelled)
        raise_failures("failed", cancelled, well)
        with pytest.raises(ValueError):
            raise_failures("failed", cancelled, value)
        with pytest.raises(KeyError):
            raise_failures("failed", key)
        with pytest.raises(ExceptionGroup, match="failed") as caught:
            raise_failures("failed", value, well, key)
        assert caught.group_contains(ValueError, depth=1)
        assert caught.group_contains(KeyError)

    async def test_stopped_error_is_raised_only_without_its_cause(self) -> None:
        async def fail(error: Exception) -> None:
            raise error

        why, waiting = (asyncio.create_task(fail(error)) for error in (ValueError(), StoppedError()))
        await until(lambda: why.done() and waiting.done())
        with pytest.raises(ValueError):
            raise_failures("failed", waiting, why)
        with pytest.raises(StoppedError):
            raise_failures("failed", waiting)

    async def test_stopped_error_in_a_group_is_raised_only_without_its_cause(self) -> None:
        async def fail(*errors: Exception) -> None:
            raise ExceptionGroup("of one task", errors)

        why, waiting, both = (
            asyncio.create_task(fail(*errors))
            for errors in ([ValueError()], [StoppedError(), StoppedError()], [StoppedError(), KeyError()])
        )
        await until(lambda: why.done() and waiting.done() and both.done())
        with pytest.raises(ValueError):
            raise_failures("failed", waiting, why)
        with pytest.raises(KeyError):
            raise_failures("failed", both)
        with pytest.raises(ExceptionGroup, match="of one task"):
            raise_failures("failed", waiting)


class TestRunUntilFirst:
    async def test_cancels_and_awaits_the_others(self) -> None:
        stubborn = Stubborn()

        async def first() -> None:
            await until(lambda: stubborn.started)

        running = asyncio.create_task(run_until_first(stubborn.run, first))
        await until(lambda: stubborn.started)
        await turns(5)
        assert not running.done()
        stubborn.let_go.set()
        await running
        assert stubborn.ended

    async def test_raises_the_error_of_a_function(self) -> None:
        async def fail() -> None:
            raise ValueError

        with pytest.raises(ValueError):
            await run_until_first(asyncio.Event().wait, fail)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()  # as a TaskGroup leaves it before Python 3.13

    async def test_raises_a_cancellation_that_a_function_raised_itself(self) -> None:
        """A TaskGroup would take it for the end of that function, and wait for the others."""

        async def await_a_cancelled_task() -> None:
            other = asyncio.create_task(asyncio.sleep(60))
            other.cancel()
            await other

        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run_until_first(asyncio.Event().wait, await_a_cancelled_task), 5)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    @pytest.mark.parametrize("count", range(5))
    async def test_cancelled_at_any_moment_it_leaves_no_task(self, count: int) -> None:
        started: list[int] = []
        ended: list[int] = []

        async def part(number: int) -> None:
            started.append(number)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(number)

        async def both() -> None:
            await run_until_first(partial(part, 1), partial(part, 2))

        await cancel_after(count, both())
        assert sorted(started) == sorted(ended)

    @pytest.mark.parametrize("count", range(6))
    async def test_failure_wins_over_a_later_cancellation(self, count: int) -> None:
        stubborn = Stubborn()

        async def fail() -> None:
            raise ValueError

        task = asyncio.create_task(run_until_first(stubborn.run, fail))
        await until(lambda: stubborn.started)
        await turns(count)
        task.cancel()
        await turns(5)
        stubborn.let_go.set()
        await asyncio.wait({task})
        assert isinstance(task.exception(), ValueError)

    async def test_raises_an_error_of_the_cleanup(self) -> None:
        async def fail() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise ValueError

        async def end() -> None:
            await asyncio.sleep(0)

        with pytest.raises(ValueError):
            await run_until_first(fail, end)
        task = asyncio.create_task(run_until_first(partial(asyncio.sleep, 60), fail))
        await turns(5)
        task.cancel()
        with pytest.raises(ValueError):
            await task

    async def test_raises_several_errors_as_a_group(self) -> None:
        async def fail(number: int) -> None:
            raise ValueError(number)

        with pytest.raises(ExceptionGroup) as caught:
            await run_until_first(partial(fail, 1), partial(fail, 2))
        assert [str(error) for error in caught.value.exceptions] == ["1", "2"]


class TestShielded:
    async def test_returns_the_result_and_raises_the_error(self) -> None:
        async def seven() -> int:
            return 7

        async def fail() -> None:
            raise ValueError("no")

        assert await shield(seven(), grace=60) == 7
        with pytest.raises(ValueError, match="no"):
            await shield(fail(), grace=60)

    @pytest.mark.parametrize("fails", [False, True])
    async def test_coroutine_continues_after_a_cancellation(
        self, fails: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        begun, let_go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await let_go.wait()
            ended.set()
            if fails:
                raise ValueError("only the log has it")

        task = asyncio.create_task(shield(work(), grace=60))
        await begun.wait()
        task.cancel()
        await turns(3)
        assert not task.done()
        let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()
        assert ("failed after its caller was cancelled: only the log" in caplog.text) == fails

    async def test_coroutine_is_cancelled_after_the_grace(self) -> None:
        stubborn = Stubborn()
        stubborn.let_go.set()
        task = asyncio.create_task(shield(stubborn.run(), grace=0.01))
        await until(lambda: stubborn.started)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stubborn.ended

    async def test_coroutine_continues_in_a_cancelled_anyio_scope(self) -> None:
        ended = asyncio.Event()

        async def work() -> None:
            await turns(20)
            ended.set()

        with anyio.CancelScope() as scope:
            scope.cancel()
            await shield(work(), grace=60)
        assert scope.cancelled_caught
        assert ended.is_set()


async def test_gather_returns_results_in_order_and_raises_one_of_several_errors() -> None:
    ended = []

    async def work(seconds: float, error: Exception | None = None) -> float:
        try:
            await asyncio.sleep(seconds)
            if error is not None:
                raise error
            return seconds
        finally:
            ended.append(seconds)

    assert await gather(work(0.02), work(0.01), work(0)) == [0.02, 0.01, 0]
    ended.clear()
    with pytest.raises(ValueError, match="first"):
        await gather(work(0, ValueError("first")), work(0, ValueError("second")), work(3600))
    assert sorted(ended) == [0, 0, 3600]
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling(), "a TaskGroup of Python 3.11 leaves its own request"


async def test_a_cancelled_gather_says_who_cancelled_it_though_a_function_returns() -> None:
    """Scopes of anyio know their cancellations by the message. A function that meets its own deadline then returns."""

    async def return_late() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        raise AssertionError

    async def host() -> tuple[object, ...]:
        try:
            await gather(return_late())
        except asyncio.CancelledError as error:
            return error.args
        raise AssertionError

    task = asyncio.create_task(host())
    await turns(2)
    task.cancel("a scope")
    assert await task == ("a scope",)


class Service(Running):
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.started = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        self.started.set()
        try:
            if self.error is not None:
                raise self.error
            await asyncio.Event().wait()
        finally:
            self.ended = True


class TestRunning:
    async def test_entering_starts_and_leaving_stops(self) -> None:
        service = Service()
        async with service as entered:
            assert entered is service
            await service.started.wait()
        assert service.ended

    async def test_leaving_before_the_first_step_stops_it(self) -> None:
        async with Service():
            pass

    async def test_leaving_raises_its_error(self) -> None:
        with pytest.raises(ValueError, match="broken"):
            async with Service(ValueError("broken")) as service:
                await service.started.wait()

    @pytest.mark.parametrize("error", [ClientClosedError("the client is closed"), ValueError("broken")])
    async def test_failure_is_logged_with_a_traceback_unless_it_is_an_error_of_ours(
        self, error: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        with pytest.raises(type(error)):
            async with Service(error) as service:
                await service.started.wait()
        await turns(1)
        (record,) = caplog.records
        assert record.message.endswith(f" failed: {message_of(error)}")
        assert (record.exc_info is not None) == isinstance(error, ValueError)

    async def test_error_of_the_body_stays_as_context(self) -> None:
        with pytest.raises(ValueError, match="broken") as caught:
            async with Service(ValueError("broken")) as service:
                await service.started.wait()
                raise KeyError
        assert isinstance(caught.value.__context__, KeyError)
        with pytest.raises(KeyError):
            async with Service():
                raise KeyError

    async def test_entering_and_leaving_in_different_tasks(self) -> None:
        """Design 2: fixtures and lifespans do so."""
        service = Service()
        await asyncio.create_task(service.__aenter__())
        await service.started.wait()
        await asyncio.create_task(service.__aexit__(None, None, None))
        assert service.ended

    async def test_second_entering_is_refused(self) -> None:
        service = Service()
        async with service:
            with pytest.raises(AlreadyStartedError):
                await service.__aenter__()
        with pytest.raises(AlreadyStartedError):
            await service.__aenter__()

    def test_entering_again_in_another_loop_says_already_started(self) -> None:
        """Such as the next test's loop: to call in the first loop would not help."""

        async def enter_and_leave() -> None:
            async with service:
                pass

        service = Service()
        asyncio.run(enter_and_leave())
        with pytest.raises(AlreadyStartedError):
            asyncio.run(enter_and_leave())

    async def test_cancelled_while_leaving_it_still_stops(self) -> None:
        service = Service()

        async def use() -> None:
            async with service:
                await asyncio.Event().wait()

        for count in range(4):
            service = Service()
            await cancel_after(count, use())
            assert service.ended is service.started.is_set()

    async def test_another_event_loop_is_refused(self) -> None:
        async def enter_and_leave() -> None:
            async with service:
                pass

        async def leave() -> None:
            await service.__aexit__(None, None, None)

        service = Service()
        async with service:
            with pytest.raises(WrongEventLoopError, match="runs in another event loop"):
                await asyncio.to_thread(lambda: asyncio.run(leave()))
            with pytest.raises(WrongEventLoopError):
                await asyncio.to_thread(service.require_own_loop)
        service = Service()
        service.require_own_loop()
        with pytest.raises(WrongEventLoopError):
            await asyncio.to_thread(lambda: asyncio.run(enter_and_leave()))


class TestYielding:
    @pytest.fixture
    def no_time_passes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With a clock at 0 the end of a budget is its length."""
        monkeypatch.setattr("aioinformer._core.coop.perf_counter", lambda: 0.0)

    async def test_long_work_lets_others_run(self) -> None:
        """Design 2: no step blocks the event loop for long."""
        rounds = 0
        working = True

        async def watch() -> None:
            nonlocal rounds
            while working:
                rounds += 1
                await asyncio.sleep(0)

        def steps() -> Iterator[None]:
            end = perf_counter() + 10
            while rounds < 3 and perf_counter() < end:
                yield

        watching = asyncio.create_task(watch())
        await run_in_slices(steps())
        working = False
        await watching
        assert rounds >= 3

    async def test_short_work_does_not_yield(self) -> None:
        budget = Budget()
        done = asyncio.create_task(asyncio.sleep(0))
        await run_in_slices(iter([None] * 3))
        assert not done.done()
        await done
        budget.end = 0.0
        assert budget.is_spent()
        await budget.pause()
        assert not budget.is_spent()

    @pytest.mark.usefixtures("no_time_passes")
    async def test_concurrent_work_shares_one_slice(self) -> None:
        """Design 2: a loop iteration stays short, however much work runs concurrently."""
        lengths: list[float] = []

        async def work() -> None:
            budget = Budget()
            for _ in range(2):
                await budget.pause()
                lengths.append(budget.end)

        works = asyncio.gather(*(work() for _ in range(4)))
        await turns(1)
        assert Budget().end == SLICE / 5
        await works
        assert lengths[:4] == [SLICE / 4] * 4
        assert Budget().end == SLICE

    @pytest.mark.usefixtures("no_time_passes")
    async def test_share_of_a_slice_has_a_minimum(self) -> None:
        async def pause_twice() -> None:  # eager tasks are in the first by the next line
            budget = Budget()
            await budget.pause()
            await budget.pause()

        async with asyncio.TaskGroup() as group:
            for _ in range(2 * MAX_SHARES):
                group.create_task(pause_twice())
            await turns(1)
            assert Budget().end == SLICE / MAX_SHARES

    @pytest.mark.usefixtures("no_time_passes")
    async def test_work_cancelled_in_a_pause_has_no_share(self) -> None:
        await cancel_after(1, Budget().pause())
        assert Budget().end == SLICE

    @pytest.mark.usefixtures("no_time_passes")
    async def test_event_loops_of_other_threads_do_not_share(self) -> None:
        async def length() -> float:
            return Budget().end

        lengths: list[float] = []
        thread = threading.Thread(target=lambda: lengths.append(asyncio.run(length())))
        pausing = asyncio.create_task(Budget().pause())
        await turns(1)
        thread.start()
        thread.join()
        assert lengths == [SLICE]
        await pausing

    async def test_cancelled_work_stops_at_its_next_yield(self) -> None:
        taken = 0

        def steps() -> Iterator[None]:
            nonlocal taken
            while True:
                taken += 1
                yield

        await cancel_after(3, run_in_slices(steps()))
        before = taken
        await turns(3)
        assert taken == before
