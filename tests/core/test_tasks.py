"""tasks.py and turns.py: nothing outlives what began it, and nobody holds the loop for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from time import perf_counter

import anyio
import pytest

from aioinformer import AlreadyStartedError, ClientClosedError, StoppedError, WrongEventLoopError
from aioinformer._core.coop import (
    MAX_SHARES,
    SLICE,
    Budget,
    yielding,
)
from aioinformer._core.tasks import (
    Running,
    finish,
    maybe_await,
    raise_failures,
    run_until_first,
    with_grace,
)
from aioinformer.errors import said

from ..steps import cancel_after, turns, until


class Idle(Running):
    """Runs until it is cancelled."""

    async def run(self) -> None:
        await asyncio.Event().wait()


def test_what_is_not_started_says_so_without_an_event_loop() -> None:
    """It is set up at a module's level, or before ``asyncio.run``."""
    Idle().require_not_started()


class Stubborn:
    """Takes its time to end: ignores the first cancellation until it is let go."""

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
    async def test_nothing_to_finish(self) -> None:
        await finish()

    async def test_it_waits_until_all_have_ended(self) -> None:
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
    async def test_cancelled_meanwhile_it_still_waits_and_then_is_cancelled(self, times: int) -> None:
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

    async def test_tasks_that_have_ended_are_left_alone(self) -> None:
        async def fail() -> None:
            raise ValueError

        task = asyncio.create_task(fail())
        await until(task.done)
        await finish(task)
        with pytest.raises(ValueError):
            task.result()


class TestRaiseFailures:
    async def test_one_alone_is_raised_as_it_is_and_several_as_a_group(self) -> None:
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

    async def test_who_waited_for_what_has_stopped_says_so_only_where_nobody_says_why(self) -> None:
        async def fail(error: Exception) -> None:
            raise error

        why, waiting = (asyncio.create_task(fail(each)) for each in (ValueError(), StoppedError()))
        await until(lambda: why.done() and waiting.done())
        with pytest.raises(ValueError):
            raise_failures("failed", waiting, why)
        with pytest.raises(StoppedError):
            raise_failures("failed", waiting)

    async def test_so_where_it_says_it_in_a_group(self) -> None:
        async def fail(*errors: Exception) -> None:
            raise ExceptionGroup("of one task", errors)

        why, waiting, both = (
            asyncio.create_task(fail(*each))
            for each in ([ValueError()], [StoppedError(), StoppedError()], [StoppedError(), KeyError()])
        )
        await until(lambda: why.done() and waiting.done() and both.done())
        with pytest.raises(ValueError):
            raise_failures("failed", waiting, why)
        with pytest.raises(KeyError):
            raise_failures("failed", both)
        with pytest.raises(ExceptionGroup, match="of one task"):
            raise_failures("failed", waiting)


class TestRunUntilFirst:
    async def test_the_others_are_cancelled_and_awaited(self) -> None:
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

    async def test_an_error_is_raised(self) -> None:
        async def fail() -> None:
            raise ValueError

        with pytest.raises(ValueError):
            await run_until_first(asyncio.Event().wait, fail)

    @pytest.mark.parametrize("count", range(5))
    async def test_cancelled_at_any_moment_it_leaves_nothing(self, count: int) -> None:
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
    async def test_cancelled_after_one_has_failed_it_ends_by_that_failure(self, count: int) -> None:
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

    async def test_one_that_fails_of_being_cancelled_is_heard_of(self) -> None:
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

    async def test_several_errors_are_raised_together(self) -> None:
        async def fail(number: int) -> None:
            raise ValueError(number)

        with pytest.raises(ExceptionGroup) as caught:
            await run_until_first(partial(fail, 1), partial(fail, 2))
        assert [str(error) for error in caught.value.exceptions] == ["1", "2"]


