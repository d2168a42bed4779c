"""fifo/queue.py: waiting, locking, closing and cancellation, with queues that are locked while they process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import DeltaFIFO, RealFIFO, Store
from aioinformer._core.tasks import finish
from aioinformer.cache import Delta, DeltaType
from aioinformer.errors import FIFOClosedError, QueueHeldError, RequeueError, TransformError

from ..samples import pod
from ..steps import cancel_after, turns, until
from .queues import KINDS, Deltas, Fifo, Gate, ignore, is_free, keys

ADDED, DELETED = DeltaType.ADDED, DeltaType.DELETED

new_fifo = KINDS["delta"]


@pytest.fixture(params=[*KINDS], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select the queue that ``new_fifo`` makes."""
    chosen: str = request.param
    monkeypatch.setattr(f"{__name__}.new_fifo", KINDS[chosen])
    return chosen


async def make_filled(*names: str) -> Fifo:
    fifo = new_fifo()
    await fifo.apply([Delta(ADDED, pod(name)) for name in names])
    return fifo


class TestWaiting:
    async def test_pop_waits_for_an_item(self) -> None:
        fifo = new_fifo()
        popping = asyncio.create_task(fifo.pop(ignore))
        await turns(3)
        assert not popping.done()
        await fifo.add(pod())
        assert await popping == [Delta(ADDED, pod())]

    async def test_each_item_goes_to_exactly_one_popper(self) -> None:
        fifo = new_fifo()
        seen: list[str] = []
        poppers = [
            asyncio.create_task(fifo.pop(lambda deltas, initial: seen.append(deltas[0].object.name)))
            for _ in range(10)
        ]
        await turns(2)
        for name in "abcdefghij":
            await fifo.add(pod(name))
        await asyncio.gather(*poppers)
        assert "".join(sorted(seen)) == "abcdefghij"

    @pytest.mark.parametrize("count", range(6))
    async def test_cancelled_popper_does_not_lose_a_wakeup(self, count: int) -> None:
        """Design 3: notify(1) would lose one."""
        fifo = new_fifo()
        cancelled = asyncio.create_task(fifo.pop(ignore))
        other = asyncio.create_task(fifo.pop(ignore))
        await turns(count)
        adding = asyncio.create_task(fifo.add(pod()))
        await turns(count % 3)
        cancelled.cancel()
        await adding
        if (await asyncio.gather(cancelled, return_exceptions=True))[0] != [Delta(ADDED, pod())]:
            assert await other == [Delta(ADDED, pod())]
        await finish(other)
        assert await is_free(fifo)

    async def test_wait_synced_returns_after_last_initial_item(self) -> None:
        fifo = new_fifo()
        waiting = asyncio.create_task(fifo.wait_synced())
        await fifo.replace([pod()], "1")
        await turns(3)
        assert not waiting.done()
        await fifo.pop(ignore)
        await waiting


