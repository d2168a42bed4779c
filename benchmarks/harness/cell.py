"""Run one client through one scenario, and measure it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from .failing import run_failing_phase
from .matrix import Client, Phase, Scenario
from .processes import (
    GOODBYE,
    ClientFailedError,
    ClientProcess,
    ClientUnsupportedError,
    Server,
    python_client,
)

SERVERS_CORE, CLIENTS_CORE = 0, 1
LATE = 0.05
"""The fraction by which a phase may last longer than its rate implies before the client counts as saturated."""
SATURATED_LATENCY = 50_000.0
"""Median latency in microseconds above which events wait in the socket, so the client is saturated."""
MIN_GROWTH = 2**20
"""Growth in bytes below which the peak ratio is meaningless."""

Status = Literal["ok", "saturated", "unsupported", "missing", "failed"]


class Measured(msgspec.Struct):
    """A cell of the matrix in one round.

    Attributes:
        values: Figures by name. ``sync.cpu_us`` and memory are per object, ``PHASE.cpu_us`` per event or failure.
            ``start.s`` is the time from the process's start until all objects were handled.
        detail: Why figures are missing.
    """

    scenario: str
    client: str
    round: int
    status: Status
    values: dict[str, float] = {}
    detail: str = ""
    version: str = ""


def run_cell(
    server: Server, client: Client, scenario: Scenario, number: int, binaries: dict[str, Path]
) -> Measured:
    """Run a cell; the result includes its failure."""
    scenario = scenario.of(client)
    measured = Measured(scenario.name, client.name, number, "ok")
    try:
        drive(server, command_of(client, scenario, server, binaries), scenario, measured)
    except ClientUnsupportedError as error:
        measured.status, measured.detail = "unsupported", str(error)
    except ClientFailedError as error:
        measured.status, measured.detail = "failed", str(error)
    return measured


def command_of(client: Client, scenario: Scenario, server: Server, binaries: dict[str, Path]) -> list[str]:
    """Return the command line of CONTRACT.md."""
    begin = [str(binaries[client.run])] if client.program else python_client(client.run)
    stamped = any(phase.stamped for phase in scenario.phases)
    form = "stamped-struct" if client.form == "struct" and stamped else client.form
    arguments = {
        "server": server.https if scenario.tls else server.http,
        "ca": str(server.ca) if scenario.tls else "",
        "encoding": client.encoding,
        "initial": scenario.initial,
        "objects": scenario.objects,
        "handlers": scenario.handlers,
        "handler": scenario.handler,
        "informers": scenario.informers,
        "form": form,
        "loop": client.loop,
        "probe": int(scenario.probe),
        "failures": scenario.failures,
    }
    return begin + [str(word) for name, value in arguments.items() for word in (f"--{name}", value)]


def drive(
    server: Server, command: list[str], scenario: Scenario, measured: Measured, goodbye: float = GOODBYE
) -> None:
    """Run a client through a scenario.

    Args:
        server: The server of the objects.
        command: The client's command line.
        scenario: The scenario to run.
        measured: The figures are stored here.
        goodbye: Seconds for the client to end before it is killed.

    Raises:
        ClientFailedError: The client gave no answer or a wrong one.
        ClientUnsupportedError: The client does not support the scenario.
    """
    server.configure(scenario.objects)
    cores = [CLIENTS_CORE] if scenario.one_core else [SERVERS_CORE, CLIENTS_CORE]
    began = time.monotonic()
    with ClientProcess(command, cores, goodbye) as process:
        measured.version = process.answer("ready")["version"]
        started = time.monotonic() - began
        before = process.resident
        process.forget_peak()
        process.send("sync")
        synced = process.answer("synced")
        settled, peak = process.resident, process.peak
        values = measured.values
        values["start.s"] = started + synced["wall"]
        values["sync.wall_s"], values["sync.cpu_s"] = synced["wall"], synced["cpu"]
        values["sync.cpu_us"] = synced["cpu"] / scenario.objects * 1e6
        values["sync.bytes"] = (settled - before) / scenario.objects
        values["sync.resident_mb"] = settled / 2**20
        if settled - before > MIN_GROWTH:
            values["sync.peak_ratio"] = (peak - before) / (settled - before)
        _record_lag(values, "sync", synced)
        for phase in scenario.phases:
            if phase.failures:
                values |= run_failing_phase(server, process, scenario, phase)
            else:
                _run_phase(server, process, scenario, phase, measured)


def _run_phase(
    server: Server, process: ClientProcess, scenario: Scenario, phase: Phase, measured: Measured
) -> None:
    if phase.reads:
        process.send(f"reads {phase.events / phase.rate:g}")
    else:
        process.send(f"watch {phase.events} {'stamped' if phase.stamped else 'plain'}")
    process.answer("watching")
    if phase.relist:
        server.expire()
    flowed = server.flow(phase.events, phase.rate, scenario.informers)
    watched = process.answer("watched")
    if phase.name.startswith("_"):
        return
    values = measured.values
    count = scenario.objects if phase.relist else phase.events
    values[f"{phase.name}.cpu_us"] = watched["cpu"] / count * 1e6
    if not phase.reads and not phase.relist:
        values[f"{phase.name}.events_s"] = phase.events / (watched["ended"] - flowed["first"]) * 1e9
    for name, value in watched.get("latency_us", {}).items():
        values[f"{phase.name}.{name}"] = value
    for kind, times in watched.get("read_us", {}).items():
        for name, value in times.items():
            values[f"{phase.name}.{kind}.{name}"] = value
    _record_lag(values, phase.name, watched)
    is_late = bool(phase.rate) and _seconds(flowed) > (1 + LATE) * phase.events / phase.rate + LATE
    if is_late or values.get(f"{phase.name}.p50", 0.0) > SATURATED_LATENCY:
        measured.status, measured.detail = "saturated", f"cannot follow {phase.rate:g} events a second"


def _seconds(flowed: dict[str, Any]) -> float:
    return float(flowed["last"] - flowed["first"]) / 1e9


def _record_lag(values: dict[str, float], phase: str, answer: dict[str, Any]) -> None:
    for name, value in answer.get("lag_ms", {}).items():
        values[f"{phase}.lag_{name}"] = value
