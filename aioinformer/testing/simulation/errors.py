"""Failures that a simulation detects without a check in the scenario."""

from __future__ import annotations

from aioinformer.testing.errors import TestingError


class SimulationError(TestingError):
    """A simulation failed; the message says how."""


class DeadlockError(SimulationError):
    """Every task waits and no timer is set. The message lists what each task awaits."""


class LivelockError(SimulationError):
    """Callbacks run endlessly and no virtual time passes."""


class VirtualTimeoutError(SimulationError):
    """The run took more virtual time than allowed. The message lists what each task awaits."""


class LeakError(SimulationError):
    """The scenario left something behind: tasks, streams, unretrieved exceptions, warnings."""