class TestProcess:
    @pytest.mark.parametrize("answer", [True, 0, "text", [], object], ids=repr)
    async def test_return_value_is_ignored(self, answer: Any) -> None:
        fifo = await make_filled("a")
        assert await fifo.pop(lambda deltas, initial: answer) == [Delta(ADDED, pod())]

    async def test_process_may_return_any_awaitable(self) -> None:
        fifo = await make_filled("a", "b")
        gate = Gate()
        gate.release.set()
        await fifo.pop(gate)
        await fifo.pop(lambda deltas, initial: asyncio.ensure_future(gate(deltas, initial)))
        assert gate.seen == ["ns/a", "ns/b"]

    async def test_queue_is_locked_meanwhile(self) -> None:
        fifo = await make_filled("a")
        gate = Gate()
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        adding = asyncio.create_task(fifo.add(pod("b")))
        await turns(5)
        assert not adding.done()
        gate.release.set()
        await popping
        await adding
        assert keys(fifo) == ["ns/b"]

    async def test_queue_verbs_from_inside_process_are_refused(self) -> None:
        fifo = await make_filled("a")
        verbs: list[Callable[[], Awaitable[object]]] = [
            lambda: fifo.add(pod("b")),
            lambda: fifo.update(pod("b")),
            lambda: fifo.delete(pod("a")),
            lambda: fifo.apply([]),
            lambda: fifo.replace([], ""),
            fifo.resync,
            lambda: fifo.pop(ignore),
            lambda: fifo.pop_batch(ignore),
        ]
        if isinstance(fifo, DeltaFIFO):
            verbs.append(partial(fifo.add_if_not_present, [Delta(ADDED, pod("b"))]))
        refused = 0

        async def process(deltas: Deltas, initial: bool) -> None:
            nonlocal refused
            for verb in verbs:
                with pytest.raises(QueueHeldError):
                    await verb()
                refused += 1

        await fifo.pop(process)
        assert refused == len(verbs)
        await fifo.add(pod("b"))
        assert keys(fifo) == ["ns/b"]

    async def test_queue_verb_in_a_task_of_process_deadlocks_until_cancelled(self) -> None:
        """As upstream, it waits for ever. A cancellation ends it."""
        fifo = await make_filled("a")
        started = asyncio.Event()

        async def process(deltas: Deltas, initial: bool) -> None:
            started.set()
            await asyncio.gather(fifo.add(pod("b")))

        popping = asyncio.create_task(fifo.pop(process))
        await started.wait()
        await turns(5)
        assert not popping.done()
        await finish(popping)
        assert keys(fifo) == ["ns/a"]

    async def test_process_may_add_to_another_queue(self) -> None:
        fifo, other = await make_filled("a"), new_fifo()

        async def process(deltas: Deltas, initial: bool) -> None:
            await other.apply(deltas)

        await fifo.pop(process)
        assert keys(other) == ["ns/a"]

    async def test_process_may_read_the_queue(self) -> None:
        fifo = await make_filled("a", "b")
        seen: list[Any] = []
        await fifo.pop(lambda deltas, initial: seen.append((keys(fifo), len(fifo), fifo.is_closed)))
        assert seen == [(["ns/b"], 1, False)]

    @pytest.mark.parametrize("error", [ValueError(), StopIteration(), RuntimeError()], ids=repr)
    async def test_pop_works_after_an_error(self, error: Exception) -> None:
        fifo = await make_filled("a", "b")

        def process(deltas: Deltas, initial: bool) -> None:
            raise error

        with pytest.raises((type(error), RuntimeError)):  # a coroutine cannot raise StopIteration
            await fifo.pop(process)
        assert await fifo.pop(ignore) == [Delta(ADDED, pod("b"))]

    async def test_async_process_may_requeue(self, kind: str) -> None:
        fifo = await make_filled("a", "b")

        async def process(deltas: Deltas, initial: bool) -> None:
            raise RequeueError

        await fifo.pop(process)
        assert keys(fifo) == (["ns/b", "ns/a"] if kind == "delta" else ["ns/a", "ns/b"])

    async def test_slow_pop_with_many_pending_logs_warning(
        self, caplog: pytest.LogCaptureFixture, pass_time: Callable[[float], None]
    ) -> None:
        """Section 1.1: depth over 10 and more than 100 ms."""

        def slow(deltas: Deltas, initial: bool) -> None:
            pass_time(0.2)

        fifo = await make_filled(*(f"p{number}" for number in range(13)))
        with caplog.at_level(logging.WARNING):
            await fifo.pop(slow)
            assert caplog.messages == ["processing ns/p0 took 200 ms, with 12 waiting"]
            await fifo.pop(ignore)  # quick
            await fifo.pop(slow)  # few items are pending
        assert len(caplog.messages) == 1

    async def test_slow_pop_that_raises_is_logged_with_the_queues_key(
        self, kind: str, caplog: pytest.LogCaptureFixture, pass_time: Callable[[float], None]
    ) -> None:
        """As upstream, which defers its trace."""

        def slow(deltas: Deltas, initial: bool) -> None:
            pass_time(0.2)
            raise ValueError

        key_func = "number {}".format
        fifo = DeltaFIFO(key_func) if kind == "delta" else RealFIFO(key_func, Store(key_func))
        await fifo.apply([Delta(ADDED, number) for number in range(12)])
        with pytest.raises(ValueError):
            await fifo.pop(slow)
        assert caplog.messages == ["processing number 0 took 200 ms, with 11 waiting"]


@pytest.mark.usefixtures("long_slices")
class TestBatches:
    async def test_batch_takes_all_queued_items(self) -> None:
        fifo = await make_filled("a", "b", "c")
        seen: list[str] = []
        assert await fifo.pop_batch(lambda deltas, initial: seen.append(deltas[0].object.name)) == 3
        assert seen == ["a", "b", "c"]

    async def test_batch_ends_with_its_time_slice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Design 2: no step blocks the event loop for long."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await make_filled("a", "b", "c")
        assert await fifo.pop_batch(ignore) == 1

    @pytest.mark.parametrize("error", [RequeueError(), RequeueError(KeyError()), KeyError()], ids=repr)
    async def test_first_error_ends_the_batch(self, error: Exception, kind: str) -> None:
        fifo = await make_filled("a", "b", "c")

        def process(deltas: Deltas, initial: bool) -> None:
            if deltas[0].object.name == "b":
                raise error

        if isinstance(error, RequeueError) and error.cause is None:
            assert await fifo.pop_batch(process) == 2
        else:
            with pytest.raises(KeyError):
                await fifo.pop_batch(process)
        requeued = ["ns/c", "ns/b"] if kind == "delta" else ["ns/b", "ns/c"]
        assert keys(fifo) == (requeued if isinstance(error, RequeueError) else ["ns/c"])

    async def test_batch_marks_items_of_the_initial_list(self) -> None:
        fifo = new_fifo()
        await fifo.replace([pod("a"), pod("b")], "1")
        await fifo.add(pod("c"))
        seen: list[bool] = []
        await fifo.pop_batch(lambda deltas, initial: seen.append(initial))
        assert seen == [True, True, False]
        assert fifo.has_synced()

    async def test_empty_apply_does_nothing(self) -> None:
        fifo = new_fifo()
        await fifo.apply([])
        assert len(fifo) == 0
        assert not fifo.has_synced()


