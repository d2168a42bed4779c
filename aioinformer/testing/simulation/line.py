"""One direction of a connection: what is sent arrives later, in order, here torn in two and there joined."""

from __future__ import annotations

import asyncio
import errno
from contextvars import ContextVar
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from aioinformer.testing.simulation.network import Network

T = TypeVar("T")

SERVERS: ContextVar[bool] = ContextVar("aioinformer_simulated_server", default=False)
"""Whether what runs is the server's: its tasks are not the scenario's to end."""

_APART = 1e-6
"""Seconds between two arrivals: what was sent first arrives first."""


class Line(Generic[T]):
    """What is under way in one direction.

    Args:
        network: Whose latency it has.
        deliver: Given what arrives: bytes, or any other item.
        context: What to deliver in; None for the sender's.
    """

    def __init__(
        self, network: Network, deliver: Callable[[bytes | T], object], context: Context | None = None
    ) -> None:
        self._network = network
        self._deliver = deliver
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._latest = 0.0
        self._under_way: list[bytes] = []  # what was sent last, if it has not arrived
        self._dead = False

    def send(self, item: bytes | T) -> None:
        """Send bytes, which may arrive in two pieces or with others, or something that arrives as it is."""
        if not isinstance(item, bytes):
            self._post(item)
            return
        place = self._network.tear(len(item))
        for piece in (item[:place], item[place:]):
            if piece:
                self._post(piece)

    def stall(self, seconds: float) -> None:
        """Hold back for so long whatever is sent from now on."""
        self._latest = max(self._latest, self._loop.time()) + seconds
        self._under_way = []  # which nothing joins any more

    def die(self) -> None:
        """Deliver nothing more; what is under way is lost."""
        self._dead = True

    def _post(self, item: bytes | T) -> None:
        if self._dead:
            return
        if isinstance(item, bytes) and self._under_way and self._network.joins():
            self._under_way.append(item)
            return
        self._under_way = [item] if isinstance(item, bytes) else []
        self._latest = max(self._loop.time() + self._network.delay(), self._latest + _APART)
        if isinstance(item, bytes):
            self._loop.call_at(self._latest, self._arrive, self._under_way, context=self._context)
        else:
            self._loop.call_at(self._latest, self._take, item, context=self._context)

    def _arrive(self, pieces: list[bytes]) -> None:
        if self._under_way is pieces:
            self._under_way = []
        self._take(b"".join(pieces))

    def _take(self, item: bytes | T) -> None:
        if not self._dead:
            self._deliver(item)


def reset_by_peer() -> ConnectionResetError:
    """What a connection that was cut ends with."""
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
