"""processor/listener.py: one handler's way from notification to call."""

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
from ..steps import cancel_after, running, turns, until


class Recorder(ResourceEventHandler[KubeObject]):
    """Notes each call; stands still in the calls for the names it is told to."""

    def __init__(self, *standing_still_at: str) -> None:
        self.calls: list[str] = []
        self.at = standing_still_at
        self.entered = asyncio.Event()
        self.let_go = asyncio.Event()

    async def _note(self, what: str) -> None:
        if what in self.at:
            self.entered.set()
            await self.let_go.wait()
        self.calls.append(what)

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> object:
        return self._note(f"add {obj.name}")

    def on_update(self, old: KubeObject, new: KubeObject) -> object:
        return self._note(f"update {new.name}")

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> object:
        return self._note(f"delete {obj.key}")


def added(*names: str, initial: bool = False) -> list[Notification]:
    return [AddNotification(pod(name), initial) for name in names]


def calling(function: Callable[[Any], object]) -> ResourceEventHandlerFuncs[Any]:
    return ResourceEventHandlerFuncs(on_add=lambda obj, initial: function(obj))


class TestOrder:
    async def test_one_call_after_the_other_in_order_c56(self) -> None:
        """C56, async and plain."""
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
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert recorder.calls == ["add a", "update a", "delete ns/a", "delete ns/b"]

    async def test_calls_never_overlap_c56(self) -> None:
        inside: list[str] = []

        async def on_add(obj: Any) -> None:
            assert not inside
            inside.append(obj.name)
            await asyncio.sleep(0)
            inside.clear()

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added(*"abcdef"))
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert listener.state.failed == 0


