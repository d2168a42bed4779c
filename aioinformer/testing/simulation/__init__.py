"""Deterministic simulation: a program, an API server and the network between them in virtual time, from a seed."""

from __future__ import annotations

from aioinformer.testing.simulation.errors import (
    DeadlockError,
    LeakError,
    LivelockError,
    SimulationError,
    VirtualTimeoutError,
)
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.loop import VirtualTimeLoop
from aioinformer.testing.simulation.run import simulate
from aioinformer.testing.simulation.simulation import Simulation
from aioinformer.testing.simulation.troubles import TROUBLES

__all__ = [
    "simulate",
    "Simulation",
    "History",
    "TROUBLES",
    "VirtualTimeLoop",
    "SimulationError",
    "DeadlockError",
    "LivelockError",
    "LeakError",
    "VirtualTimeoutError",
]
