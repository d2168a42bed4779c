"""A RetryWatcher in storms: every event exactly once, in order, and only legal ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from aioinformer import ListWatch, RetryWatcher
from aioinformer._core.tasks import finish
from aioinformer.objects.meta import ERROR
from aioinformer.testing import TROUBLES, Simulation, simulate

FINAL = (401, 403, 410)
WEATHER = [trouble for trouble in TROUBLES if trouble not in ("changes twice", "garbage")]


class Seen(NamedTuple):
    """An event."""

    type: str
    key: str
    version: str


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("aioinformer")
    logger.propagate = False
    yield
    logger.propagate = True


async def scenario(world: Simulation) -> None:
    random, server = world.random, world.server
    happened: list[Seen] = []
    seen: list[Seen] = []
    ended: list[int] = []

    def note(resource: Any, event: Any) -> None:
        if resource.plural == "configmaps":
            happened.append(Seen(event.type, event.key, str(event.resource_version)))

    async def watch() -> None:
        watcher = RetryWatcher(
            ListWatch.for_resource(world.client, "v1", "configmaps"),
            version,
            min_watch_timeout=random.choice((3.0, 30.0)),
            random=Random(world.seed),
        )
        async with watcher:
            while True:
                try:
                    async with asyncio.timeout(random.choice((None, 0.01, 1.0, 10.0))):
                        event = await anext(watcher)
                except TimeoutError:
                    continue
                except StopAsyncIteration:
                    return
                if event.type == ERROR:
                    ended.append(event.object["code"])
                    world.note("watcher", f"ends: {event.object['code']}")
                    continue
                assert not ended, "an event after the end"
                seen.append(Seen(event.type, event.object.key, event.object.resource_version))
                world.note("watcher", seen[-1])
                assert seen == happened[: len(seen)]

    def write(number: int) -> None:
        name = random.choice("abc")
        obj = {"metadata": {"name": name}, "data": {"number": str(number)}}
        if server.cluster.find(server.resource("v1", "configmaps"), "default", name) is None:
            server.create("v1", "configmaps", obj)
        elif random.random() < 0.3:
            server.delete("v1", "configmaps", name)
        else:
            server.update("v1", "configmaps", obj)

    for number in range(3):
        write(number)
    version = str(server.resource_version)
    server.cluster.observers.append(note)
    watching = asyncio.create_task(watch(), name="watcher")
    troubles = random.sample(WEATHER, random.randint(1, 6))
    storm = asyncio.create_task(
        world.storm(60, every=random.choice((6, 20)), troubles=troubles), name="storm"
    )
    try:
        for number in range(20):
            await asyncio.sleep(random.expovariate(1 / 3))
            if world.happens("writer", number):
                write(number)
        await storm
        write(100)
        await world.eventually(lambda: seen == happened or watching.done(), what="every event was seen")
        if watching.done():
            watching.result()
            assert len(ended) == 1
            assert ended[0] in FINAL
    finally:
        await finish(watching, storm)


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_every_event_arrives_exactly_once_in_order(first: int) -> None:
    for seed in range(first, first + 100):
        simulate(scenario, seed=seed, history=100 if seed % 2 else 3)
