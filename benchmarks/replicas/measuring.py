"""The phases of a run: what n replicas use, how they take over a killed one's share, and a rolling update."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from ..harness.cell import Measured
from ..harness.processes import ClientFailedError, ReplayServer
from .fleet import Fleet, State

Phase = Callable[[Fleet, ReplayServer, int, "Load", dict[str, float]], None]
SCENARIO = "replicas"
MORE_REPLICAS = (2, 4, 8)
"""They are compared with one."""
MIB = 2**20


class Load(NamedTuple):
    """What the replicas have to do.

    Attributes:
        objects: Pods.
        rate: Changes a second, over all replicas.
        seconds: How long they last, and how long the replicas are left alone before.
    """

    objects: int
    rate: int
    seconds: float


def client_of(replicas: int) -> str:
    """Return the name of a row."""
    return f"{replicas} replica{'s' if replicas > 1 else ''}"


def _record(values: dict[str, float], name: str, of_replicas: Sequence[float]) -> None:
    """Record the median and the maximum over the replicas, and the maximum as if all of them had it."""
    values[name] = median(of_replicas)
    values[f"{name}.max"] = max(of_replicas)
    values[f"{name}.times_n"] = max(of_replicas) * len(of_replicas)


def sync(fleet: Fleet, server: ReplayServer, replicas: int, load: Load, values: dict[str, float]) -> None:
    """All start at once, until each object has been reconciled."""
    started = [fleet.start() for _ in range(replicas)]
    idle, used = [], []
    for replica in started:
        idle.append(replica.resident / MIB)
        used.append(replica.state().cpu)
        replica.forget_peak()
    sent = fleet.sent()
    began = time.monotonic()
    for replica in started:
        replica.send("run")
    fleet.wait_balanced(load.objects)
    states = fleet.wait_quiet()
    if replicas > 1 and not all(state.server_selects for state in states):
        raise ClientFailedError("the server did not select shards")
    values["sync.s"] = max(state.reconciled_at for state in states) / 1e9 - began
    values["sync.reconciles"] = sum(state.reconciles for state in states) / load.objects
    _record(values, "sync.cpu_s", _differences([state.cpu for state in states], used))
    _record(values, "sync.sent_mb", [bytes_ / MIB for bytes_ in _differences(fleet.sent(), sent)])
    peaks = [replica.peak / MIB for replica in started]
    for replica in started:
        replica.settle()
    settled = [replica.resident / MIB for replica in started]
    _record(values, "memory.idle_mb", idle)
    _record(values, "memory.share_mb", _differences(settled, idle))
    _record(values, "memory.total_mb", settled)
    _record(values, "memory.peak_mb", _differences(peaks, idle))


def leave_alone(
    fleet: Fleet, server: ReplayServer, replicas: int, load: Load, values: dict[str, float]
) -> None:
    """Nothing changes."""
    before, sent = fleet.states(), fleet.sent()
    began = time.monotonic()
    time.sleep(load.seconds)
    seconds = time.monotonic() - began
    _record(values, "quiet.cpu_ms", [1e3 * used / seconds for used in _used(fleet.states(), before)])
    _record(values, "quiet.sent_kb", [bytes_ / 1024 / seconds for bytes_ in _differences(fleet.sent(), sent)])


def change(fleet: Fleet, server: ReplayServer, replicas: int, load: Load, values: dict[str, float]) -> None:
    """Objects change at a rate, then as fast as the replicas read."""
    _change(fleet, server, replicas, int(load.rate * load.seconds), load.rate, "changes", values)
    _change(fleet, server, replicas, load.objects, 0, "full", values)
    if replicas == 1:
        for n in MORE_REPLICAS:  # what one of n has to do
            count = int(load.rate * load.seconds / n)
            _change(fleet, server, 1, count, load.rate / n, f"alone_{n}", values)


def _change(
    fleet: Fleet,
    server: ReplayServer,
    replicas: int,
    count: int,
    rate: float,
    name: str,
    values: dict[str, float],
) -> None:
    before, sent = fleet.states(), fleet.sent()
    began = time.monotonic()
    server.flow(count, rate, replicas)
    states = fleet.wait_reconciled(sum(state.reconciles for state in before) + count)
    seconds = time.monotonic() - began
    quiet = values["quiet.cpu_ms"] / 1e3 * seconds
    used = _used(states, before)
    # What a replica used for its share, above what it uses anyway, for each change of all.
    _record(values, f"{name}.cpu_us", [(cpu - quiet) / count * 1e6 for cpu in used])
    _record(values, f"{name}.cpu_ms", [1e3 * cpu / seconds for cpu in used])
    _record(values, f"{name}.sent_mb", [bytes_ / MIB for bytes_ in _differences(fleet.sent(), sent)])
    values[f"{name}.s"] = seconds


def kill(fleet: Fleet, server: ReplayServer, replicas: int, load: Load, values: dict[str, float]) -> None:
    """One is killed; a single one is started again."""
    before = fleet.states()
    killed = before.pop()
    fleet.end(fleet.replicas[-1], signal.SIGKILL)
    at = time.monotonic()
    if not before:
        fleet.start().send("run")
    wanted = sum(state.reconciles for state in before) + killed.objects
    fleet.wait_balanced(wanted)
    states = fleet.wait_quiet()
    values["takeover.s"] = max(state.reconciled_at for state in states) / 1e9 - at
    values["takeover.again"] = (sum(state.reconciles for state in states) - wanted) / load.objects


def roll(fleet: Fleet, server: ReplayServer, replicas: int, load: Load, values: dict[str, float]) -> None:
    """Each is stopped by SIGTERM and replaced, one after another."""
    if len(fleet.replicas) < replicas:
        fleet.start().send("run")
        fleet.wait_balanced()
        fleet.wait_quiet()
    began = ended = time.monotonic()
    reconciles = 0
    stops = []
    with fleet.watch_table() as longest_free:
        for replica in list(fleet.replicas):
            before = fleet.states()
            reconciles -= sum(state.reconciles for state in before)
            stopping = replica.state()
            stops.append(fleet.end(replica, signal.SIGTERM))
            reconciles += stopping.reconciles
            fleet.start().send("run")
            fleet.wait_balanced()
            states = fleet.wait_quiet()
            reconciles += sum(state.reconciles for state in states)
            ended = max(state.reconciled_at for state in states) / 1e9
    values["rolling.s"] = ended - began
    values["rolling.free_s"] = max(longest_free.values())
    values["rolling.stop_s"] = max(stops)
    values["rolling.reconciles"] = reconciles / load.objects


def measure(
    server: ReplayServer,
    replicas: int,
    encoding: str,
    load: Load,
    number: int,
    say: Callable[[str], None],
    phases: Sequence[Phase] = (),
) -> Measured:
    """Measure n replicas in all phases, or in some; the result includes a failure."""
    measured = Measured(SCENARIO, client_of(replicas), number, "ok", version=encoding)
    server.configure(load.objects)
    fleet = Fleet(server, encoding, load.objects)
    try:
        for phase in phases or PHASES:
            say(f"{measured.client}, round {number + 1}: {phase.__doc__}")
            phase(fleet, server, replicas, load, measured.values)
    except ClientFailedError as error:
        measured.status, measured.detail = "failed", str(error)
    finally:
        fleet.close()
    return measured


PHASES: tuple[Phase, ...] = (sync, leave_alone, change, kill, roll)


def _used(after: list[State], before: list[State]) -> list[float]:
    return _differences([state.cpu for state in after], [state.cpu for state in before])


def _differences(after: Sequence[float], before: Sequence[float]) -> list[float]:
    return [new - old for new, old in zip(after, before, strict=True)]
