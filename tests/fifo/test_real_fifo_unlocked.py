"""fifo/real_fifo.py: adding during processing. Corner C29."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from aioinformer import RealFIFO
from aioinformer.errors import QueueHeldError, RequeueError

from ..steps import cancel_after, turns, until
from .queues import Gate
from .samples import Deltas, describe, make_filled, obj, real, store_of


@pytest.mark.parametrize(
    "pop", [lambda fifo, gate: fifo.pop(gate), lambda fifo, gate: fifo.pop_batch(gate, gate)]
)
async def test_other_tasks_may_add_during_processing_c29(
    pop: Callable[[RealFIFO, Gate], Awaitable[object]],
) -> None:
    """C29 BenchmarkAddWithSlowHandlers."""
    fifo, gate = await make_filled("a"), Gate(describe)
    popping = asyncio.ensure_future(pop(fifo, gate))
    await gate.entered.wait()
    async with asyncio.timeout(5):
        await fifo.add(obj("b"))
        await fifo.update(obj("b", 2))
        await fifo.delete(obj("b", 3))
        await fifo.replace([obj("c")], "4")
        await fifo.resync()
        await fifo.bookmark("5")
    assert not popping.done()
    assert len(fifo) == 6
    gate.release.set()
    await popping
    assert gate.seen == ["Added a 1"]


async def test_without_the_option_the_queue_is_locked_c29() -> None:
    for fifo in (real(), real(store_of())):
        await fifo.add(obj("a"))
        gate = Gate(describe)
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        adding = asyncio.create_task(fifo.add(obj("b")))
        await turns(5)
        assert not adding.done()
        gate.release.set()
        await popping
        await adding


async def test_add_waits_at_twice_the_batch_size_c29() -> None:
    fifo, gate = await make_filled("a", batch_size=2), Gate(describe)
    popping = asyncio.create_task(fifo.pop(gate))
    await gate.entered.wait()
    adding = [asyncio.create_task(fifo.add(obj(f"b{number}"))) for number in range(7)]
    await turns(5)
    assert len(fifo) == 4
    assert [task.done() for task in adding] == [True] * 4 + [False] * 3
    gate.release.set()
    await popping
    await asyncio.gather(*adding)
    assert len(fifo) == fifo.high_water == 7
    # Full from the start: adding waits until the delta was processed.
    gate = Gate(describe)
    popping = asyncio.create_task(fifo.pop(gate))
    await gate.entered.wait()
    late = asyncio.create_task(fifo.add(obj("late")))
    await turns(5)
    assert not late.done()
    gate.release.set()
    await popping
    await late


async def test_add_does_not_wait_while_nothing_is_processed_c29() -> None:
    fifo = await make_filled(batch_size=1)
    async with asyncio.timeout(5):
        for number in range(50):
            await fifo.add(obj(f"b{number}"))
    assert len(fifo) == 50


@pytest.mark.usefixtures("long_slices")
async def test_waiting_adds_continue_as_room_appears_c29() -> None:
    """Also within one pop_batch."""
    fifo = await make_filled("a", "b", "c", "d", batch_size=1)
    waiting: list[int] = []

    async def process(deltas: Deltas, initial: bool) -> None:
        await turns(4)
        waiting.append(len(fifo))

    async def produce() -> None:
        for number in range(20):
            await fifo.add(obj(f"p{number}"))

    popping = asyncio.create_task(fifo.pop_batch(process))
    await asyncio.gather(popping, produce())
    assert popping.result() == 24
    assert waiting == [3] + [2] * 21 + [1, 0]


async def test_deltas_are_processed_one_at_a_time_with_many_poppers() -> None:
    """Upstream allows only a single consumer."""
    fifo = await make_filled(*"abcdefgh")
    running = 0
    seen: list[str] = []

    async def process(deltas: Deltas, initial: bool) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await turns(3)
        running -= 1
        seen.extend(describe(deltas))

    await asyncio.gather(*(fifo.pop(process) for _ in range(8)))
    assert seen == [f"Added {name} 1" for name in "abcdefgh"]


class TestFromInsideProcess:
    async def test_add_from_inside_process_works_while_there_is_room(self) -> None:
        fifo = await make_filled("a", batch_size=1)
        refused: list[int] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            for number in range(4):
                try:
                    await fifo.add(obj(f"b{number}"))
                except QueueHeldError:
                    refused.append(number)

        await fifo.pop(process)
        assert refused == [2, 3]
        assert describe(fifo.queued) == ["Added b0 1", "Added b1 1"]

    async def test_add_from_inside_process_is_refused_if_others_fill_the_queue(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Otherwise it would deadlock."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await make_filled("a", "b", batch_size=1)

        async def process(deltas: Deltas, initial: bool) -> None:
            others = asyncio.create_task(fifo.replace([obj("c"), obj("d")], "1"))
            await turns(1)
            assert len(fifo) == 1
            with pytest.raises(QueueHeldError):
                await fifo.add(obj("e"))
            await others

        await fifo.pop(process)
        assert describe(fifo.queued) == ["Added b 1", "ReplacedAll 1 [c 1, d 1]"]

    @pytest.mark.parametrize("verb", ["pop", "pop_batch"])
    async def test_pop_from_inside_process_is_refused(self, verb: str) -> None:
        fifo = await make_filled("a", "b")

        async def process(deltas: Deltas, initial: bool) -> None:
            with pytest.raises(QueueHeldError):
                await getattr(fifo, verb)(process)

        await fifo.pop(process)
        assert describe(fifo.queued) == ["Added b 1"]


class TestCancelling:
    @pytest.mark.parametrize("ends", ["well", "requeue", "error"])
    @pytest.mark.parametrize("holder_turns", [0, 2, 5])
    @pytest.mark.parametrize("count", range(14))
    async def test_cancel_at_any_step_processes_the_delta_or_puts_it_back(
        self, count: int, holder_turns: int, ends: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also while a replace locks the queue, so that the pop waits for it."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await make_filled("a", "b")
        done: list[str] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            await turns(2)
            if ends == "requeue":
                raise RequeueError
            done.extend(describe(deltas))
            if ends == "error":
                raise ValueError

        popping = asyncio.create_task(fifo.pop(process))
        await asyncio.sleep(0)
        objects = [obj(f"c{number}") for number in range(holder_turns)]
        replacing = asyncio.create_task(fifo.replace(objects, "9"))
        await turns(count)
        popping.cancel()
        await asyncio.wait({popping})
        await replacing
        remaining = describe(fifo.queued)
        assert remaining.pop().startswith("ReplacedAll 9")
        assert done + remaining == ["Added a 1", "Added b 1"]
        await fifo.add(obj("free"))
        assert await fifo.pop_batch(lambda deltas, initial: None) >= 1

    @pytest.mark.parametrize("count", range(8))
    async def test_cancelled_waiting_add_adds_nothing(self, count: int) -> None:
        fifo, gate = await make_filled("a", "b", "c", batch_size=1), Gate(describe)
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        await cancel_after(count, fifo.add(obj("d")))
        assert describe(fifo.queued) == ["Added b 1", "Added c 1"]
        gate.release.set()
        await popping
        await fifo.add(obj("free"))

    async def test_cancel_during_requeue_is_not_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The pop waits for the queue's lock at that moment."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await make_filled("a")
        refused = asyncio.Event()

        async def process(deltas: Deltas, initial: bool) -> None:
            replacing.append(
                asyncio.create_task(fifo.replace([obj(str(number)) for number in range(20)], "1"))
            )
            await turns(2)
            refused.set()
            raise RequeueError

        replacing: list[asyncio.Task[None]] = []
        popping = asyncio.create_task(fifo.pop_batch(process))
        await refused.wait()
        popping.cancel()
        await asyncio.wait({popping})
        assert popping.cancelled()
        await asyncio.gather(*replacing)
        assert describe(fifo.queued)[0] == "Added a 1"


class TestClosing:
    async def test_pop_of_closed_queue_waits_for_deltas_in_process(self) -> None:
        """They may be requeued."""
        fifo, entered = await make_filled("a"), asyncio.Event()

        async def refuse_once(deltas: Deltas, initial: bool) -> None:
            entered.set()
            await turns(5)
            if not seen:
                seen.append("refused")
                raise RequeueError
            seen.extend(describe(deltas))

        seen: list[str] = []
        popping = asyncio.create_task(fifo.pop(refuse_once))
        await entered.wait()
        waiting = [asyncio.create_task(fifo.pop(refuse_once)) for _ in range(2)]
        await turns(2)
        fifo.close()
        await popping
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert seen == ["refused", "Added a 1"]
        assert sorted(type(result).__name__ for result in results) == ["FIFOClosedError", "list"]

    async def test_waiting_add_still_adds_after_close(self) -> None:
        fifo, gate = await make_filled("a", "b", "c", batch_size=1), Gate(describe)
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        adding = asyncio.create_task(fifo.add(obj("d")))
        await turns(3)
        fifo.close()
        gate.release.set()
        await popping
        await adding
        await until(lambda: describe(fifo.queued) == ["Added b 1", "Added c 1", "Added d 1"])
