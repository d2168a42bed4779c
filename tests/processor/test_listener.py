"""processor/listener.py: from a notification to the call of one handler."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    KubeObject,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
)
from aioinformer._core import slow_calls
from aioinformer._core.slow_calls import ADVICE
from aioinformer._core.tasks import finish
from aioinformer.cache import (
    AddNotification,
    DeleteNotification,
    Notification,
    ProcessorListener,
    UpdateNotification,
)
from aioinformer.processor import calls as calls_module

from ..samples import pod
from ..steps import cancel_after, run_during, turns, until


class Recorder(ResourceEventHandler[KubeObject]):
    """A handler that records its calls; the calls in ``blocked_at`` wait for ``release``."""

    def __init__(self, *blocked_at: str) -> None:
        self.calls: list[str] = []
        self.blocked_at = blocked_at
        self.entered = asyncio.Event()
        self.release = asyncio.Event()

    async def _record(self, what: str) -> None:
        if what in self.blocked_at:
            self.entered.set()
            await self.release.wait()
        self.calls.append(what)

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> object:
        return self._record(f"add {obj.name}")

    def on_update(self, old: KubeObject, new: KubeObject) -> object:
        return self._record(f"update {new.name}")

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> object:
        return self._record(f"delete {obj.key}")


def make_adds(*names: str, initial: bool = False) -> list[Notification]:
    return [AddNotification(pod(name), initial) for name in names]


def make_handler(function: Callable[[Any], object]) -> ResourceEventHandlerFuncs[Any]:
    return ResourceEventHandlerFuncs(on_add=lambda obj, initial: function(obj))


class TestOrder:
    async def test_calls_follow_the_order_of_notifications_c56(self) -> None:
        """C56: sync and async methods."""
        recorder = Recorder()
        listener = ProcessorListener(recorder)
        listener.add_all(
            [
                AddNotification(pod("a")),
                UpdateNotification(pod("a"), pod("a", version="2")),
                DeleteNotification(pod("a")),
                DeleteNotification(DeletedFinalStateUnknown("ns/b", None)),
            ]
        )
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert recorder.calls == ["add a", "update a", "delete ns/a", "delete ns/b"]

    async def test_calls_never_overlap_c56(self) -> None:
        inside: list[str] = []

        async def on_add(obj: Any) -> None:
            assert not inside
            inside.append(obj.name)
            await asyncio.sleep(0)
            inside.clear()

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds(*"abcdef"))
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert listener.state.failed == 0


@given(st.lists(st.sampled_from(["add", "many", "turn", "release"]), max_size=20), st.booleans())
async def test_every_notification_is_delivered_exactly_once_c56(moves: list[str], is_async: bool) -> None:
    seen: list[int] = []
    gate = asyncio.Semaphore(0)

    async def later(number: int) -> None:
        await gate.acquire()
        seen.append(number)

    listener: ProcessorListener[Any] = ProcessorListener(make_handler(later if is_async else seen.append))
    sent: list[Notification] = []
    task = asyncio.create_task(listener.run())
    for move in moves:
        if move == "turn":
            await turns(2)
        elif move == "release":
            gate.release()
        else:
            count = 1 if move == "add" else 500
            batch: list[Notification] = [AddNotification(len(sent) + number) for number in range(count)]
            sent += batch
            listener.add_all(batch)
    for _ in sent:
        gate.release()
    await until(lambda: listener.depth == 0)
    await finish(task)
    assert seen == list(range(len(sent)))
    assert listener.state.delivered == len(sent)


class TestBuffer:
    async def test_add_never_waits_for_slow_handler_c55(self) -> None:
        recorder = Recorder("add a")
        listener = ProcessorListener(recorder)
        async with run_during(listener.run()):
            listener.add_all(make_adds("a"))
            await recorder.entered.wait()
            for notification in make_adds("b") * 10_000:
                listener.add(notification)  # not a coroutine: it cannot wait
            assert listener.depth == listener.high_water == 10_001
            recorder.release.set()
            await until(lambda: listener.depth == 0)
        assert len(recorder.calls) == 10_001
        assert listener.high_water == 10_001

    async def test_notifications_before_start_are_kept(self) -> None:
        recorder = Recorder()
        listener = ProcessorListener(recorder)
        listener.add_all(make_adds("a", "b"))
        assert listener.depth == 2
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert recorder.calls == ["add a", "add b"]

    async def test_sync_handler_lets_other_tasks_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Design 2: the event loop is shared."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        listener = ProcessorListener(make_handler(lambda obj: None))
        listener.add_all(make_adds("a") * 50)
        rounds = 0
        async with run_during(listener.run()):
            while listener.depth:
                await asyncio.sleep(0)
                rounds += 1
        assert rounds >= 49  # the first call may happen as the task starts

    async def test_state_names_the_object_being_handled(self) -> None:
        recorder = Recorder("add b")
        listener = ProcessorListener(recorder, name="mine")
        assert str(listener.state) == "mine: 0 waiting (at most 0), 0 delivered"
        listener.add_all(make_adds("a", "b", "c"))
        async with run_during(listener.run()):
            await recorder.entered.wait()
            state = listener.state
            assert (state.depth, state.high_water, state.delivered) == (2, 3, 1)
            assert state.handling == "ns/b"
            assert str(state).startswith("mine: 2 waiting (at most 3), 1 delivered; at ns/b for 0.")
        assert "mine" in repr(listener)


class TestWarnings:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        clock = [0.0]
        for module in (calls_module, slow_calls):
            monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
        return clock

    async def test_slow_call_with_many_pending_logs_warning(
        self, caplog: pytest.LogCaptureFixture, clock: list[float]
    ) -> None:
        """Section 1.1: more than 1024 pending and a call over 100 ms."""

        async def on_add(obj: Any) -> None:
            await asyncio.sleep(0)
            if obj.name == "a":
                clock[0] += 0.2 - 0.1 * (listener.state.delivered > 0)
                await asyncio.sleep(0)
                clock[0] += 0.1 * (listener.state.delivered > 0)

        listener = ProcessorListener(make_handler(on_add), name="slow")
        listener.add_all(make_adds("a") * 3 + make_adds("b") * 1024)
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert caplog.messages == ["slow took 200 ms on ns/a, with 1026 waiting"]

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_handler_that_blocks_the_event_loop_logs_warning(
        self, caplog: pytest.LogCaptureFixture, clock: list[float], is_async: bool
    ) -> None:
        """An async handler's steps are timed from its second slow call on, so quick handlers cost nothing."""

        def plain(obj: Any) -> None:
            clock[0] += 0.3 if obj.name == "slow" else 0.01

        async def later(obj: Any) -> None:
            await asyncio.sleep(0)
            plain(obj)

        listener = ProcessorListener(make_handler(later if is_async else plain), name="mine")
        listener.add_all(make_adds("quick", "slow", "quick", "slow", "slow"))
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        waiting = 1 if is_async else 3
        assert caplog.messages == [
            f"mine blocked the event loop for 300 ms on ns/slow, with {waiting} waiting; {ADVICE}"
        ]
        assert listener.state.failed == 0

    async def test_handler_that_awaits_long_logs_no_blocking_warning(
        self, caplog: pytest.LogCaptureFixture, clock: list[float]
    ) -> None:
        async def on_add(obj: Any) -> None:
            clock[0] += 0.05
            for _ in range(10):
                await asyncio.sleep(0)
                clock[0] += 0.05

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("a") * 5)
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert not caplog.messages

    async def test_warnings_are_rate_limited(
        self, caplog: pytest.LogCaptureFixture, clock: list[float]
    ) -> None:
        def on_add(obj: Any) -> None:
            clock[0] += 1.0

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("a") * 100)
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert len(caplog.messages) == 100 / slow_calls.WARN_EVERY

    async def test_timed_handler_can_fail_and_be_cancelled(self, clock: list[float]) -> None:
        begun = asyncio.Event()
        ended: list[str] = []

        async def on_add(obj: Any) -> None:
            clock[0] += 1.0
            await asyncio.sleep(0)
            if obj.name == "fails":
                raise ValueError
            if obj.name == "waits":
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(obj.name)

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("slow", "fails", "waits"))
        task = asyncio.create_task(listener.run())
        await begun.wait()
        await finish(task)
        assert (listener.state.failed, ended) == (1, ["waits"])


