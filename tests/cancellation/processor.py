"""Listeners and the mutation detector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioinformer.cache import AddNotification, CacheMutationDetector, Processor, ProcessorListener

from ..informer.handlers import Follower
from ..samples import pod
from ..steps import run_during
from ..virtual_time import settle
from .registry import Call, case


@asynccontextmanager
async def a_listener(**options: Any) -> AsyncIterator[tuple[ProcessorListener[Any], Follower]]:
    follower = Follower(seconds=0.01)
    listener: ProcessorListener[Any] = ProcessorListener(follower, **options)
    listener.add_all(AddNotification(pod(name), True) for name in "abc")
    yield listener, follower
    assert not follower.wrong


@case("ProcessorListener.run", ends=False)
async def _() -> AsyncIterator[Call]:
    async with a_listener() as (listener, follower):
        yield listener.run
        assert follower.calls == ["add a 1", "add b 1", "add c 1"][: len(follower.calls)]


@case("ProcessorListener.wait_initial_delivered")
async def _() -> AsyncIterator[Call]:
    async with a_listener() as (listener, follower), run_during(listener.run()):
        yield listener.wait_initial_delivered
        await listener.wait_initial_delivered()
        assert len(follower.calls) == 3


@case("ProcessorListener.wait_for_room")
async def _() -> AsyncIterator[Call]:
    async with a_listener(backlog="block", backlog_limit=2) as (listener, _), run_during(listener.run()):
        yield listener.wait_for_room
        await listener.wait_for_room()
        assert not listener.is_full


@case("ProcessorListener.wait_stopped")
async def _() -> AsyncIterator[Call]:
    async with a_listener() as (listener, _):

        async def stop() -> None:
            await settle(5)
            listener.stop()

        async with run_during(stop()):
            yield listener.wait_stopped
            await listener.wait_stopped()
            assert listener.depth == 0


@case("ProcessorListener.wait_ended")
async def _() -> AsyncIterator[Call]:
    async with a_listener() as (listener, follower), run_during(listener.run()):
        await settle(5)
        listener.stop()
        yield listener.wait_ended
        await listener.wait_ended()
        assert len(follower.calls) == 1


@case("CacheMutationDetector.run", ends=False)
async def _() -> AsyncIterator[Call]:
    detector = CacheMutationDetector(0.1, retention=0.2)
    detector.add_object({"metadata": {"name": "a"}})
    yield detector.run
    await detector.compare_objects()


@case("CacheMutationDetector.compare_objects")
async def _() -> AsyncIterator[Call]:
    detector = CacheMutationDetector()
    for number in range(2000):  # for more than one slice
        detector.add_object({"metadata": {"name": "a", "labels": {str(label): number for label in range(5)}}})
    yield detector.compare_objects
    await detector.compare_objects()


@case("Processor.wait_for_room")
async def _() -> AsyncIterator[Call]:
    async with a_listener(backlog="block", backlog_limit=2) as (listener, _), run_during(listener.run()):
        processor = Processor()
        processor.add_listener(listener)
        yield processor.wait_for_room
        await processor.wait_for_room()
        assert processor.has_room()
