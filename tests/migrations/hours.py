"""An hour of a program that follows 500 pods, in six minutes: time-outs and pauses are divided by one factor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from .subjects import Subject, subject
from .troubles import PATIENCE, variables_of
from .worlds import World

FACTOR = 10
"""How much shorter the hour is. The program reads it from ``$FACTOR``."""

PODS = 500
AT_ONCE = 20
"""How many pods are created at the same time."""

HOUR = 3600.0
SESSION = 10.0
"""Seconds of the hour between two users who leave: a pod is deleted, another one created and changed."""
CHANGES_OF_A_START = 3


@dataclass
class Hour:
    """What a program used in an hour.

    Attributes:
        name: What happened in it.
        changes: How many changes the server had.
        lists, watches, other: Requests.
        received: MiB that it received.
        cpu: CPU seconds.
        memory: MiB at the end.
        recovery: Seconds after the end until it knew the server's state; None if it never did.
    """

    name: str
    changes: int = 0
    lists: int = 0
    watches: int = 0
    other: int = 0
    received: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    recovery: float | None = field(default=None)


async def measure_hours(command: Sequence[str], environment: dict[str, str], world: World) -> list[Hour]:
    """Measure an hour without a change and one with changes."""
    for first in range(0, PODS, AT_ONCE):
        await asyncio.gather(*(world.create(f"user-{first + number}") for number in range(AT_ONCE)))
    environment = variables_of(world) | environment | {"FACTOR": str(FACTOR)}
    async with subject(command, environment) as running:
        if not await running.knows(await world.objects.versions(), PATIENCE):
            raise AssertionError(f"{command[-1]} does not know the pods: {list(running.log)}")
        async with _measured_hour("without a change", running, world) as quiet:
            await asyncio.sleep(HOUR / FACTOR)
        async with _measured_hour("with changes", running, world) as busy:
            await _change(world)
    return [quiet, busy]


@asynccontextmanager
async def _measured_hour(name: str, running: Subject, world: World) -> AsyncIterator[Hour]:
    hour = Hour(name)
    verbs, cpu, received, changes = (
        world.requests(),
        running.cpu(),
        world.proxy.received,
        len(world.changes),
    )
    yield hour
    verbs = world.requests() - verbs
    hour.lists, hour.watches = verbs["list"], verbs["watch"]
    hour.other = verbs.total() - hour.lists - hour.watches
    hour.cpu, hour.memory = running.cpu() - cpu, running.memory
    hour.received = (world.proxy.received - received) / 2**20
    hour.changes = len(world.changes) - changes
    ended = time.monotonic()
    if await running.knows(await world.objects.versions(), PATIENCE):
        hour.recovery = time.monotonic() - ended


async def _change(world: World) -> None:
    """Let users come and go for an hour."""
    began = time.monotonic()
    for number in range(int(HOUR / SESSION)):
        await world.delete(f"user-{number}")
        await world.create(f"next-{number}")
        for _ in range(CHANGES_OF_A_START):
            await world.change(f"next-{number}")
        next_start = began + (number + 1) * SESSION / FACTOR
        await asyncio.sleep(max(0.0, next_start - time.monotonic()))