class TestWithGrace:
    async def test_its_result_and_its_error_are_passed_on(self) -> None:
        async def seven() -> int:
            return 7

        async def fail() -> None:
            raise ValueError("no")

        assert await with_grace(60, seven()) == 7
        with pytest.raises(ValueError, match="no"):
            await with_grace(60, fail())

    @pytest.mark.parametrize("fails", [False, True])
    async def test_cancelled_it_goes_on_to_its_end(
        self, fails: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        begun, let_go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await let_go.wait()
            ended.set()
            if fails:
                raise ValueError("nobody but the log hears of it")

        task = asyncio.create_task(with_grace(60, work()))
        await begun.wait()
        task.cancel()
        await turns(3)
        assert not task.done()
        let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()
        assert ("failed after its caller was cancelled: nobody but the log" in caplog.text) == fails

    async def test_but_not_for_longer_than_that(self) -> None:
        stubborn = Stubborn()
        stubborn.let_go.set()
        task = asyncio.create_task(with_grace(0.01, stubborn.run()))
        await until(lambda: stubborn.started)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stubborn.ended

    async def test_a_scope_of_anyio_that_cancels_in_each_turn_cuts_nothing_off(self) -> None:
        ended = asyncio.Event()

        async def work() -> None:
            await turns(20)
            ended.set()

        with anyio.CancelScope() as scope:
            scope.cancel()
            await with_grace(60, work())
        assert scope.cancelled_caught
        assert ended.is_set()


async def test_settle_awaits_what_can_be_awaited() -> None:
    seen: list[int] = []

    async def work() -> None:
        seen.append(1)

    await maybe_await(work())
    await maybe_await(asyncio.ensure_future(work()))
    await maybe_await(None)
    await maybe_await("no awaitable")
    assert seen == [1, 1]


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
    async def test_entering_starts_and_leaving_ends(self) -> None:
        service = Service()
        async with service as entered:
            assert entered is service
            await service.started.wait()
        assert service.ended

    async def test_leaving_at_once_ends_what_had_not_begun(self) -> None:
        async with Service():
            pass

    async def test_leaving_raises_its_error(self) -> None:
        with pytest.raises(ValueError, match="broken"):
            async with Service(ValueError("broken")) as service:
                await service.started.wait()

    @pytest.mark.parametrize("error", [ClientClosedError("the client is closed"), ValueError("broken")])
    async def test_its_death_is_logged_with_a_traceback_where_the_message_says_too_little(
        self, error: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        with pytest.raises(type(error)):
            async with Service(error) as service:
                await service.started.wait()
        await turns(1)
        (record,) = caplog.records
        assert record.message.endswith(f" failed: {said(error)}")
        assert (record.exc_info is not None) == isinstance(error, ValueError)

    async def test_what_the_body_raised_is_not_forgotten(self) -> None:
        with pytest.raises(ValueError, match="broken") as caught:
            async with Service(ValueError("broken")) as service:
                await service.started.wait()
                raise KeyError
        assert isinstance(caught.value.__context__, KeyError)
        with pytest.raises(KeyError):
            async with Service():
                raise KeyError

    async def test_entering_and_leaving_in_different_tasks(self) -> None:
        """Design 2: fixtures and cleanup contexts do so."""
        service = Service()
        await asyncio.create_task(service.__aenter__())
        await service.started.wait()
        await asyncio.create_task(service.__aexit__(None, None, None))
        assert service.ended

    async def test_it_is_entered_once(self) -> None:
        service = Service()
        async with service:
            with pytest.raises(AlreadyStartedError):
                await service.__aenter__()
        with pytest.raises(AlreadyStartedError):
            await service.__aenter__()

    def test_of_another_loop_it_is_told_that_it_was_entered_before(self) -> None:
        """Such as the next test's: to hand the call over to the first one would not help."""

        async def enter_and_leave() -> None:
            async with service:
                pass

        service = Service()
        asyncio.run(enter_and_leave())
        with pytest.raises(AlreadyStartedError):
            asyncio.run(enter_and_leave())

    async def test_leaving_while_being_cancelled_still_ends_it(self) -> None:
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


class TestTurns:
    @pytest.fixture
    def no_time_passes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A turn's end is how long it is."""
        monkeypatch.setattr("aioinformer._core.coop.perf_counter", lambda: 0.0)

    async def test_long_work_lets_others_run(self) -> None:
        """Design 2: no step holds the loop for long."""
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
        await yielding(steps())
        working = False
        await watching
        assert rounds >= 3

    async def test_short_work_is_done_in_one_go(self) -> None:
        budget = Budget()
        done = asyncio.create_task(asyncio.sleep(0))
        await yielding(iter([None] * 3))
        assert not done.done()
        await done
        budget.end = 0.0
        assert budget.is_spent()
        await budget.pause()
        assert not budget.is_spent()

    @pytest.mark.usefixtures("no_time_passes")
    async def test_what_is_under_way_at_once_shares_a_turn(self) -> None:
        """Design 2: however much is under way, no round of the loop takes long."""
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
    async def test_the_least_share_is_worth_its_pause(self) -> None:
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
    async def test_what_is_cancelled_in_a_pause_has_no_share(self) -> None:
        await cancel_after(1, Budget().pause())
        assert Budget().end == SLICE

    @pytest.mark.usefixtures("no_time_passes")
    async def test_event_loops_of_other_threads_have_turns_of_their_own(self) -> None:
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

    async def test_cancelled_it_stops_in_the_middle(self) -> None:
        taken = 0

        def steps() -> Iterator[None]:
            nonlocal taken
            while True:
                taken += 1
                yield

        await cancel_after(3, yielding(steps()))
        before = taken
        await turns(3)
        assert taken == before
