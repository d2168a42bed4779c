"""A phase in which every reconcile of an operator fails and is retried after the operator's own back-off."""

from __future__ import annotations

import time

from .matrix import Phase, Scenario
from .processes import ClientProcess, Server

EVENT_COUNTS = ("events_created", "events_patched")


def run_failing_phase(
    server: Server, process: ClientProcess, scenario: Scenario, phase: Phase
) -> dict[str, float]:
    """Wait until so many reconciles have failed, and return the figures of that time.

    Returns:
        CPU and log bytes per failure, seconds, the Events that were created and updated, and by how many bytes per
        object the process has grown.
    """
    process.send(f"fail {phase.failures}")
    process.answer("watching")
    resident, logged, counts = process.resident, process.logged, server.counts()
    began = time.monotonic_ns()
    if phase.events:
        server.flow(phase.events, phase.rate, scenario.informers)
    ended = process.answer("watched")
    after = server.counts()
    figures = {
        "cpu_us": ended["cpu"] / phase.failures * 1e6,
        "wall_s": (ended["ended"] - began) / 1e9,
        "bytes": (process.resident - resident) / scenario.objects,
        "log_bytes": (process.logged - logged) / phase.failures,
        **{name: float(after[name] - counts[name]) for name in EVENT_COUNTS},
    }
    return {f"{phase.name}.{name}": value for name, value in figures.items()}
