"""Replicas as processes on a real kube-apiserver, which join, stop and are killed; and what their notes must show.

python -m tests.sharding.processes --gate on --events 50 --objects 2000 --replicas 8 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from statistics import median
from time import monotonic
from typing import Any, NamedTuple

from aioinformer import Client, Resource
from tests.kubernetes.controlplane import ControlPlane

from .notes import Note, Notebook, Takeover, overlaps_of, takeovers_of
from .replica import LEASE_DURATION, RETRY_PERIOD

DEADLINE = 120.0

LOST = "lost the leadership and stands by"
"""What the log of a manager says of it."""

Say = Callable[[str], object]


class Result(NamedTuple):
    """What the replicas did.

    Attributes:
        reconciles: How many reconciles there were.
        overlaps: Pairs of reconciles of one object by two replicas at once.
        takeovers: How long the objects of each killed replica waited.
        joins: How many replicas were started.
        stops: How many were stopped.
        kills: How many were killed.
        lost: How often a replica lost its slots, as on a machine that is too busy to renew its Lease.
    """

    reconciles: int
    overlaps: list[tuple[Note, Note]]
    takeovers: list[Takeover]
    joins: int
    stops: int
    kills: int
    lost: int


class Replicas:
    """Starts, stops and kills replicas.

    Attributes:
        running: The replicas that should run, by number.
        killed_at: When those that were killed were, by number.
        stopped_at: When those that were stopped were, by number.
        started: How many were started.
    """

    def __init__(self, kubeconfig: Path, namespace: str, folder: Path) -> None:
        self._kubeconfig, self._namespace, self._folder = kubeconfig, namespace, folder
        self._notebook = Notebook(folder)
        self.running: dict[int, asyncio.subprocess.Process] = {}
        self.killed_at: dict[int, float] = {}
        self.stopped_at: dict[int, float] = {}
        self.started = 0

    async def start(self) -> int:
        """Start one more; return its number."""
        number, self.started = self.started, self.started + 1
        with open(self._folder / f"{number}.err", "wb") as errors:  # noqa: ASYNC230 - a file of a test
            self.running[number] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.sharding.replica",
                str(self._kubeconfig), self._namespace, str(self._folder / f"{number}.log"),
                stderr=errors, env=os.environ,
            )  # fmt: skip
        return number

    async def kill(self, number: int) -> None:
        """Kill one."""
        process = self._take(number)
        process.kill()
        self.killed_at[number] = monotonic()
        await process.wait()

    async def stop(self, number: int) -> None:
        """Stop one, and wait for its end."""
        process = self._take(number)
        process.send_signal(signal.SIGTERM)
        self.stopped_at[number] = monotonic()
        code = await process.wait()
        # A process that has not come to its signal handlers yet ends by the signal.
        is_early = code == -signal.SIGTERM and not self._notebook.has_begun(number)
        assert code == 0 or is_early, (
            f"replica {number} was stopped and ended with {code}: {self._log(number)}"
        )

    def require_all_run(self) -> None:
        """Check that no replica has ended by itself."""
        for number, process in self.running.items():
            assert process.returncode is None, (
                f"replica {number} has ended with {process.returncode}: {self._log(number)}"
            )

    @property
    def lost(self) -> int:
        """How often a replica lost its slots and came back."""
        return sum(file.read_text().count(LOST) for file in self._folder.glob("*.err"))

    def notes(self) -> list[Note]:
        """Return what the replicas wrote, the earliest first."""
        return self._notebook.read(self.killed_at)

    def _take(self, number: int) -> asyncio.subprocess.Process:
        self.require_all_run()
        return self.running.pop(number)

    def _log(self, number: int) -> str:
        return (self._folder / f"{number}.err").read_text()[-5000:]


async def rehearse(
    control_plane: ControlPlane,
    folder: Path,
    *,
    objects: int,
    replicas: int,
    events: int,
    seed: int,
    say: Say = lambda text: None,
) -> Result:
    """Let replicas join and end, then check that each object was reconciled in its last state."""
    random = Random(seed)
    namespace = control_plane.create_namespace()
    async with AsyncExitStack() as cleanup:
        client = await cleanup.enter_async_context(Client.from_kubeconfig(path=control_plane.kubeconfig))
        configmaps = Resource(client, "v1", "configmaps", dict)
        await _write_all(configmaps, namespace, objects, "0")
        cast = Replicas(control_plane.kubeconfig, namespace, folder)
        cleanup.push_async_callback(_stop_all, cast)
        for _ in range(replicas):
            await cast.start()
        await _wait_reconciled(cast, objects, "0")
        say(f"{replicas} replicas have reconciled {objects} objects")
        for event in range(events):
            numbers = sorted(cast.running)
            if len(numbers) < replicas and (len(numbers) < 2 or random.random() < 0.5):
                what = f"{await cast.start()} joins"
            elif random.random() < 0.7:
                await cast.kill(number := random.choice(numbers))
                what = f"{number} is killed"
            else:
                await cast.stop(number := random.choice(numbers))
                what = f"{number} was stopped"
            say(f"event {event + 1} of {events}: replica {what}; {len(cast.running)} run")
            await asyncio.sleep(random.uniform(0.0, 3.0))
            if event % 5 == 4:
                await _write_all(configmaps, namespace, objects, str(event))
                began = monotonic()
                await _wait_reconciled(cast, objects, str(event))
                say(f"all objects were changed, and reconciled {monotonic() - began:.1f} s later")
        await _write_all(configmaps, namespace, objects, "last")
        await _wait_reconciled(cast, objects, "last")
        notes = cast.notes()
        return Result(
            len(notes), overlaps_of(notes), takeovers_of(notes, cast.killed_at, cast.stopped_at),
            cast.started, len(cast.stopped_at), len(cast.killed_at), cast.lost,
        )  # fmt: skip


async def _stop_all(cast: Replicas) -> None:
    for number, process in list(cast.running.items()):
        if process.returncode is None:
            await cast.stop(number)


async def _write_all(configmaps: Resource[Any], namespace: str, objects: int, data: str) -> None:
    async def write(numbers: range) -> None:
        for number in numbers:
            metadata = {"name": f"c{number}", "namespace": namespace, "labels": {"round": "yes"}}
            await configmaps.apply({"metadata": metadata, "data": {"round": data}})

    async with asyncio.TaskGroup() as group:
        for first in range(8):
            group.create_task(write(range(first, objects, 8)))


async def _wait_reconciled(cast: Replicas, objects: int, data: str) -> None:
    deadline = monotonic() + DEADLINE
    while True:
        cast.require_all_run()
        done = {note.key for note in cast.notes() if note.data == data}
        if len(done) == objects:
            return
        assert monotonic() < deadline, f"{objects - len(done)} objects were not reconciled as {data!r}"
        await asyncio.sleep(0.5)


def _line(gate: str, result: Result) -> str:
    waits = [takeover.seconds for takeover in result.takeovers]
    survived = max((takeover.seconds for takeover in result.takeovers if takeover.has_survivor), default=0.0)
    return (
        f"{gate:>5} {result.joins:6} {result.stops:6} {result.kills:6} {result.lost:12} {result.reconciles:11,} "
        f"{len(result.overlaps):9} {median(waits):10.1f} {max(waits):9.1f} {survived:22.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--gate", choices=("on", "off"), help="the server selects shards, or not; default: both"
    )
    given = vars(parser.parse_args())
    gate = given.pop("gate")
    results: dict[str, Result] = {}
    for name in (gate,) if gate else ("on", "off"):
        began = monotonic()

        def say(text: str, name: str = name, began: float = began) -> None:
            print(f"gate {name}, {monotonic() - began:5.0f} s: {text}", flush=True)  # noqa: T201

        with (
            tempfile.TemporaryDirectory() as folder,
            ControlPlane(feature_gates={"ShardedListAndWatch": name == "on"}) as running,
        ):
            results[name] = asyncio.run(rehearse(running, Path(folder), **given, say=say))
    print(  # noqa: T201
        f"\nSeconds from a kill until all objects of that replica were reconciled by others; the lease has "
        f"{LEASE_DURATION:g} s, the retry period {RETRY_PERIOD:g} s:\n"
        " gate  joins  stops  kills  lost Leases  reconciles  overlaps     median   longest     if one survived"
    )
    for name, result in results.items():
        print(_line(name, result), flush=True)  # noqa: T201
    for result in results.values():
        assert not result.overlaps, result.overlaps[:3]


if __name__ == "__main__":
    main()
