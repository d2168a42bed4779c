"""What happens to a program, and how soon it knows again what the server has."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from .subjects import Subject, subject
from .worlds import World

OBJECTS = 20
OUTAGE, LONG_OUTAGE = 5.0, 60.0
"""Seconds."""
PATIENCE = 90.0
"""Seconds after which a program has not recovered, and is started again."""
QUIET = 5.0
"""Seconds without a change before each trouble, in which the program opens its watch."""


@dataclass
class Recovery:
    """How a program got over a trouble.

    Attributes:
        trouble: What happened.
        seconds: How long it took until the program knew the server's state; None if it did not in PATIENCE.
        wrong: Objects that it knew wrong in the end.
        has_ended: Whether the program ended, and was started again.
    """

    trouble: str
    seconds: float | None
    wrong: set[str]
    has_ended: bool

    def __str__(self) -> str:
        result = f"never, {len(self.wrong)} wrong" if self.seconds is None else f"{self.seconds:.1f} s"
        return f"ended, {result}" if self.has_ended else result


@dataclass
class Outcome:
    """What was measured of a program.

    Attributes:
        sync: Seconds from its start until it knew all objects, with the imports of the program; None if it never did.
        recoveries: How it got over each trouble.
        missed: Changes that it never printed, neither as an event nor as a state.
        requests: Requests in all.
        cpu: CPU seconds in all.
        memory: MiB after the last trouble.
        log: Its last lines.
    """

    sync: float | None = None
    recoveries: list[Recovery] = field(default_factory=list)
    missed: list[tuple[str, str | None]] = field(default_factory=list)
    requests: int = 0
    cpu: float = 0.0
    memory: float = 0.0
    log: list[str] = field(default_factory=list)


async def _cut(world: World) -> None:
    await world.proxy.cut()


async def _lose(world: World) -> None:
    world.proxy.lose()
    await world.delete("object-1")


async def _delete_during_outage(world: World) -> None:
    async with world.outage():
        await world.delete("object-2")
        await world.change("object-3")
        await asyncio.sleep(OUTAGE)


async def _away(world: World) -> None:
    async with world.outage():
        await world.delete("object-6")
        await asyncio.sleep(LONG_OUTAGE)


async def _expire(world: World) -> None:
    async with world.outage():
        await world.delete("object-4")
        await world.expire()


async def _fail(world: World) -> None:
    async with world.failing():
        await world.proxy.cut()
        await world.delete("object-5")
        await asyncio.sleep(OUTAGE)


TROUBLES: dict[str, Callable[[World], Awaitable[None]]] = {
    "watch cut": _cut,
    "deletion during an outage": _delete_during_outage,
    "server away for 60 s": _away,
    "version expired (410)": _expire,
    "500s": _fail,
    "half-open connection": _lose,
}


async def measure(command: Sequence[str], environment: dict[str, str], world: World) -> Outcome:
    """Run a program under every trouble, one after another."""
    outcome = Outcome()
    for number in range(OBJECTS):
        await world.create(f"object-{number}")
    async with (
        subject(command, variables_of(world) | environment) as running,
        world.objects.telling(running.tell),
    ):
        started = time.monotonic()
        if await running.knows(await world.objects.versions(), PATIENCE):
            outcome.sync = time.monotonic() - started
            for name, trouble in {**TROUBLES, **world.objects.troubles}.items():
                await asyncio.sleep(QUIET)
                recovery = await _recover(name, trouble, running, world)
                outcome.recoveries.append(recovery)
                outcome.memory = running.memory or outcome.memory
                print(f"{command[-1]} on {world.name}: {name}: {recovery}", file=sys.stderr, flush=True)  # noqa: T201
                if recovery.seconds is None:
                    await world.objects.give_up(recovery.wrong)
                    await running.restart()
                    await world.create(f"again-{running.starts}")  # its new process has to tell it
                    await running.knows(await world.objects.versions(), PATIENCE)
        outcome.missed = [change for change in world.changes if change not in running.reports]
        outcome.requests = world.requests().total()
        outcome.cpu = running.cpu()
        outcome.log += running.log
    return outcome


def variables_of(world: World) -> dict[str, str]:
    """Return the environment variables by which a program finds its server and namespace."""
    return {"KUBECONFIG": str(world.kubeconfig), "NAMESPACE": world.namespace, **world.objects.variables}


async def _recover(
    name: str, trouble: Callable[[World], Awaitable[None]], running: Subject, world: World
) -> Recovery:
    starts = running.starts
    await trouble(world)
    began = time.monotonic()
    await world.create("after-" + "-".join(re.findall(r"[a-z0-9]+", name)))
    wanted = await world.objects.versions()
    knows = await running.knows(wanted, PATIENCE)
    seconds = time.monotonic() - began if knows else None
    wrong = {name for name, _ in set(running.versions.items()) ^ set(wanted.items())}
    return Recovery(name, seconds, wrong, running.starts > starts)
