"""Replicas as processes on a real kube-apiserver, which join, stop and are killed; and what their notes must show.

python -m tests.sharding.processes --events 50 --objects 2000 --replicas 8 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple

from aioinformer import Client, Resource
from tests.kubernetes.controlplane import ControlPlane

from .replica import LEASE_DURATION, RETRY_PERIOD

DEADLINE = 120.0


class Note(NamedTuple):
    """One reconcile of one replica. Times are seconds of the machine's monotonic clock."""

    key: str
    data: str
    begin: float
    end: float
    replica: int


class Result(NamedTuple):
    """What the replicas did.

    Attributes:
        reconciles: How many reconciles there were.
        overlaps: Pairs of reconciles of one object by two replicas at once.
        longest_takeover: The most seconds from a kill until another had reconciled all objects of the killed one.
        kills: How many replicas were killed.
    """

    reconciles: int
    overlaps: list[tuple[Note, Note]]
    longest_takeover: float
    kills: int


class Replicas:
    """Starts, stops and kills replicas."""

    def __init__(self, kubeconfig: Path, namespace: str, folder: Path) -> None:
        self._kubeconfig, self._namespace, self._folder = kubeconfig, namespace, folder
        self.running: dict[int, asyncio.subprocess.Process] = {}
        self.killed_at: dict[int, float] = {}
        self._count = 0

    async def start(self) -> None:
        """Start one more."""
        number, self._count = self._count, self._count + 1
        with open(self._folder / f"{number}.err", "wb") as errors:  # noqa: ASYNC230 - a file of a test
            self.running[number] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.sharding.replica",
                str(self._kubeconfig), self._namespace, str(self._folder / f"{number}.log"),
                stderr=errors, env=os.environ,
            )  # fmt: skip

    async def end(self, number: int, *, kill: bool) -> None:
        """Kill one, or stop it and wait for its end."""
        process = self.running.pop(number)
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        if kill:
            self.killed_at[number] = monotonic()
        code = await process.wait()
        assert kill or code == 0, (self._folder / f"{number}.err").read_text()[-3000:]

    def notes(self) -> list[Note]:
        """Return what the replicas wrote. What a killed one had begun counts until it was killed."""
        notes = []
        for file in self._folder.glob("*.log"):
            number, begun = int(file.stem), {}
            for line in file.read_text().splitlines():
                what, key, data, at = line.split()
                if what == "begin":
                    begun[key] = data, float(at)
                else:
                    data, begin = begun.pop(key)
                    notes.append(Note(key, data, begin, float(at), number))
            end = self.killed_at.get(number, monotonic())
            notes += [Note(key, data, begin, end, number) for key, (data, begin) in begun.items()]
        return sorted(notes, key=lambda note: note.begin)


async def rehearse(
    control_plane: ControlPlane, folder: Path, *, objects: int, replicas: int, events: int, seed: int
) -> Result:
    """Let replicas join and end, then check that each object was reconciled in its last state."""
    random = Random(seed)
    namespace = control_plane.create_namespace()
    async with AsyncExitStack() as cleanup:
        client = await cleanup.enter_async_context(Client.from_kubeconfig(path=control_plane.kubeconfig))
        configmaps = Resource(client, "v1", "configmaps", dict)
        await _write_all(configmaps, namespace, objects, "0")
        cast = Replicas(control_plane.kubeconfig, namespace, folder)
        cleanup.push_async_callback(_end_all, cast)
        for _ in range(replicas):
            await cast.start()
        await _wait_reconciled(cast, objects, "0")
        for event in range(events):
            numbers = sorted(cast.running)
            if len(numbers) < replicas and (len(numbers) < 2 or random.random() < 0.5):
                await cast.start()
            else:
                await cast.end(random.choice(numbers), kill=random.random() < 0.7)
            await asyncio.sleep(random.uniform(0.0, 3.0))
            if event % 5 == 4:
                await _write_all(configmaps, namespace, objects, str(event))
                await _wait_reconciled(cast, objects, str(event))
        await _write_all(configmaps, namespace, objects, "last")
        await _wait_reconciled(cast, objects, "last")
        notes = cast.notes()
        return Result(
            len(notes), _overlaps(notes), _longest_takeover(notes, cast.killed_at), len(cast.killed_at)
        )


async def _end_all(cast: Replicas) -> None:
    for number in list(cast.running):
        await cast.end(number, kill=False)


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
        done = {note.key for note in cast.notes() if note.data == data}
        if len(done) == objects:
            return
        assert monotonic() < deadline, f"{objects - len(done)} objects were not reconciled as {data!r}"
        for number, process in cast.running.items():
            assert process.returncode is None, f"replica {number} has ended"
        await asyncio.sleep(0.5)


def _overlaps(notes: list[Note]) -> list[tuple[Note, Note]]:
    last: dict[str, Note] = {}
    overlaps = []
    for note in notes:
        before = last.get(note.key)
        if before is not None and before.replica != note.replica and note.begin < before.end:
            overlaps.append((before, note))
        if before is None or note.end > before.end:
            last[note.key] = note
    return overlaps


def _longest_takeover(notes: list[Note], killed_at: dict[int, float]) -> float:
    longest = 0.0
    for number, at in killed_at.items():
        before = {note.key: note.replica for note in notes if note.begin <= at}
        keys = {key for key, replica in before.items() if replica == number}
        first: dict[str, float] = {}
        for note in notes:
            if note.begin > at and note.key in keys:
                first.setdefault(note.key, note.begin)
        longest = max([longest, *(begin - at for begin in first.values())])
    return longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for gate in (True, False):
        with (
            tempfile.TemporaryDirectory() as folder,
            ControlPlane(feature_gates={"ShardedListAndWatch": gate}) as running,
        ):
            result = asyncio.run(rehearse(running, Path(folder), **vars(arguments)))
        print(  # noqa: T201
            f"gate {'on' if gate else 'off'}: {result.reconciles} reconciles, {result.kills} kills, "
            f"{len(result.overlaps)} overlaps, longest take-over {result.longest_takeover:.1f} s "
            f"(lease {LEASE_DURATION:g} s, look {RETRY_PERIOD:g} s)",
            flush=True,
        )
        assert not result.overlaps, result.overlaps[:3]


if __name__ == "__main__":
    main()
