"""A listener's run task: every handler call happens in it, whatever a handler does to the task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from aioinformer import ResourceEventHandlerFuncs
from aioinformer.cache import AddNotification, Processor, ProcessorListener
from aioinformer.tracing import Tracer

from ..samples import pod
from ..steps import run_during, turns, until


def make_listener(function: Callable[[str], object], **options: Any) -> ProcessorListener[Any]:
    handler = ResourceEventHandlerFuncs[Any](on_add=lambda obj, initial: function(obj.name))
    return ProcessorListener(handler, **options)


def addition(name: str, *, initial: bool = False) -> AddNotification:
    return AddNotification(pod(name), initial)


@asynccontextmanager
async def run_processor(
    *listeners: ProcessorListener[Any], make: Callable[[], Processor] = Processor
) -> AsyncIterator[Processor]:
    """Run a processor with these listeners, each of which has had one call."""
    processor = make()
    for listener in listeners:
        processor.add_listener(listener)
    async with run_during(processor.run()):
        processor.distribute_all([addition("first")])
        await until(lambda: all(listener.depth == 0 for listener in listeners))
        await turns(1)
        yield processor


async def test_all_calls_run_in_one_task_never_in_the_callers() -> None:
    seen: list[asyncio.Task[Any] | None] = []
    listener = make_listener(lambda name: seen.append(asyncio.current_task()))
    async with run_processor(listener) as processor:
        processor.distribute_all([addition("a")])
        assert len(seen) == 1
        asyncio.get_running_loop().call_soon(processor.distribute_all, [addition("b")])
        await until(lambda: len(seen) == 3)
    assert len(set(seen)) == 1
    assert asyncio.current_task() not in seen


async def test_handler_runs_in_the_context_of_its_task_not_of_the_caller() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="nothing")
    seen: list[str] = []

    def on_add(name: str) -> None:
        seen.append(variable.get())
        variable.set(name)

    async with run_processor(make_listener(on_add)) as processor:
        variable.set("outside")
        processor.distribute_all([addition("a")])
        processor.distribute(addition("b"), False)
        await until(lambda: len(seen) == 3)
        assert variable.get() == "outside"
    assert seen == ["nothing", "first", "a"]


async def test_handler_can_remove_itself_and_others_and_add_one() -> None:
    seen: list[str] = []
    late: list[str] = []

    def on_add(name: str) -> None:
        seen.append(name)
        if name == "a":
            processor.remove_listener(first)
            processor.remove_listener(second)
            processor.add_listener(make_listener(late.append))

    first, second = make_listener(on_add), make_listener(seen.append)
    async with run_processor(first, second) as processor:
        processor.distribute_all([addition("a")])
        await until(lambda: len(processor.listeners) == 1)
        processor.distribute_all([addition("b")])
        await until(lambda: late)
        await second.wait_ended()
    assert (seen, late) == (["first", "first", "a"], ["b"])
    assert first.state.delivered == 2


@pytest.mark.parametrize(
    "make", [Processor, lambda: Tracer(print).processor("pods")], ids=["plain", "traced"]
)
async def test_notifications_distributed_by_handler_follow_its_own_c56(
    make: Callable[[], Processor],
) -> None:
    seen: dict[str, list[str]] = {name: [] for name in ("first", "second", "added")}

    def on_add(name: str) -> None:
        seen["first"].append(name)
        if name == "a":
            processor.distribute_all([addition("b")])
            processor.distribute_all([addition("c"), addition("d")])
            processor.add_listener(make_listener(seen["added"].append))

    first, second = make_listener(on_add), make_listener(seen["second"].append)
    async with run_processor(first, second, make=make) as processor:
        processor.distribute_all([addition("a")])
        await until(lambda: [first.depth, second.depth] == [0, 0])
        await turns(2)
    assert seen == {"first": ["first", *"abcd"], "second": ["first", *"abcd"], "added": []}


async def test_handler_that_cancels_its_own_task_fails_and_gets_the_next_calls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []

    def on_add(name: str) -> None:
        seen.append(name)
        if name == "a":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    listener = make_listener(on_add, name="mine")
    async with run_processor(listener) as processor:
        for name in "abc":
            processor.distribute_all([addition(name)])
            await turns(6)
        await until(lambda: len(seen) == 4)
        assert asyncio.current_task() is not None
    assert seen == ["first", *"abc"]
    assert caplog.messages == ["mine failed on add of ns/a at 1"]
