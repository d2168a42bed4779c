"""What a simulation finds by itself, without a check of its scenario's."""

from __future__ import annotations

from aioinformer.testing.errors import TestingError


class SimulationError(TestingError):
    """A simulation went wrong; the message says how."""


class DeadlockError(SimulationError):
    """Everything waits and no timer is set: nothing could ever happen. Lists what every task awaits."""


class LivelockError(SimulationError):
    """Callbacks follow each other without end, and no time passes."""


class VirtualTimeoutError(SimulationError):
    """The virtual time allowed is over. Lists what every task awaits."""


class LeakError(SimulationError):
    """The scenario has ended and left something behind: tasks, streams, errors that nobody saw, warnings."""
