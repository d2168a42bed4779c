"""One direction of a connection: data arrives later, in order, sometimes split in two and sometimes joined."""

from __future__ import annotations

import asyncio
import errno
from contextvars import ContextVar
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from aioinformer.testing.simulation.conditions import Conditions

T = TypeVar("T")

SERVERS: ContextVar[bool] = ContextVar("aioinformer_simulated_server", default=False)
"""Whether the running code belongs to the server, so that the scenario need not end its tasks."""

_MIN_INTERVAL = 1e-6
"""Seconds between two arrivals, which keeps them in the order of sending."""


class Line(Generic[T]):
    """The data in flight in one direction.

    Args:
        conditions: Latency, splitting and joining.
        deliver: Called with each arrival: bytes, or any other item.
        context: The context to deliver in; None for the sender's.
    """

    def __init__(
        self, conditions: Conditions, deliver: Callable[[bytes | T], object], context: Context | None = None
    ) -> None:
        self._conditions = conditions
        self._deliver = deliver
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._latest = 0.0
        self._in_flight: list[bytes] = []  # the last bytes sent, until they arrive
        self._dead = False

    def send(self, item: bytes | T) -> None:
        """Send bytes, which may arrive split or joined, or another item, which arrives unchanged."""
        if not isinstance(item, bytes):
            self._post(item)
            return
        place = self._conditions.tear(len(item))
        for piece in (item[:place], item[place:]):
            if piece:
                self._post(piece)

    def stall(self, seconds: float) -> None:
        """Delay everything sent from now on by this many seconds."""
        self._latest = max(self._latest, self._loop.time()) + seconds
        self._in_flight = []  # later bytes must not join it

    def die(self) -> None:
        """Stop delivering; data in flight is lost."""
        self._dead = True

    def _post(self, item: bytes | T) -> None:
        if self._dead:
            return
        if isinstance(item, bytes) and self._in_flight and self._conditions.joins():
            self._in_flight.append(item)
            return
        self._in_flight = [item] if isinstance(item, bytes) else []
        self._latest = max(self._loop.time() + self._conditions.delay(), self._latest + _MIN_INTERVAL)
        if isinstance(item, bytes):
            self._loop.call_at(self._latest, self._arrive, self._in_flight, context=self._context)
        else:
            self._loop.call_at(self._latest, self._take, item, context=self._context)

    def _arrive(self, pieces: list[bytes]) -> None:
        if self._in_flight is pieces:
            self._in_flight = []
        self._take(b"".join(pieces))

    def _take(self, item: bytes | T) -> None:
        if not self._dead:
            self._deliver(item)


def reset_by_peer() -> ConnectionResetError:
    """Return the error with which a reset connection ends."""
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
