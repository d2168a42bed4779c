"""What one process and several replicas carry: ``python -m benchmarks.capacity`` writes the table of docs/capacity.md.

Measured figures are those that ``make bench-replicas`` has published; take-overs are simulated; the rest is computed.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import NamedTuple

import msgspec
from rich.progress import track

from aioinformer import Client
from aioinformer.sharding import Sharding
from aioinformer.testing import Simulation, simulate
from tests.sharding.world import ReadingLink

from .building import FOLDER
from .harness.results import Summary
from .replicas.measuring import SCENARIO, client_of

PAGE = FOLDER.parent / "docs" / "capacity.md"
RESULTS = FOLDER.parent / "docs" / "benchmarks-replicas" / "results.json"
BEGIN, END = "<!-- the table -->\n", "<!-- end of the table -->\n"

OBJECTS = (10_000, 100_000, 1_000_000, 10_000_000)
MEASURED = 100_000
"""The objects of `make bench-replicas`."""
REPLICAS = (1, 2, 4, 8, 32)
SLOTS = 64
HISTORIES = 10
BUSY = 0.5
"""The share of a core that changes may take of a replica."""
HEADINGS = (
    "objects", "replicas", "memory of each", "read by each to sync", "CPU of each to sync", "changes/s in all",
    "read by each then", "take-over",
)  # fmt: skip


class Replica:
    """A replica in a simulation, with a link of its own to the server."""

    def __init__(self, world: Simulation) -> None:
        self.link = ReadingLink(world.new_client().transport)
        random = Random(world.random.getrandbits(32))
        self.sharding = Sharding(Client(self.link), "demo", "default", slots=SLOTS, random=random)
        self.task = asyncio.create_task(self.sharding.run())

    def cut(self) -> None:
        """Cut its network: for the others that is the same as a kill."""
        self.link.there = self.link.back = False

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


def simulate_takeover(replicas: int, seed: int) -> float:
    """Return the seconds from the kill of one of some replicas until every slot has an owner again."""
    seconds = 0.0

    async def scenario(world: Simulation) -> None:
        nonlocal seconds
        alive = [Replica(world) for _ in range(replicas)]

        def is_shared() -> bool:
            return sum(len(replica.sharding.share.slots) for replica in alive) == SLOTS

        await world.eventually(is_shared, within=60.0)
        await asyncio.sleep(world.random.uniform(60.0, 70.0))
        killed = alive.pop()
        killed.cut()
        began = world.now
        if not alive:  # a Deployment starts another one
            alive.append(Replica(world))
        await world.eventually(is_shared, within=60.0)
        seconds = world.now - began
        for replica in [killed, *alive]:
            replica.cut()
            await replica.end()

    simulate(scenario, seed=seed, shrink=False)
    return seconds


class Costs(NamedTuple):
    """What was measured with one replica, for each object or each change.

    Attributes:
        idle: MiB of a process that has read nothing.
        memory: MiB of an object.
        read: MiB that are read of an object.
        sync: CPU seconds of an object, from the list to its reconcile.
        change: CPU seconds of a change, at 1,000 changes a second.
    """

    idle: float
    memory: float
    read: float
    sync: float
    change: float


def costs_of(summary: Summary) -> Costs:
    """Return the costs of one object and one change.

    Raises:
        SystemExit: They were not measured.
    """

    def find(figure: str) -> float:
        value = summary.median(SCENARIO, client_of(1), figure)
        if value is None:
            raise SystemExit(f"{RESULTS} has no {figure} of one replica: run make bench-replicas")
        return value

    return Costs(
        idle=find("memory.idle_mb"),
        memory=find("memory.share_mb") / MEASURED,
        read=find("sync.sent_mb") / MEASURED,
        sync=find("sync.cpu_s") / MEASURED,
        change=find("changes.cpu_us") / 1e6,
    )


def row_of(objects: int, replicas: int, summary: Summary, costs: Costs, takeover: float) -> list[str]:
    """Return a row of the table: bold is measured, italic simulated, the rest computed.

    Args:
        objects: Of all replicas.
        replicas: How many they are.
        summary: What was measured.
        costs: What one object and one change cost.
        takeover: Seconds until the slots of a killed replica have owners.
    """

    def cell(figure: str, unit: str, computed: str) -> str:
        value = summary.median(SCENARIO, client_of(replicas), figure) if objects == MEASURED else None
        return computed if value is None else f"**{show(value, unit)}**"

    share = objects / replicas
    rate = BUSY / costs.change
    reconciled = takeover + share / max(replicas - 1, 1) * costs.sync
    return [
        f"{objects:,}",
        str(replicas),
        cell("memory.total_mb", "MiB", show(costs.idle + share * costs.memory, "MiB")),
        cell("sync.sent_mb", "MiB", show(share * costs.read, "MiB")),
        cell("sync.cpu_s", "s", show(share * costs.sync, "s")),
        f"{rate * replicas:,.0f}",
        f"{show(rate * costs.read, 'MiB')}/s",
        cell("takeover.s", "s", f"*{show(reconciled, 's')}*"),
    ]


def show(value: float, unit: str) -> str:
    """Return a figure with its unit, in three digits at most."""
    if unit == "MiB" and value >= 1024:
        value, unit = value / 1024, "GiB"
    if unit == "s" and value >= 120:
        value, unit = value / 60, "min"
    return f"{value:,.{0 if value >= 100 else 1 if value >= 1 else 2}f} {unit}"


def main() -> None:
    """Simulate the take-overs, and write the table."""
    summary = msgspec.json.decode(RESULTS.read_bytes(), type=Summary)
    costs = costs_of(summary)
    takeovers = {}
    for replicas in REPLICAS:
        seeds = track(range(HISTORIES), f"take-over of {replicas}")
        takeovers[replicas] = max(simulate_takeover(replicas, seed) for seed in seeds)
    rows = [
        row_of(objects, replicas, summary, costs, takeovers[replicas])
        for objects in OBJECTS
        for replicas in REPLICAS
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [list(HEADINGS), ["---:"] * len(HEADINGS), *rows])
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