class TestClosing:
    async def test_closed_queue_still_pops_queued_items_c15(self) -> None:
        fifo = await make_filled("a", "b")
        fifo.close()
        fifo.close()
        assert fifo.is_closed
        assert await fifo.pop(ignore) == [Delta(ADDED, pod("a"))]
        assert await fifo.pop_batch(ignore) == 1
        for verb in (fifo.pop, fifo.pop_batch):
            with pytest.raises(FIFOClosedError):
                await verb(ignore)

    @pytest.mark.parametrize("count", range(4))
    async def test_close_wakes_all_waiters_c15(self, count: int) -> None:
        """C15 TestDeltaFIFO_PopShouldUnblockWhenClosed."""
        fifo = new_fifo()
        verbs: list[Callable[..., Coroutine[Any, Any, Any]]] = [fifo.pop, fifo.pop_batch]
        poppers = [asyncio.create_task(verb(ignore)) for verb in verbs * 3]
        await turns(count)
        fifo.close()
        results = await asyncio.gather(*poppers, return_exceptions=True)
        assert [type(result) for result in results] == [FIFOClosedError] * 6

    async def test_close_from_inside_process(self) -> None:
        fifo = await make_filled("a")
        waiting: list[asyncio.Task[Any]] = []

        def process(deltas: Deltas, initial: bool) -> None:
            fifo.close()

        await fifo.pop(process)
        waiting = [asyncio.create_task(fifo.pop(ignore)) for _ in range(2)]
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [FIFOClosedError] * 2

    async def test_close_while_an_item_is_processed(self) -> None:
        fifo, gate = await make_filled("a"), Gate()
        popping = asyncio.create_task(fifo.pop(gate))
        waiting = asyncio.create_task(fifo.pop(ignore))
        await gate.entered.wait()
        fifo.close()
        gate.release.set()
        assert await popping == [Delta(ADDED, pod("a"))]
        with pytest.raises(FIFOClosedError):
            await waiting

    @pytest.mark.parametrize("count", range(6))
    @pytest.mark.parametrize("is_cancelled", [False, True])
    async def test_close_while_others_wait_for_the_lock(self, count: int, is_cancelled: bool) -> None:
        """Also if the only waiter for the lock is cancelled before it gets it."""
        fifo, gate = await make_filled("a"), Gate()
        processing = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        waiting = asyncio.create_task(fifo.pop(ignore))
        adding = asyncio.create_task(fifo.resync())
        await turns(2)
        gate.release.set()
        await turns(count)
        fifo.close()
        if is_cancelled:
            adding.cancel()
        with pytest.raises(FIFOClosedError):
            await waiting
        await processing
        await asyncio.gather(adding, return_exceptions=True)

    async def test_close_without_an_event_loop(self) -> None:
        fifo = await asyncio.to_thread(new_fifo)
        await asyncio.to_thread(fifo.close)
        with pytest.raises(FIFOClosedError):
            await fifo.pop(ignore)

    async def test_closed_queue_still_accepts_items(self) -> None:
        fifo = new_fifo()
        fifo.close()
        await fifo.add(pod())
        assert await fifo.pop(ignore) == [Delta(ADDED, pod())]


class TestCancelling:
    """A cancelled verb has no effect, and a cancelled pop puts its item back."""

    @pytest.mark.parametrize("count", range(8))
    @pytest.mark.parametrize("verb", ["pop", "pop_batch"])
    async def test_cancelled_pop_loses_no_item(self, verb: str, count: int) -> None:
        fifo = new_fifo()
        await fifo.replace([pod(name) for name in "abc"], "1")
        begun: list[str] = []
        ended: list[str] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            begun.append(deltas[0].object.key)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append(deltas[0].object.key)

        await cancel_after(count, getattr(fifo, verb)(process))
        assert sorted([*keys(fifo), *ended]) == ["ns/a", "ns/b", "ns/c"]
        assert fifo.has_synced() is (len(ended) == 3)
        while len(fifo):
            await fifo.pop(ignore)
        assert fifo.has_synced()

    async def test_process_may_raise_cancelled_error_itself(self) -> None:
        fifo = await make_filled("a")

        def process(deltas: Deltas, initial: bool) -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await fifo.pop(process)
        assert keys(fifo) == ["ns/a"]

    async def test_timeout_around_pop_puts_the_item_back(self) -> None:
        fifo, gate = await make_filled("a"), Gate()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await fifo.pop(gate)
        assert keys(fifo) == ["ns/a"]
        gate.release.set()
        await fifo.pop(gate)

    async def test_add_works_after_a_cancelled_process(self) -> None:
        fifo, gate = await make_filled("a"), Gate()
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        popping.cancel()
        await asyncio.gather(popping, return_exceptions=True)
        await fifo.add(pod("b"))
        assert keys(fifo) == ["ns/a", "ns/b"]