class TestFailures:
    @pytest.mark.parametrize(
        "error",
        [
            ValueError("no"),
            StopIteration(),
            ExceptionGroup("g", [OSError()]),
            asyncio.CancelledError(),
            TimeoutError(),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("is_async", [False, True])
    async def test_handler_error_is_logged_and_next_call_follows_at_once_c42(
        self, error: BaseException, is_async: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C42, where we differ: the notification counts as delivered, without a pause. A CancelledError that the
        handler raises itself is an error like any other."""
        seen: list[str] = []

        def plain(obj: Any) -> None:
            seen.append(obj.name)
            if obj.name == "a":
                raise error

        async def later(obj: Any) -> None:
            plain(obj)

        listener = ProcessorListener(make_handler(later if is_async else plain), name="mine")
        listener.add_all(make_adds("a", "b", initial=True))
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert seen == ["a", "b"]
        assert (listener.state.delivered, listener.state.failed) == (2, 1)
        assert listener.has_synced()
        assert caplog.messages == ["mine failed on add of ns/a at 1"]
        assert "2 delivered, 1 failed" in str(listener.state)

    @pytest.mark.parametrize("handler", [object(), print, ResourceEventHandlerFuncs])
    def test_invalid_handler_is_refused(self, handler: Any) -> None:
        with pytest.raises(ConfigError, match=r"on_add|an instance"):
            ProcessorListener(handler)

    async def test_error_log_survives_objects_without_key_or_repr(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Unprintable:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        def fail(obj: Any) -> None:
            raise ValueError

        listener: ProcessorListener[Any] = ProcessorListener(make_handler(fail), name="mine")
        listener.add_all([AddNotification(Unprintable()), AddNotification(None), *make_adds("a")])
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert caplog.messages[0] == "mine failed on add of <Unprintable> at no version"
        assert listener.state.failed == 3

    @pytest.mark.parametrize("answer", [True, 0, "text", [], object], ids=repr)
    async def test_return_value_of_handler_is_ignored(self, answer: Any) -> None:
        listener = ProcessorListener(make_handler(lambda obj: answer))
        listener.add_all(make_adds("a", "b"))
        async with run_during(listener.run()):
            await until(lambda: listener.depth == 0)
        assert listener.state.failed == 0


class TestSynced:
    async def test_has_synced_after_last_initial_add_returned_c41(self) -> None:
        recorder = Recorder("add b")
        upstream = [False]
        listener = ProcessorListener(recorder, upstream_synced=lambda: upstream[0])
        listener.add_all(make_adds("a", "b", initial=True))
        listener.add_all(make_adds("c"))
        waiting = asyncio.create_task(listener.wait_initial_delivered())
        async with run_during(listener.run()):
            await recorder.entered.wait()
            upstream[0] = True
            assert not listener.has_synced()
            assert not waiting.done()
            recorder.release.set()
            await waiting
            assert listener.has_synced()
            upstream[0] = False
            assert not listener.has_synced()

    async def test_without_initial_adds_has_synced_follows_upstream_c41(self) -> None:
        listener = ProcessorListener(Recorder())
        assert listener.has_synced()
        await listener.wait_initial_delivered()
        listener.add_all(make_adds("live"))
        assert listener.has_synced()

    async def test_stop_before_sync_ends_the_wait_unsynced(self) -> None:
        """C58, for a handler."""
        listener = ProcessorListener(Recorder())
        listener.add_all(make_adds("a", initial=True))
        waiting = asyncio.create_task(listener.wait_initial_delivered())
        await turns(2)
        listener.stop()
        await waiting
        assert not listener.has_synced()


class TestStopping:
    @pytest.mark.parametrize("waiting", [0, 1, 1000])
    async def test_stop_drops_pending_and_ends(self, waiting: int) -> None:
        """Section 1.6: the running call finishes."""
        recorder = Recorder("add a")
        listener = ProcessorListener(recorder)
        task = asyncio.create_task(listener.run())
        listener.add_all(make_adds("a"))
        await recorder.entered.wait()
        listener.add_all(make_adds("b") * waiting)
        await turns(5)
        listener.stop()
        listener.add_all(make_adds("c"))
        assert listener.depth == 0
        recorder.release.set()
        await task
        assert recorder.calls == ["add a"]
        assert listener.state.depth == 0

    @pytest.mark.parametrize("count", range(5))
    async def test_stop_at_any_step(self, count: int) -> None:
        listener = ProcessorListener(Recorder())
        task = asyncio.create_task(listener.run())
        listener.add_all(make_adds("a", "b"))
        await turns(count)
        listener.stop()
        await task

    async def test_handler_can_stop_its_own_listener(self) -> None:
        seen: list[str] = []

        def on_add(obj: Any) -> None:
            seen.append(obj.name)
            listener.stop()

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("a", "b"))
        await listener.run()
        assert seen == ["a"]

    @pytest.mark.parametrize("count", range(1, 10))
    @pytest.mark.parametrize("many", [2, 1000])
    async def test_cancel_at_any_step_leaves_no_running_call_c57(self, many: int, count: int) -> None:
        begun = ended = 0

        async def on_add(obj: Any) -> None:
            nonlocal begun, ended
            begun += 1
            try:
                await asyncio.sleep(0)
            finally:
                ended += 1

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("a") * many)
        await cancel_after(count, listener.run())
        assert begun == ended
        assert listener.state.failed == 0  # a cancellation is not a failure of the handler
        assert listener.depth == 0
        listener.add_all(make_adds("late"))
        assert listener.depth == 0  # it would never be handled
        assert listener.state.handling is None

    async def test_cancel_waits_for_cleanup_of_handler_c57(self) -> None:
        begun, cleaned = asyncio.Event(), asyncio.Event()

        async def on_add(obj: Any) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await turns(3)
                cleaned.set()

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("a"))
        task = asyncio.create_task(listener.run())
        await begun.wait()
        await finish(task)
        assert cleaned.is_set()

    async def test_handler_that_suppresses_cancellation_gets_no_more_calls(self) -> None:
        seen: list[str] = []
        begun = asyncio.Event()

        async def on_add(obj: Any) -> None:
            seen.append(obj.name)
            begun.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

        listener = ProcessorListener(make_handler(on_add))
        listener.add_all(make_adds("a", "b", "c"))
        task = asyncio.create_task(listener.run())
        await begun.wait()
        await finish(task)
        assert seen == ["a"]


class TestResync:
    def test_resync_is_due_after_each_period(self) -> None:
        """C49: counted from the start, then from each due check."""
        listener = ProcessorListener(Recorder(), 10.0, 10.0)
        listener.determine_next_resync(100.0)
        assert not listener.should_resync(109.0)
        assert listener.should_resync(110.0)
        listener.determine_next_resync(112.0)
        assert not listener.should_resync(121.0)
        assert listener.should_resync(122.0)

    @pytest.mark.parametrize("option", ["requested_resync_period", "resync_period"])
    @pytest.mark.parametrize("value", [-1, math.nan, math.inf, "1", None])
    def test_invalid_periods_are_refused(self, option: str, value: Any) -> None:
        with pytest.raises(
            ConfigError, match=f"^{option} must be a number of seconds, 0 or more, not {value!r}"
        ):
            ProcessorListener(Recorder(), **{option: value})

    def test_period_of_zero_is_never_due_c48(self) -> None:
        listener = ProcessorListener(Recorder())
        listener.determine_next_resync(0.0)
        assert not listener.should_resync(1e12)
