"""Reflector and controller, and objects that run until their context ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from aioinformer import ApiError, DeltaFIFO, KubeObject, Reflector, SharedIndexInformer, new_informer
from aioinformer.cache import AddNotification, Config, Controller, Processor, ProcessorListener

from ..informer.handlers import Follower
from ..reflector.running import NoJitter, reflector
from ..reflector.scripted import FOREVER, Scripted, added, error_event, modified, page, raw_pod
from ..samples import pod
from ..virtual_time import settle
from .queues import all_of, is_usable, queues, slowly, three
from .registry import Call, case


def make_troubled_server() -> Scripted:
    """A server with a list, a watch, an expiry, a relist and an outage."""
    return Scripted(
        [
            page(raw_pod("a"), raw_pod("b", 2), version=10),
            OSError("down"),
            page(raw_pod("a", 13), version=13),
        ],
        [[added("c", 11), modified("a", 12), error_event(410, "Expired")], [added("d", 14), FOREVER]],
    )


@case("Reflector.run", ends=False)
async def _() -> AsyncIterator[Call]:
    server = make_troubled_server()
    yield reflector(server, resync_period=0.5).run
    server.assert_closed()


@case("Reflector.list_and_watch")
async def _() -> AsyncIterator[Call]:
    server = make_troubled_server()
    subject = reflector(server)
    yield subject.list_and_watch
    server.assert_closed()
    async with subject:
        await asyncio.sleep(1)
    server.assert_closed()


def entered_and_left(name: str, make: Callable[[], tuple[Any, Callable[[], None]]]) -> None:
    """Entering and leaving a context that runs tasks; ``make`` also returns the check after its end."""

    @case(f"{name}.__aenter__")
    async def _() -> AsyncIterator[Call]:
        subject, check = make()
        yield subject.__aenter__
        if subject._task is not None:
            await subject.__aexit__(None, None, None)
        check()

    @case(f"{name}.__aexit__")
    async def _() -> AsyncIterator[Call]:
        subject, check = make()
        await subject.__aenter__()
        await settle(7)
        yield lambda: subject.__aexit__(None, None, None)
        await subject.__aexit__(None, None, None)
        check()


def a_reflector() -> tuple[Any, Callable[[], None]]:
    server = make_troubled_server()
    return reflector(server), server.assert_closed


def a_controller() -> tuple[Any, Callable[[], None]]:
    server = make_troubled_server()
    queue, _ = queues(DeltaFIFO)
    return Controller(Config(queue, server, slowly, KubeObject)), server.assert_closed


def a_processor() -> tuple[Any, Callable[[], None]]:
    processor, follower = Processor(), Follower(seconds=0.01)
    listener: ProcessorListener[Any] = ProcessorListener(follower)
    processor.add_listener(listener)
    for name in "abc":
        processor.distribute(AddNotification(pod(name)), False)

    def check() -> None:
        assert not processor._running
        assert not follower.wrong

    return processor, check


def an_informer() -> tuple[Any, Callable[[], None]]:
    server = make_troubled_server()
    subject: SharedIndexInformer[Any] = SharedIndexInformer(server, KubeObject, 1.0, random=NoJitter())
    follower = Follower(seconds=0.01)
    subject.add_event_handler(follower)

    def check() -> None:
        server.assert_closed()
        assert subject.is_stopped or subject._task is None
        assert not follower.wrong

    return subject, check


entered_and_left("Reflector", a_reflector)
entered_and_left("Controller", a_controller)
entered_and_left("Processor", a_processor)
entered_and_left("SharedIndexInformer", an_informer)


def runs(name: str, make: Callable[[], tuple[Any, Callable[[], None]]]) -> None:
    @case(f"{name}.run", ends=False)
    async def _() -> AsyncIterator[Call]:
        subject, check = make()
        yield subject.run
        check()


runs("Controller", a_controller)
runs("Processor", a_processor)


@case("SharedIndexInformer.run", ends=False)
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()

    async def run_it() -> None:
        started.append(True)
        await subject.run()

    started: list[bool] = []
    yield run_it
    assert subject.is_stopped or not started
    check()


@case("Controller.process_loop", ends=False)
async def _() -> AsyncIterator[Call]:
    queue, _ = queues(DeltaFIFO)
    subject = Controller(Config(queue, Scripted(), slowly, KubeObject))
    await queue.apply(three())
    yield subject.process_loop
    assert is_usable(queue)
    await all_of(queue)


@case("Controller.wait_synced")
async def _() -> AsyncIterator[Call]:
    subject, check = a_controller()
    async with subject:
        yield subject.wait_synced
        await subject.wait_synced()
    check()


def waits_refused(name: str, make: Callable[[Scripted], Reflector[Any] | Controller]) -> None:
    @case(f"{name}.wait_refused")
    async def _() -> AsyncIterator[Call]:
        async with make(Scripted([0.01, *[ApiError(403, "Forbidden")] * 9])) as subject:

            async def until_refused() -> None:
                with pytest.raises(ApiError, match="Forbidden"):
                    await subject.wait_refused()

            yield until_refused
            await until_refused()


waits_refused("Reflector", reflector)
waits_refused("Controller", lambda server: new_informer(server, KubeObject, 0.0, Follower())[1])