@pytest.mark.parametrize("given", ["list", "values", "generator"])
async def test_changes_to_the_given_objects_during_replace_have_no_effect(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object that the caller removes meanwhile would be reported as deleted."""
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
    fifo = new_fifo()
    live = {name: pod(name) for name in "abcd"}
    objects = [*live.values()]
    consumed: list[str] = []

    def one_by_one() -> Iterator[Any]:
        for name in "abcd":
            consumed.append(name)
            yield pod(name)

    sources: dict[str, Iterable[Any]] = {"list": objects, "values": live.values(), "generator": one_by_one()}
    replacing = asyncio.create_task(fifo.replace(sources[given], "1"))
    await turns(2)
    del objects[0], live["a"]
    assert consumed != [*"abcd"], "a generator is consumed step by step"
    await replacing
    assert keys(fifo) == ["ns/a", "ns/b", "ns/c", "ns/d"]


async def test_list_of_100000_lets_other_tasks_run() -> None:
    """Design 2: the event loop is shared."""
    fifo = new_fifo()
    objects = [{"metadata": {"name": f"p{number}"}} for number in range(100_000)]
    replacing = asyncio.create_task(fifo.replace(objects, "1"))
    rounds = 0
    while not replacing.done():
        await asyncio.sleep(0)
        rounds += 1
    await replacing
    assert rounds > 5
    assert len(fifo) == 100_000
    processed = batches = 0
    while len(fifo):
        processed += await fifo.pop_batch(ignore)
        batches += 1
    assert processed == 100_000
    assert batches > 5


moves = st.lists(
    st.tuples(
        st.sampled_from(["add", "pop", "pop_batch", "pop_many", "cancel", "turn", "requeue", "replace"]),
        st.integers(0, 5),
    ),
    max_size=30,
)


@given(moves)
async def test_concurrent_tasks_with_cancellations_lose_nothing(sequence: list[tuple[str, int]]) -> None:
    """Many tasks use one queue and some are cancelled: the last state of each key is processed."""
    fifo = new_fifo()
    processed: dict[str, str] = {}
    queued: dict[str, str] = {}
    tasks: list[asyncio.Task[Any]] = []
    refuse: list[None] = []

    async def process(deltas: Deltas, initial: bool) -> None:
        await asyncio.sleep(0)
        if refuse:
            refuse.pop()
            raise RequeueError
        processed.update((delta.object.key, delta.object.resource_version) for delta in deltas)

    async def add(obj: Any) -> None:
        await fifo.add(obj)
        queued[obj.key] = obj.resource_version

    async def replace(objects: list[Any]) -> None:
        await fifo.replace(objects, "")
        for obj in objects:
            queued[obj.key] = obj.resource_version

    for number, (move, choice) in enumerate(sequence):
        obj = pod("abc"[choice % 3], version=str(number))
        if move == "add":
            tasks.append(asyncio.create_task(add(obj)))
        elif move == "replace":  # of all keys, so that nothing is deleted
            tasks.append(asyncio.create_task(replace([pod(name, version=str(number)) for name in "abc"])))
        elif move in ("pop", "pop_batch"):
            tasks.append(asyncio.create_task(getattr(fifo, move)(process)))
        elif move == "pop_many":
            tasks.append(asyncio.create_task(fifo.pop_batch(process, process)))
        elif move == "requeue":
            refuse.append(None)
        elif move == "turn":
            await turns(choice)
        elif tasks:
            tasks[choice % len(tasks)].cancel()
    await turns(20)
    await finish(*tasks)
    refuse.clear()
    fifo.close()
    with pytest.raises(FIFOClosedError):
        while True:
            await fifo.pop(process)
    assert processed == queued


async def test_failed_add_leaves_the_queue_unlocked() -> None:
    def transform(obj: Any) -> Any:
        raise ValueError

    fifo = new_fifo(transformer=transform)
    waiting = asyncio.create_task(fifo.pop(ignore))
    await turns(2)
    with pytest.raises(TransformError):
        await fifo.add(pod())
    fifo.close()
    with pytest.raises(FIFOClosedError):
        await waiting
    await until(waiting.done)
