"""fifo/real_fifo.py: adding while something is being processed. Corner C29."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import RealFIFO
from aioinformer.cache import Delta
from aioinformer.errors import QueueHeldError, RequeueError

from ..steps import cancel_after, turns, until
from .queues import Gate
from .samples import ADDED, Deltas, by_default, known, obj, real, told


async def filled(*names: str, **options: Any) -> RealFIFO:
    fifo = by_default(**options)
    await fifo.apply([Delta(ADDED, obj(name)) for name in names])
    return fifo


@pytest.mark.parametrize(
    "pop", [lambda fifo, gate: fifo.pop(gate), lambda fifo, gate: fifo.pop_batch(gate, gate)]
)
async def test_others_may_add_meanwhile_c29(pop: Callable[[RealFIFO, Gate], Awaitable[object]]) -> None:
    """C29 BenchmarkAddWithSlowHandlers."""
    fifo, gate = await filled("a"), Gate(told)
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
    gate.let_go.set()
    await popping
    assert gate.seen == ["Added a 1"]


async def test_without_it_the_queue_is_held_c29() -> None:
    for fifo in (real(), real(known())):
        await fifo.add(obj("a"))
        gate = Gate(told)
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        adding = asyncio.create_task(fifo.add(obj("b")))
        await turns(5)
        assert not adding.done()
        gate.let_go.set()
        await popping
        await adding


async def test_twice_a_batch_holds_up_who_adds_c29() -> None:
    fifo, gate = await filled("a", batch_size=2), Gate(told)
    popping = asyncio.create_task(fifo.pop(gate))
    await gate.entered.wait()
    adding = [asyncio.create_task(fifo.add(obj(f"b{number}"))) for number in range(7)]
    await turns(5)
    assert len(fifo) == 4
    assert [task.done() for task in adding] == [True] * 4 + [False] * 3
    gate.let_go.set()
    await popping
    await asyncio.gather(*adding)
    assert len(fifo) == fifo.high_water == 7
    # Full from the beginning: nobody may add until it has been worked off.
    gate = Gate(told)
    popping = asyncio.create_task(fifo.pop(gate))
    await gate.entered.wait()
    late = asyncio.create_task(fifo.add(obj("late")))
    await turns(5)
    assert not late.done()
    gate.let_go.set()
    await popping
    await late


async def test_nobody_is_held_up_while_nothing_is_processed_c29() -> None:
    fifo = await filled(batch_size=1)
    async with asyncio.timeout(5):
        for number in range(50):
            await fifo.add(obj(f"b{number}"))
    assert len(fifo) == 50


@pytest.mark.usefixtures("long_turns")
async def test_those_held_up_go_on_as_room_comes_c29() -> None:
    """Within one pop_batch, too."""
    fifo = await filled("a", "b", "c", "d", batch_size=1)
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


async def test_one_is_processed_at_a_time_however_many_pop() -> None:
    """Better than upstream, which asks for a single consumer."""
    fifo = await filled(*"abcdefgh")
    running = 0
    seen: list[str] = []

    async def process(deltas: Deltas, initial: bool) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await turns(3)
        running -= 1
        seen.extend(told(deltas))

    await asyncio.gather(*(fifo.pop(process) for _ in range(8)))
    assert seen == [f"Added {name} 1" for name in "abcdefgh"]


class TestFromInsideProcess:
    async def test_adding_is_fine_while_there_is_room(self) -> None:
        fifo = await filled("a", batch_size=1)
        refused: list[int] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            for number in range(4):
                try:
                    await fifo.add(obj(f"b{number}"))
                except QueueHeldError:
                    refused.append(number)

        await fifo.pop(process)
        assert refused == [2, 3]
        assert told(fifo.queued) == ["Added b0 1", "Added b1 1"]

    async def test_adding_is_refused_where_others_fill_it_up_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rather than wait for its own end."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await filled("a", "b", batch_size=1)

        async def process(deltas: Deltas, initial: bool) -> None:
            others = asyncio.create_task(fifo.replace([obj("c"), obj("d")], "1"))
            await turns(1)
            assert len(fifo) == 1
            with pytest.raises(QueueHeldError):
                await fifo.add(obj("e"))
            await others

        await fifo.pop(process)
        assert told(fifo.queued) == ["Added b 1", "ReplacedAll 1 [c 1, d 1]"]

    @pytest.mark.parametrize("verb", ["pop", "pop_batch"])
    async def test_popping_is_refused(self, verb: str) -> None:
        fifo = await filled("a", "b")

        async def process(deltas: Deltas, initial: bool) -> None:
            with pytest.raises(QueueHeldError):
                await getattr(fifo, verb)(process)

        await fifo.pop(process)
        assert told(fifo.queued) == ["Added b 1"]


class TestCancelling:
    @pytest.mark.parametrize("ends", ["well", "requeue", "error"])
    @pytest.mark.parametrize("holder_turns", [0, 2, 5])
    @pytest.mark.parametrize("count", range(14))
    async def test_at_every_await_the_delta_is_worked_off_or_back(
        self, count: int, holder_turns: int, ends: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also while a list that somebody adds holds the queue, which the pop then has to wait for."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await filled("a", "b")
        done: list[str] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            await turns(2)
            if ends == "requeue":
                raise RequeueError
            done.extend(told(deltas))
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
        left = told(fifo.queued)
        assert left.pop().startswith("ReplacedAll 9")
        assert done + left == ["Added a 1", "Added b 1"]
        await fifo.add(obj("free"))
        assert await fifo.pop_batch(lambda deltas, initial: None) >= 1

    @pytest.mark.parametrize("count", range(8))
    async def test_one_who_is_held_up_has_done_nothing(self, count: int) -> None:
        fifo, gate = await filled("a", "b", "c", batch_size=1), Gate(told)
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        await cancel_after(count, fifo.add(obj("d")))
        assert told(fifo.queued) == ["Added b 1", "Added c 1"]
        gate.let_go.set()
        await popping
        await fifo.add(obj("free"))

    async def test_a_cancellation_is_not_lost_where_process_asks_for_more(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While it waits to hold the queue again."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        fifo = await filled("a")
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
        assert told(fifo.queued)[0] == "Added a 1"


class TestClosing:
    async def test_who_waits_for_more_waits_for_what_is_being_worked_off(self) -> None:
        """It may come back."""
        fifo, entered = await filled("a"), asyncio.Event()

        async def refuse_once(deltas: Deltas, initial: bool) -> None:
            entered.set()
            await turns(5)
            if not seen:
                seen.append("refused")
                raise RequeueError
            seen.extend(told(deltas))

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

    async def test_who_is_held_up_still_adds(self) -> None:
        fifo, gate = await filled("a", "b", "c", batch_size=1), Gate(told)
        popping = asyncio.create_task(fifo.pop(gate))
        await gate.entered.wait()
        adding = asyncio.create_task(fifo.add(obj("d")))
        await turns(3)
        fifo.close()
        gate.let_go.set()
        await popping
        await adding
        await until(lambda: told(fifo.queued) == ["Added b 1", "Added c 1", "Added d 1"])
