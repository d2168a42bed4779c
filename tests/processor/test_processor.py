"""processor/processor.py: distribute each notification to all listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import ResourceEventHandlerFuncs, StoppedError
from aioinformer._core import slow_calls
from aioinformer._core.tasks import finish
from aioinformer.cache import AddNotification, Backlog, Processor, ProcessorListener, UpdateNotification
from aioinformer.processor import calls as calls_module

from ..samples import pod
from ..steps import cancel_after, run_during, turns, until
from ..virtual_time import virtual_time


def make_listener(
    function: Callable[[Any], object], period: float = 0.0, **options: Any
) -> ProcessorListener[Any]:
    handler = ResourceEventHandlerFuncs[Any](
        on_add=lambda obj, initial: function(obj.name), on_update=lambda old, new: function(new.name)
    )
    return ProcessorListener(handler, period, period, **options)


def addition(name: str = "a") -> AddNotification:
    return AddNotification(pod(name))


def resync(name: str = "a") -> UpdateNotification:
    return UpdateNotification(pod(name), pod(name))


def is_delivered(processor: Processor) -> bool:
    return all(listener.depth == 0 for listener in processor.listeners)


class TestDistributing:
    async def test_notifications_before_start_are_delivered_c54(self) -> None:
        """C54 TestListenerResyncPeriodsDelayed."""
        processor = Processor()
        first: list[str] = []
        second: list[str] = []
        processor.add_listener(make_listener(first.append))
        processor.distribute(addition("a"), False)
        processor.add_listener(make_listener(second.append))
        processor.distribute(addition("b"), False)
        async with run_during(processor.run()):
            await until(lambda: is_delivered(processor))
        assert (first, second) == (["a", "b"], ["b"])

    async def test_stuck_handler_does_not_delay_others_c55(self) -> None:
        processor = Processor()
        seen: list[str] = []
        stuck = make_listener(lambda name: asyncio.Event().wait())
        processor.add_listener(stuck)
        processor.add_listener(make_listener(seen.append))
        async with run_during(processor.run()):
            for name in "abc":
                processor.distribute(addition(name), False)
            await until(lambda: len(seen) == 3)
            assert stuck.depth == 3

    async def test_failing_handler_does_not_affect_others_c42(self) -> None:
        processor = Processor()
        seen: list[str] = []
        processor.add_listener(make_listener(lambda name: 1 / 0))
        processor.add_listener(make_listener(seen.append))
        async with run_during(processor.run()):
            for name in "abc":
                processor.distribute(addition(name), False)
            await until(lambda: is_delivered(processor))
        assert seen == ["a", "b", "c"]

    async def test_same_handler_added_twice_is_two_listeners_c51(self) -> None:
        """C51 TestSharedInformerMultipleRegistration."""
        processor = Processor()
        seen: list[str] = []
        first = make_listener(seen.append)
        second = ProcessorListener(first.handler)
        processor.add_listener(first)
        processor.add_listener(second)
        async with run_during(processor.run()):
            processor.distribute(addition("a"), False)
            await until(lambda: is_delivered(processor))
            assert processor.remove_listener(first)
            processor.distribute(addition("b"), False)
            await until(lambda: is_delivered(processor))
        assert seen == ["a", "a", "b"]

    async def test_listeners_can_be_added_and_removed_while_running(self) -> None:
        processor = Processor()
        seen: list[str] = []
        async with run_during(processor.run()):
            await turns(2)
            listener = make_listener(seen.append)
            processor.add_listener(listener)
            processor.distribute(addition("a"), False)
            await until(lambda: seen)
            assert processor.listeners == [listener]
            processor.remove_listener(listener)
            processor.distribute(addition("b"), False)
            await turns(5)
        assert seen == ["a"]
        assert processor.listeners == []

    async def test_remove_of_unknown_or_removed_listener_c52(self) -> None:
        """C52 TestSharedInformerRemoveForeignHandler, TestRemovingRemovedSharedInformer."""
        processor, listener, foreign = Processor(), make_listener(print), make_listener(print)
        processor.add_listener(listener)
        assert not processor.remove_listener(foreign)
        assert processor.remove_listener(listener)
        assert not processor.remove_listener(listener)
        foreign.add(addition())
        assert foreign.depth == 1  # not stopped

    @pytest.mark.parametrize("many", [1, 2000])
    async def test_remove_of_busy_listener_does_not_affect_others(self, many: int) -> None:
        """Regression: with more than two pending batches it ended the processor."""
        processor = Processor()
        seen: list[str] = []
        entered, release = asyncio.Event(), asyncio.Event()

        async def wait_for_release(name: str) -> None:
            entered.set()
            await release.wait()

        busy = make_listener(wait_for_release)
        processor.add_listener(busy)
        processor.add_listener(make_listener(seen.append))
        async with run_during(processor.run()) as task:
            for _ in range(many):
                processor.distribute(addition(), False)
            await entered.wait()
            await until(lambda: len(seen) == many)
            processor.remove_listener(busy)
            release.set()
            processor.distribute(addition("last"), False)
            await until(lambda: seen[-1] == "last")
            assert not task.done()
        assert busy.state.delivered == 1


class TestStopping:
    @pytest.mark.parametrize("count", range(8))
    async def test_cancel_at_any_step_ends_every_listener_c57(self, count: int) -> None:
        """C57 TestShutdown."""
        processor = Processor()
        begun: list[str] = []
        ended: list[str] = []

        async def handle(name: str) -> None:
            begun.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)

        for _ in range(3):
            processor.add_listener(make_listener(handle))
        processor.distribute(addition(), False)
        await cancel_after(count, processor.run())
        assert begun == ended

    async def test_cancel_drops_pending_c57(self) -> None:
        processor = Processor()
        listener = make_listener(lambda name: asyncio.Event().wait())
        processor.add_listener(listener)
        task = asyncio.create_task(processor.run())
        for _ in range(1000):
            processor.distribute(addition(), False)
        await turns(5)
        await finish(task)
        assert listener.depth == 0
        processor.distribute(addition(), False)
        assert listener.depth == 0


class TestSlowHandlerWarnings:
    """The processor checks at intervals for handlers that fall behind, so events pay nothing for it."""

    @virtual_time
    async def test_stuck_handler_logs_warnings(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (calls_module, slow_calls):
            monkeypatch.setattr(module, "perf_counter", asyncio.get_running_loop().time)
        processor = Processor()
        stuck = make_listener(lambda name: asyncio.Event().wait(), name="stuck")
        processor.add_listener(stuck)
        processor.add_listener(make_listener(lambda name: None))
        async with run_during(processor.run()):
            for _ in range(1024):
                processor.distribute(addition(), False)
            await asyncio.sleep(55)
            assert not caplog.messages
            processor.distribute(addition(), False)
            await asyncio.sleep(30)
        assert caplog.messages == [
            f"stuck has been at ns/a for {seconds}.0 s, with 1025 waiting" for seconds in (60, 70, 80)
        ]

    @virtual_time
    async def test_handler_that_falls_behind_logs_warning(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (calls_module, slow_calls):
            monkeypatch.setattr(module, "perf_counter", asyncio.get_running_loop().time)
        processor = Processor()
        processor.add_listener(make_listener(lambda name: asyncio.sleep(0.05), name="slow"))
        async with run_during(processor.run()):
            for _ in range(30):
                for _ in range(100):
                    processor.distribute(addition(), False)
                await asyncio.sleep(1)
            await asyncio.sleep(120)
        assert caplog.messages == ["slow falls behind: 2400 waiting, 1700 at the last look"]

    @pytest.mark.parametrize(
        ("backlog", "warns"),
        [("unbounded", True), ("block", True), ("coalesce", False), ("drop_oldest", False)],
    )
    @virtual_time
    async def test_lossy_backlogs_log_no_warning_for_pending(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, backlog: Backlog, warns: bool
    ) -> None:
        """Their backlog is bounded. A blocking backlog does warn, because it delays all other handlers."""
        for module in (calls_module, slow_calls):
            monkeypatch.setattr(module, "perf_counter", asyncio.get_running_loop().time)
        processor = Processor()
        processor.add_listener(
            make_listener(
                lambda name: asyncio.sleep(0.2 if name == "0" else 3600), name="slow", backlog=backlog
            )
        )
        async with run_during(processor.run()):
            for n in range(2000):
                processor.distribute(addition(f"{n}"), False)
            await asyncio.sleep(25)
        slow_call = "slow took 200 ms on ns/0, with 1999 waiting"
        stuck = "slow has been at ns/1 for 19.8 s, with 1999 waiting"
        assert caplog.messages == ([slow_call, stuck] if warns else [])


class TestBlocking:
    async def test_has_room_unless_a_block_backlog_is_full(self) -> None:
        processor = Processor()
        release = asyncio.Semaphore(0)
        processor.add_listener(make_listener(lambda name: asyncio.Event().wait()))
        for _ in range(2):
            processor.add_listener(
                make_listener(lambda name: release.acquire(), backlog="block", backlog_limit=2)
            )
        async with run_during(processor.run()):
            processor.distribute(addition(), False)
            assert processor.has_room()
            processor.distribute(addition(), False)
            assert not processor.has_room()
            async with run_during(processor.wait_for_room()) as waiting:
                for _ in range(2):
                    await turns(10)
                    assert not waiting.done()
                    release.release()
                await waiting
            assert processor.has_room()

    async def test_remove_of_blocking_listener_makes_room(self) -> None:
        processor = Processor()
        blocking = make_listener(lambda name: asyncio.Event().wait(), backlog="block", backlog_limit=1)
        processor.add_listener(blocking)
        async with run_during(processor.run()):
            processor.distribute(addition(), False)
            assert not processor.has_room()
            async with run_during(processor.wait_for_room()) as waiting:
                await turns(10)
                processor.remove_listener(blocking)
                await waiting


class TestAddAndRemove:
    async def test_listener_added_during_stop_is_kept(self) -> None:
        processor = Processor()
        late = make_listener(lambda name: None)
        entered = asyncio.Event()

        async def on_add(name: str) -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                processor.add_listener(late)

        processor.add_listener(make_listener(on_add))
        task = asyncio.create_task(processor.run())
        processor.distribute(addition(), False)
        await entered.wait()
        await finish(task)
        assert late in processor.listeners

    async def test_removed_handler_is_inside_until_its_call_ends(self) -> None:
        processor = Processor()
        inside: list[bool] = []

        async def on_add(name: str) -> None:
            processor.remove_listener(listener)
            inside.append(processor.is_inside_handler())

        listener = make_listener(on_add)
        processor.add_listener(listener)
        async with run_during(processor.run()):
            processor.distribute(addition(), False)
            await until(lambda: inside)
            await listener.wait_ended()
            await until(lambda: not processor._running)
        assert inside == [True]

    async def test_task_started_by_handler_is_inside_until_that_call_ends(self) -> None:
        processor = Processor()
        inside: list[bool] = []
        outlives: list[asyncio.Task[None]] = []
        ended, next_call = asyncio.Event(), asyncio.Event()

        async def check() -> None:
            inside.append(processor.is_inside_handler())

        async def background() -> None:
            await check()
            await ended.wait()
            await check()
            await next_call.wait()
            await check()

        async def on_add(name: str) -> None:
            if outlives:
                next_call.set()
                await outlives[0]
            else:
                outlives.append(asyncio.create_task(background()))
                await asyncio.gather(check())

        listener = make_listener(on_add)
        processor.add_listener(listener)
        async with run_during(processor.run()):
            processor.distribute(addition(), False)
            await until(lambda: listener.state.delivered == 1)
            ended.set()
            await until(lambda: len(inside) == 3)
            processor.distribute(addition(), False)
            await until(lambda: len(inside) == 4)
        assert inside == [True, True, False, False]


class TestCancelledByOthers:
    """Other code cancels a listener's task, such as a handler's own timeout: only the running call fails."""

    @staticmethod
    async def swallow() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    @staticmethod
    async def time_out() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise TimeoutError from None

    @staticmethod
    async def pass_on() -> None:
        await asyncio.sleep(60)

    @staticmethod
    async def return_at_once() -> None:
        pass

    @pytest.mark.parametrize("answer", ["swallow", "time_out", "pass_on", "return_at_once"])
    async def test_cancelled_call_fails_and_next_calls_follow_c42(
        self, answer: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[str] = []

        async def on_add(name: str) -> None:
            seen.append(name)
            if name == "b":
                task = asyncio.current_task()
                assert task is not None
                if answer == "return_at_once":
                    task.cancel()
                else:
                    asyncio.get_running_loop().call_soon(task.cancel)
                await getattr(self, answer)()

        processor = Processor()
        listener = make_listener(on_add, name="mine")
        processor.add_listener(listener)
        async with run_during(processor.run()):
            for name in "abcd":
                processor.distribute_all([addition(name)])
                await until(lambda: listener.depth == 0)
                await turns(4)
        assert seen == list("abcd")
        assert (listener.state.delivered, listener.state.failed) == (4, 1)
        assert caplog.messages == ["mine failed on add of ns/b at 1"]

    @pytest.mark.parametrize("is_plain", [True, False])
    async def test_only_the_cancelled_call_fails_c42(self, is_plain: bool) -> None:
        seen: list[str] = []

        async def later(name: str) -> None:
            await asyncio.sleep(0)
            seen.append(name)

        def on_add(name: str) -> Awaitable[None] | None:
            if name != "a":
                return later(name)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return None if is_plain else self.return_at_once()

        processor = Processor()
        listener = make_listener(on_add)
        processor.add_listener(listener)
        async with run_during(processor.run()):
            processor.distribute_all([addition(name) for name in "abc"])
            await until(lambda: listener.depth == 0)
        assert seen == ["b", "c"]
        assert (listener.state.delivered, listener.state.failed) == (3, 1)

    async def test_cancel_of_idle_listener_task_ends_the_processor(self) -> None:
        """Code that cancels and awaits all tasks one by one would hang on a task that went on."""
        processor = Processor()
        listener = make_listener(lambda name: None, name="mine")
        processor.add_listener(listener)
        task = asyncio.create_task(processor.run())
        await turns(3)
        (other,) = (a_task for a_task in asyncio.all_tasks() if a_task.get_name() == repr(listener))
        other.cancel()
        with pytest.raises(BaseExceptionGroup) as caught:
            await task
        assert caught.group_contains(StoppedError, match="mine: its task was cancelled by other code")

    async def test_handler_that_raises_on_stop_is_logged_and_gets_no_more_calls(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        processor = Processor()
        listener = make_listener(lambda name: self.time_out(), name="mine")
        processor.add_listener(listener)
        async with run_during(processor.run()):
            processor.distribute_all([addition("a"), addition("b")])
            await turns(3)
        assert caplog.messages == ["mine failed on add of ns/a at 1"]
        assert listener.state.delivered == 0

    @pytest.mark.parametrize("is_busy", [True, False])
    async def test_cancel_of_all_tasks_ends_the_processor(
        self, is_busy: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        processor = Processor()
        processor.add_listener(make_listener(lambda name: self.pass_on()))
        async with run_during(processor.run()) as task:
            await turns(2)
            if is_busy:
                processor.distribute_all([addition("a")])
                await turns(3)
            for other in asyncio.all_tasks() - {asyncio.current_task()}:
                other.cancel()
            await asyncio.wait([task])
        assert caplog.messages == []

    async def test_base_exception_of_one_handler_ends_all(self) -> None:
        class EndedError(BaseException):
            pass

        def on_add(name: str) -> None:
            raise EndedError

        cleaned: list[str] = []

        async def clean(name: str) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await turns(5)
                cleaned.append(name)

        processor = Processor()
        for function in (clean, on_add):
            processor.add_listener(make_listener(function))
        processor.distribute(addition("a"), False)
        with pytest.raises(BaseExceptionGroup) as caught:
            await processor.run()
        assert caught.group_contains(EndedError)
        assert cleaned == ["a"]


class TestResync:
    """Where we differ (C43, C44): an unchanged object goes only to listeners whose resync is due."""

    @pytest.fixture
    async def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        clock = [1000.0]
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
        return clock

    async def test_no_listener_is_due_before_the_first_check(self) -> None:
        """C43: upstream notifies all."""
        processor = Processor()
        listener = make_listener(print)
        processor.add_listener(listener)
        processor.distribute(resync(), True)
        assert listener.depth == 0
        assert not processor.should_resync()

    async def test_resync_reaches_only_due_listeners_c48_c49(self, clock: list[float]) -> None:
        """C48, C49 TestListenerResyncPeriods."""
        processor = Processor()
        never, often, seldom = (make_listener(print, period) for period in (0.0, 2.0, 3.0))
        for listener in (never, often, seldom):
            processor.add_listener(listener)
        processor.count_resyncs_from(clock[0])
        due: list[tuple[int, ...]] = []
        for _ in range(6):
            clock[0] += 1.0
            is_due = processor.should_resync()
            before = [listener.depth for listener in (never, often, seldom)]
            processor.distribute(resync(), True)
            after = [listener.depth for listener in (never, often, seldom)]
            due.append(tuple(new - old for new, old in zip(after, before, strict=True)))
            assert is_due is any(due[-1])
        assert due == [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 0), (0, 1, 1)]
        processor.distribute(addition(), False)
        assert never.depth == 1

    async def test_period_is_rounded_up_to_the_next_check_c49(self, clock: list[float]) -> None:
        processor = Processor()
        processor.add_listener(make_listener(print, 2.5))
        processor.count_resyncs_from(clock[0])
        due = []
        for _ in range(6):
            clock[0] += 1.0
            due.append(processor.should_resync())
        assert due == [False, False, True, False, False, True]
