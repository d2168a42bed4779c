"""Work queues: no item is lost or stays in processing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from aioinformer import WorkQueue
from aioinformer.errors import QueueShutDownError

from ..steps import run_during, turns
from .registry import Call, case

Queue = WorkQueue[str]


async def work_off(queue: Queue) -> list[str]:
    """Take all remaining items. This ends only if no item stays in processing."""
    queue.shut_down()
    left: list[str] = []
    async for item in queue:
        left.append(item)
        queue.done(item)
    assert queue.state.processing == queue.state.waiting_workers == 0
    return left


async def add_later(queue: Queue) -> None:
    await turns(2)
    queue.add("a")
    queue.add("b")


def add_taking_case(name: str, take: Callable[[Queue, list[str]], Coroutine[Any, Any, None]]) -> None:
    @case(f"WorkQueue.{name}")
    async def _() -> AsyncIterator[Call]:
        queue, done = Queue(), list[str]()
        async with run_during(add_later(queue)) as adding:
            yield lambda: take(queue, done)
            await adding
        for item in queue.items_processing:  # a plain get that had returned before
            done.append(item)
            queue.done(item)
        assert sorted(done + await work_off(queue)) == ["a", "b"], "none is lost, none done twice"


async def get(queue: Queue, done: list[str]) -> None:
    await queue.get()


async def anext_(queue: Queue, done: list[str]) -> None:
    await anext(queue)


add_taking_case("get", get)
add_taking_case("__anext__", anext_)


@case("WorkQueue.processing")
async def _() -> AsyncIterator[Call]:
    queue, begun = Queue(), list[str]()

    async def work() -> None:
        async with queue.processing() as item:
            begun.append(item)
            await turns(2)

    async with run_during(add_later(queue)) as adding:
        yield work
        await adding
    assert sorted(begun + await work_off(queue)) == ["a", "b"]


@case("WorkQueue.shut_down_with_drain")
async def _() -> AsyncIterator[Call]:
    queue, done = Queue(), list[str]()

    async def work() -> None:
        async for item in queue:
            await turns(2)
            done.append(item)
            queue.done(item)

    queue.add("a")
    queue.add("b")
    async with run_during(work()) as working:
        await turns(1)
        yield queue.shut_down_with_drain
        queue.shut_down()
        await working
    assert done == ["a", "b"]
    try:
        await queue.get()
    except QueueShutDownError:
        return
    raise AssertionError("it is shut down")