@given(st.lists(st.sampled_from(["add", "many", "turn", "let-go"]), max_size=20), st.booleans())
async def test_whenever_they_come_none_is_lost_or_twice_c56(moves: list[str], is_async: bool) -> None:
    seen: list[int] = []
    gate = asyncio.Semaphore(0)

    async def later(number: int) -> None:
        await gate.acquire()
        seen.append(number)

    listener: ProcessorListener[Any] = ProcessorListener(calling(later if is_async else seen.append))
    sent: list[Notification] = []
    task = asyncio.create_task(listener.run())
    for move in moves:
        if move == "turn":
            await turns(2)
        elif move == "let-go":
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
    async def test_a_slow_handler_delays_nobody_c55(self) -> None:
        recorder = Recorder("add a")
        listener = ProcessorListener(recorder)
        async with running(listener.run()):
            listener.add_all(added("a"))
            await recorder.entered.wait()
            for notification in added("b") * 10_000:
                listener.add(notification)  # plain code: it never waits
            assert listener.depth == listener.high_water == 10_001
            recorder.let_go.set()
            await until(lambda: listener.depth == 0)
        assert len(recorder.calls) == 10_001
        assert listener.high_water == 10_001

    async def test_what_comes_before_the_start_waits(self) -> None:
        recorder = Recorder()
        listener = ProcessorListener(recorder)
        listener.add_all(added("a", "b"))
        assert listener.depth == 2
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert recorder.calls == ["add a", "add b"]

    async def test_a_plain_handler_lets_others_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Design 2: the loop is shared."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        listener = ProcessorListener(calling(lambda obj: None))
        listener.add_all(added("a") * 50)
        rounds = 0
        async with running(listener.run()):
            while listener.depth:
                await asyncio.sleep(0)
                rounds += 1
        assert rounds >= 49  # the first may be told as the task begins

    async def test_state_says_what_it_is_doing(self) -> None:
        recorder = Recorder("add b")
        listener = ProcessorListener(recorder, name="mine")
        assert str(listener.state) == "mine: 0 waiting (at most 0), 0 delivered"
        listener.add_all(added("a", "b", "c"))
        async with running(listener.run()):
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

    async def test_a_slow_call_with_many_waiting(
        self, caplog: pytest.LogCaptureFixture, clock: list[float]
    ) -> None:
        """Section 1.1: more than 1024 pending and a call over 100 ms."""

        async def on_add(obj: Any) -> None:
            await asyncio.sleep(0)
            if obj.name == "a":
                clock[0] += 0.2 - 0.1 * (listener.state.delivered > 0)
                await asyncio.sleep(0)
                clock[0] += 0.1 * (listener.state.delivered > 0)

        listener = ProcessorListener(calling(on_add), name="slow")
        listener.add_all(added("a") * 3 + added("b") * 1024)
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert caplog.messages == ["slow took 200 ms on ns/a, with 1026 waiting"]

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_a_handler_that_holds_the_loop_is_named(
        self, caplog: pytest.LogCaptureFixture, clock: list[float], is_async: bool
    ) -> None:
        """An async one at its second slow call: only then are its steps timed, so that others cost nothing."""

        def plain(obj: Any) -> None:
            clock[0] += 0.3 if obj.name == "slow" else 0.01

        async def later(obj: Any) -> None:
            await asyncio.sleep(0)
            plain(obj)

        listener = ProcessorListener(calling(later if is_async else plain), name="mine")
        listener.add_all(added("quick", "slow", "quick", "slow", "slow"))
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        waiting = 1 if is_async else 3
        assert caplog.messages == [
            f"mine blocked the event loop for 300 ms on ns/slow, with {waiting} waiting; {ADVICE}"
        ]
        assert listener.state.failed == 0

    async def test_one_that_waits_for_long_holds_nobody_up(
        self, caplog: pytest.LogCaptureFixture, clock: list[float]
    ) -> None:
        async def on_add(obj: Any) -> None:
            clock[0] += 0.05
            for _ in range(10):
                await asyncio.sleep(0)
                clock[0] += 0.05

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("a") * 5)
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert not caplog.messages

    async def test_warnings_are_rare(self, caplog: pytest.LogCaptureFixture, clock: list[float]) -> None:
        def on_add(obj: Any) -> None:
            clock[0] += 1.0

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("a") * 100)
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert len(caplog.messages) == 100 / slow_calls.WARN_EVERY

    async def test_one_that_is_timed_can_fail_and_be_cancelled(self, clock: list[float]) -> None:
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

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("slow", "fails", "waits"))
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
    async def test_a_handler_that_raises_is_logged_counted_and_goes_on_at_once_c42(
        self, error: BaseException, is_async: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C42, where we differ: the notification counts as delivered, and there is no pause. Its own CancelledError
        is an error like others."""
        seen: list[str] = []

        def plain(obj: Any) -> None:
            seen.append(obj.name)
            if obj.name == "a":
                raise error

        async def later(obj: Any) -> None:
            plain(obj)

        listener = ProcessorListener(calling(later if is_async else plain), name="mine")
        listener.add_all(added("a", "b", initial=True))
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert seen == ["a", "b"]
        assert (listener.state.delivered, listener.state.failed) == (2, 1)
        assert listener.has_synced()
        assert caplog.messages == ["mine failed on add of ns/a at 1"]
        assert "2 delivered, 1 failed" in str(listener.state)

    @pytest.mark.parametrize("handler", [object(), print, ResourceEventHandlerFuncs])
    def test_what_is_no_handler_is_found_out_at_once(self, handler: Any) -> None:
        with pytest.raises(ConfigError, match=r"on_add|an instance"):
            ProcessorListener(handler)

    async def test_objects_that_cannot_be_named_or_printed(self, caplog: pytest.LogCaptureFixture) -> None:
        class Unprintable:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        def fail(obj: Any) -> None:
            raise ValueError

        listener: ProcessorListener[Any] = ProcessorListener(calling(fail), name="mine")
        listener.add_all([AddNotification(Unprintable()), AddNotification(None), *added("a")])
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert caplog.messages[0] == "mine failed on add of <Unprintable> at no version"
        assert listener.state.failed == 3

    @pytest.mark.parametrize("answer", [True, 0, "text", [], object], ids=repr)
    async def test_what_a_handler_returns_does_not_matter(self, answer: Any) -> None:
        listener = ProcessorListener(calling(lambda obj: answer))
        listener.add_all(added("a", "b"))
        async with running(listener.run()):
            await until(lambda: listener.depth == 0)
        assert listener.state.failed == 0


class TestSynced:
    async def test_synced_once_the_last_initial_add_has_returned_c41(self) -> None:
        recorder = Recorder("add b")
        upstream = [False]
        listener = ProcessorListener(recorder, upstream_synced=lambda: upstream[0])
        listener.add_all(added("a", "b", initial=True))
        listener.add_all(added("c"))
        waiting = asyncio.create_task(listener.wait_initial_delivered())
        async with running(listener.run()):
            await recorder.entered.wait()
            upstream[0] = True
            assert not listener.has_synced()
            assert not waiting.done()
            recorder.let_go.set()
            await waiting
            assert listener.has_synced()
            upstream[0] = False
            assert not listener.has_synced()

    async def test_with_nothing_to_add_it_is_synced_with_its_upstream_c41(self) -> None:
        listener = ProcessorListener(Recorder())
        assert listener.has_synced()
        await listener.wait_initial_delivered()
        listener.add_all(added("live"))
        assert listener.has_synced()

    async def test_dropped_before_it_was_synced_it_never_is_and_nobody_waits_for_ever(self) -> None:
        """C58, for a handler."""
        listener = ProcessorListener(Recorder())
        listener.add_all(added("a", initial=True))
        waiting = asyncio.create_task(listener.wait_initial_delivered())
        await turns(2)
        listener.stop()
        await waiting
        assert not listener.has_synced()


class TestStopping:
    @pytest.mark.parametrize("waiting", [0, 1, 1000])
    async def test_stopped_it_drops_what_waits_and_ends(self, waiting: int) -> None:
        """Section 1.6: a call that is running goes on."""
        recorder = Recorder("add a")
        listener = ProcessorListener(recorder)
        task = asyncio.create_task(listener.run())
        listener.add_all(added("a"))
        await recorder.entered.wait()
        listener.add_all(added("b") * waiting)
        await turns(5)
        listener.stop()
        listener.add_all(added("c"))
        assert listener.depth == 0
        recorder.let_go.set()
        await task
        assert recorder.calls == ["add a"]
        assert listener.state.depth == 0

    @pytest.mark.parametrize("count", range(5))
    async def test_stopped_at_any_moment(self, count: int) -> None:
        listener = ProcessorListener(Recorder())
        task = asyncio.create_task(listener.run())
        listener.add_all(added("a", "b"))
        await turns(count)
        listener.stop()
        await task

    async def test_stopped_by_its_own_handler(self) -> None:
        seen: list[str] = []

        def on_add(obj: Any) -> None:
            seen.append(obj.name)
            listener.stop()

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("a", "b"))
        await listener.run()
        assert seen == ["a"]

    @pytest.mark.parametrize("count", range(1, 10))
    @pytest.mark.parametrize("many", [2, 1000])
    async def test_cancelled_at_any_moment_it_leaves_nothing_c57(self, many: int, count: int) -> None:
        begun = ended = 0

        async def on_add(obj: Any) -> None:
            nonlocal begun, ended
            begun += 1
            try:
                await asyncio.sleep(0)
            finally:
                ended += 1

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("a") * many)
        await cancel_after(count, listener.run())
        assert begun == ended
        assert listener.state.failed == 0  # being cancelled is no failure of the handler's
        assert listener.depth == 0
        listener.add_all(added("late"))
        assert listener.depth == 0  # nobody will ever handle it
        assert listener.state.handling is None

    async def test_it_waits_for_a_handler_that_is_cleaning_up_c57(self) -> None:
        begun, cleaned = asyncio.Event(), asyncio.Event()

        async def on_add(obj: Any) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await turns(3)
                cleaned.set()

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("a"))
        task = asyncio.create_task(listener.run())
        await begun.wait()
        await finish(task)
        assert cleaned.is_set()

    async def test_a_handler_that_swallows_its_cancellation_gets_no_more(self) -> None:
        seen: list[str] = []
        begun = asyncio.Event()

        async def on_add(obj: Any) -> None:
            seen.append(obj.name)
            begun.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

        listener = ProcessorListener(calling(on_add))
        listener.add_all(added("a", "b", "c"))
        task = asyncio.create_task(listener.run())
        await begun.wait()
        await finish(task)
        assert seen == ["a"]


class TestResync:
    def test_due_after_each_period(self) -> None:
        """C49: counted from a given time, then from each due look."""
        listener = ProcessorListener(Recorder(), 10.0, 10.0)
        listener.determine_next_resync(100.0)
        assert not listener.should_resync(109.0)
        assert listener.should_resync(110.0)
        listener.determine_next_resync(112.0)
        assert not listener.should_resync(121.0)
        assert listener.should_resync(122.0)

    @pytest.mark.parametrize("option", ["requested_resync_period", "resync_period"])
    @pytest.mark.parametrize("value", [-1, math.nan, math.inf, "1", None])
    def test_periods_that_cannot_be_are_named(self, option: str, value: Any) -> None:
        with pytest.raises(
            ConfigError, match=f"^{option} must be a number of seconds, 0 or more, not {value!r}"
        ):
            ProcessorListener(Recorder(), **{option: value})

    def test_a_period_of_zero_is_never_due_c48(self) -> None:
        listener = ProcessorListener(Recorder())
        listener.determine_next_resync(0.0)
        assert not listener.should_resync(1e12)
