"""Queues: their methods wait while another task holds the queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from aioinformer import DeltaFIFO, KubeObject, RealFIFO, Store
from aioinformer._core import coop
from aioinformer.deltas import Delta, DeltaType
from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func

from ..samples import pod
from ..steps import run_during, turns
from .registry import Call, case


def queues(kind: type[DeltaFIFO] | type[RealFIFO]) -> tuple[Any, Store[KubeObject]]:
    store = Store[KubeObject](deletion_handling_meta_namespace_key_func)
    for name in "xy":
        store.add(pod(name))
    return kind(known_objects=store), store


async def slowly(deltas: list[Delta], is_in_initial_list: bool) -> None:
    await turns(3)


async def all_of(queue: Any) -> list[Delta]:
    """Pop everything. This ends only if no task still holds the queue."""
    deltas: list[Delta] = []
    while len(queue):
        deltas += await queue.pop(lambda popped, initial: None)
    return deltas


def is_usable(queue: Any) -> bool:
    return not queue._changed.locked() and queue._processing is None


def queue_verb(
    kind: type[DeltaFIFO] | type[RealFIFO],
    verb: str,
    call: Callable[[Any], Coroutine[Any, Any, Any]],
    outcomes: list[int],
) -> None:
    """A method that waits for the queue's holder, and adds this number of deltas or none."""

    @case(f"{kind.__name__}.{verb}")
    async def _() -> AsyncIterator[Call]:
        queue, _ = queues(kind)
        await queue.add(pod("held"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coop, "SLICE", -1.0)  # a pause at each step
            async with run_during(queue.pop(slowly)) as holder:
                await turns(2)
                yield lambda: call(queue)
                await holder
        assert is_usable(queue)
        assert len(await all_of(queue)) in (0, *outcomes)
        await queue.add(pod("later"))
        assert len(await all_of(queue)) == 1


def three() -> list[Delta]:
    return [Delta(DeltaType.ADDED, pod(name)) for name in "abc"]


for kind in (DeltaFIFO, RealFIFO):
    queue_verb(kind, "add", lambda queue: queue.add(pod("a")), [1])
    queue_verb(kind, "update", lambda queue: queue.update(pod("a")), [1])
    queue_verb(kind, "delete", lambda queue: queue.delete(pod("x")), [1])
    queue_verb(kind, "apply", lambda queue: queue.apply(three()), [3])
    queue_verb(kind, "replace", lambda queue: queue.replace([pod("a"), pod("x")], "9"), [3])  # y is gone
    queue_verb(kind, "resync", lambda queue: queue.resync(), [2])
    queue_verb(kind, "add_if_not_present", lambda queue: queue.add_if_not_present(three()[:1]), [1])
queue_verb(RealFIFO, "bookmark", lambda queue: queue.bookmark("9"), [0])


def queue_pop(kind: type[DeltaFIFO] | type[RealFIFO], verb: str) -> None:
    """A pop that waits for an item, with a slow process function."""

    @case(f"{kind.__name__}.{verb}")
    async def _() -> AsyncIterator[Call]:
        queue, _ = queues(kind)
        done: list[str] = []

        async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
            await turns(3)
            done.append(deltas[0].object.name)

        async def later() -> None:
            await turns(2)
            await queue.apply(three())

        async with run_during(later()) as adding:
            yield lambda: getattr(queue, verb)(process)
            await adding
        assert is_usable(queue)
        left = [delta.object.name for delta in await all_of(queue)]
        assert sorted(done + left) == ["a", "b", "c"], "none is lost, none done twice"

    @case(f"{kind.__name__}.wait_synced")
    async def _() -> AsyncIterator[Call]:
        queue, _ = queues(kind)

        async def fill() -> None:
            await queue.replace([pod("a"), pod("b")], "9")
            while not queue.has_synced():
                await queue.pop(slowly)

        async with run_during(fill()) as filling:
            yield queue.wait_synced
            await filling
        await queue.wait_synced()


for kind in (DeltaFIFO, RealFIFO):
    for verb in ("pop", "pop_batch"):
        queue_pop(kind, verb)
