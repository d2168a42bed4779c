"""processor/listener.py: plain handlers for which nothing waits are called where their news comes up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from aioinformer import (
    AddNotification,
    Backlog,
    Processor,
    ProcessorListener,
    ResourceEventHandlerFuncs,
    Tracer,
)

from ..samples import pod
from ..steps import running, turns, until


def listening(function: Callable[[str], object], **options: Any) -> ProcessorListener[Any]:
    handler = ResourceEventHandlerFuncs[Any](on_add=lambda obj, initial: function(obj.name))
    return ProcessorListener(handler, **options)


def news(name: str, *, initial: bool = False) -> AddNotification:
    return AddNotification(pod(name), initial)


@asynccontextmanager
async def waiting_for_news(
    *listeners: ProcessorListener[Any], make: Callable[[], Processor] = Processor
) -> AsyncIterator[Processor]:
    """Each has had one call."""
    processor = make()
    for listener in listeners:
        processor.add_listener(listener)
    async with running(processor.run()):
        processor.distribute_all([news("first")])
        await until(lambda: all(listener.depth == 0 for listener in listeners))
        await turns(1)
        yield processor


@pytest.mark.parametrize("backlog", ["unbounded", "block", "drop_oldest", "coalesce"])
async def test_a_plain_one_is_told_at_once(backlog: Backlog) -> None:
    seen: list[str] = []
    listener = listening(seen.append, backlog=backlog)
    async with waiting_for_news(listener) as processor:
        processor.distribute_all([news("a")])
        processor.distribute_all([news("b", initial=True)])
        assert seen == ["first", "a", "b"]
        assert listener.has_synced()
        state = listener.state
        assert (state.depth, state.high_water, state.delivered, state.handling) == (0, 1, 3, None)


async def test_its_first_call_is_its_tasks() -> None:
    """As it may be an async one."""
    seen: list[str] = []
    processor = Processor()
    processor.add_listener(listening(seen.append))
    async with running(processor.run()):
        await turns(2)
        processor.distribute_all([news("a")])
        assert seen == []
        await until(lambda: seen)


async def test_c56_not_before_what_waits() -> None:
    seen: list[str] = []
    async with waiting_for_news(listening(seen.append)) as processor:
        processor.distribute(news("a"), False)
        processor.distribute_all([news("b")])
        assert seen == ["first"]
        await until(lambda: len(seen) == 3)
    assert seen == ["first", "a", "b"]


async def test_c56_not_within_its_own_call() -> None:
    inside: list[str] = []
    seen: list[str] = []

    def on_add(name: str) -> None:
        assert not inside
        inside.append(name)
        if name == "a":
            processor.distribute_all([news("b")])
        seen.append(inside.pop())

    listener = listening(on_add)
    async with waiting_for_news(listener) as processor:
        processor.distribute_all([news("a")])
        processor.distribute_all([news("c")])
        await until(lambda: len(seen) == 4)
    assert seen == ["first", "a", "b", "c"]
    assert listener.state.failed == 0


async def test_c56_an_async_one_is_told_by_its_task_alone() -> None:
    seen: list[tuple[str, asyncio.Task[Any] | None]] = []

    async def on_add(name: str) -> None:
        seen.append((name, asyncio.current_task()))

    async with waiting_for_news(listening(on_add)) as processor:
        processor.distribute_all([news("a")])
        assert len(seen) == 1
        await until(lambda: len(seen) == 2)
    assert seen[0][1] is seen[1][1]


class TurningAsync:
    """Plain at first; later its calls are to be awaited, as coroutines or whatever else is made of them."""

    def __init__(self, begin: Callable[[Coroutine[Any, Any, None]], object] = lambda call: call) -> None:
        self.begin = begin
        self.seen: list[str] = []
        self.is_async = False
        self.let_go = asyncio.Event()

    async def later(self, name: str) -> None:
        await self.let_go.wait()
        self.seen.append(name)

    def __call__(self, name: str) -> object:
        if self.is_async:
            return self.begin(self.later(name))
        self.seen.append(name)
        return None


@asynccontextmanager
async def begun(turning: TurningAsync, count: int) -> AsyncIterator[tuple[Processor, ProcessorListener[Any]]]:
    """A call that is to be awaited, so many rounds of the loop ago."""
    listener = listening(turning)
    async with waiting_for_news(listener) as processor:
        turning.is_async = True
        processor.distribute_all([news("a")])
        await turns(count)
        yield processor, listener


class TestOneThatTurnsAsync:
    async def test_c56_its_task_awaits_the_call(self) -> None:
        turning = TurningAsync()
        listener = listening(turning)
        async with waiting_for_news(listener) as processor:
            turning.is_async = True
            for name in "abc":
                processor.distribute_all([news(name, initial=True)])
            assert not listener.has_synced()
            assert (listener.depth, listener.state.handling) == (3, "ns/a")
            turning.let_go.set()
            await until(listener.has_synced)
            assert turning.seen == ["first", "a", "b", "c"]
            turning.is_async = False
            processor.distribute_all([news("d")])
            processor.distribute_all([news("e")])
            await until(lambda: listener.depth == 0)
        assert turning.seen[4:] == ["d", "e"]

    @pytest.mark.parametrize("count", range(4))
    async def test_section_1_6_stopped_meanwhile_the_call_goes_on(self, count: int) -> None:
        turning = TurningAsync()
        async with begun(turning, count) as (processor, listener):
            processor.remove_listener(listener)
            turning.let_go.set()
            await listener.wait_ended()
        assert turning.seen == ["first", "a"]

    @pytest.mark.parametrize(
        "make", [TurningAsync, lambda: TurningAsync(asyncio.create_task)], ids=["coroutine", "task"]
    )
    @pytest.mark.parametrize("count", range(4))
    async def test_section_1_6_stopped_meanwhile_the_call_can_be_cancelled(
        self, count: int, make: Callable[[], TurningAsync]
    ) -> None:
        turning = make()
        async with begun(turning, count) as (processor, listener):
            processor.remove_listener(listener)
            listener.cancel_call()
            await listener.wait_ended()
            turning.let_go.set()
            await turns(3)
        assert turning.seen == ["first"]

    @pytest.mark.parametrize("count", range(4))
    async def test_cancelled_at_any_moment(self, count: int) -> None:
        """Nothing is left that was never awaited, of which Python would warn."""
        turning = TurningAsync()
        async with begun(turning, count):
            pass
        gc.collect()
        assert turning.seen == ["first"]


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()], ids=repr)
async def test_c42_what_it_raises_is_logged_and_counted(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def on_add(name: str) -> None:
        if name == "a":
            raise error
        seen.append(name)

    listener = listening(on_add, name="mine")
    async with waiting_for_news(listener) as processor:
        processor.distribute_all([news("a", initial=True)])
        assert listener.has_synced()
        processor.distribute_all([news("b")])
        assert seen == ["first", "b"]
    assert (listener.state.delivered, listener.state.failed) == (3, 1)
    assert caplog.messages == ["mine failed on add of ns/a at 1"]


async def test_its_context_is_that_of_its_task() -> None:
    """Not that of who has the news."""
    said: ContextVar[str] = ContextVar("said", default="nothing")
    seen: list[str] = []

    def on_add(name: str) -> None:
        seen.append(said.get())
        said.set(name)

    async with waiting_for_news(listening(on_add)) as processor:
        said.set("outside")
        processor.distribute_all([news("a")])
        processor.distribute(news("b"), False)
        await until(lambda: len(seen) == 3)
        assert said.get() == "outside"
    assert seen == ["nothing", "first", "a"]


async def test_a_handler_that_removes_itself_and_others_and_adds_one() -> None:
    seen: list[str] = []
    late: list[str] = []

    def on_add(name: str) -> None:
        seen.append(name)
        if name == "a":
            processor.remove_listener(first)
            processor.remove_listener(second)
            processor.add_listener(listening(late.append))

    first, second = listening(on_add), listening(seen.append)
    async with waiting_for_news(first, second) as processor:
        processor.distribute_all([news("a")])
        processor.distribute_all([news("b")])
        await until(lambda: late)
        await second.wait_ended()
    assert (seen, late) == (["first", "first", "a"], ["b"])
    assert first.state.delivered == 2


@pytest.mark.parametrize(
    "make", [Processor, lambda: Tracer(print).processor("pods")], ids=["plain", "traced"]
)
async def test_c56_what_a_handler_distributes_comes_after_what_it_was_told_of(
    make: Callable[[], Processor],
) -> None:
    """With the others, too, who are told after it; not with those that it adds then."""
    seen: dict[str, list[str]] = {name: [] for name in ("first", "second", "added")}

    def on_add(name: str) -> None:
        seen["first"].append(name)
        if name == "a":
            processor.distribute_all([news("b")])
            processor.distribute_all([news("c"), news("d")])
            processor.add_listener(listening(seen["added"].append))

    first, second = listening(on_add), listening(seen["second"].append)
    async with waiting_for_news(first, second, make=make) as processor:
        processor.distribute_all([news("a")])
        await until(lambda: [first.depth, second.depth] == [0, 0])
        await turns(2)
    assert seen == {"first": ["first", *"abcd"], "second": ["first", *"abcd"], "added": []}


async def test_what_ends_the_telling_leaves_nothing_to_tell() -> None:
    class EndedError(BaseException):
        pass

    def on_add(name: str) -> None:
        if name == "a":
            processor.distribute_all([news("b")])
            raise EndedError

    seen: list[str] = []
    async with waiting_for_news(listening(on_add), listening(seen.append)) as processor:
        with pytest.raises(EndedError):
            processor.distribute_all([news("a")])
        processor.distribute_all([news("c")])
        await until(lambda: len(seen) == 2)
    assert seen == ["first", "c"]


async def test_it_is_as_if_in_its_own_task() -> None:
    """Also where the news come from no task."""
    seen: list[asyncio.Task[Any] | None] = []
    here = asyncio.current_task()
    listener = listening(lambda name: seen.append(asyncio.current_task()))
    async with waiting_for_news(listener) as processor:
        processor.distribute_all([news("a")])
        assert asyncio.current_task() is here
        loop = asyncio.get_running_loop()
        loop.call_soon(processor.distribute_all, [news("b")])
        await until(lambda: len(seen) == 3)
    assert len(set(seen)) == 1
    assert here not in seen


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_one_that_cancels_its_task_ends_nothing(
    is_waiting: bool, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def on_add(name: str) -> None:
        seen.append(name)
        if name == "a":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    listener = listening(on_add, name="mine")
    async with waiting_for_news(listener) as processor:
        tell = processor.distribute_all if is_waiting else listener.add_all
        for name in "abc":
            tell([news(name)])
            await turns(4)
        await until(lambda: len(seen) == 4)
        assert asyncio.current_task() is not None
    assert seen == ["first", *"abc"]
    assert caplog.messages == ["mine failed on add of ns/a at 1"]


async def test_no_call_fails_of_its_processors_end(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    processor, listener = Processor(), listening(seen.append)
    processor.add_listener(listener)
    async with running(processor.run()) as task:
        processor.distribute_all([news("first")])
        await until(lambda: listener.depth == 0)
        await turns(1)
        for each in (task, *(each for each in asyncio.all_tasks() if each.get_name() == repr(listener))):
            each.cancel()
        processor.distribute_all([news("a")])
        await asyncio.wait([task])
    assert seen == ["first", "a"]
    assert listener.state.failed == 0
    assert caplog.messages == []


def test_between_two_runs_of_its_loop_it_is_told_too() -> None:
    """As by hand, in an interactive interpreter."""
    seen: list[str] = []
    processor, listener = Processor(), listening(seen.append)
    processor.add_listener(listener)
    with asyncio.Runner() as runner:
        runner.run(_begun(processor))
        processor.distribute_all([news("a")])
        assert seen == ["first", "a"]
        assert listener.depth == 0


async def _begun(processor: Processor) -> None:
    running = asyncio.create_task(processor.run())
    processor.distribute_all([news("first")])
    await turns(4)
    assert not running.done()
