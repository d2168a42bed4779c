"""ListenerState: a snapshot of a listener."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..metrics import Sample
from .backlog import Backlog


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerState:
    """A snapshot of a listener.

    Attributes:
        name: The handler's.
        depth: Notifications that wait, including the one being handled.
        high_water: The most that ever waited.
        delivered: Calls that have returned or raised.
        failed: Calls that raised.
        handling: The key being handled, or None.
        handling_seconds: For how long.
        backlog: Its backlog policy.
        coalesced: Notifications that were merged with newer ones of the same object.
        dropped: Notifications that were dropped for newer ones of other objects.
    """

    name: str
    depth: int
    high_water: int
    delivered: int
    failed: int
    handling: str | None
    handling_seconds: float
    backlog: Backlog = "unbounded"
    coalesced: int = 0
    dropped: int = 0

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics."""
        labels = {"handler": self.name}
        yield Sample("aioinformer_handler_depth", "gauge", labels, self.depth)
        yield Sample("aioinformer_handler_high_water", "gauge", labels, self.high_water)
        yield Sample("aioinformer_handler_delivered_total", "counter", labels, self.delivered)
        yield Sample("aioinformer_handler_failed_total", "counter", labels, self.failed)
        yield Sample("aioinformer_handler_coalesced_total", "counter", labels, self.coalesced)
        yield Sample("aioinformer_handler_dropped_total", "counter", labels, self.dropped)

    def __str__(self) -> str:
        text = f"{self.name}: {self.depth} waiting (at most {self.high_water}), {self.delivered} delivered"
        for count, what in (
            (self.failed, "failed"),
            (self.coalesced, "coalesced"),
            (self.dropped, "dropped"),
        ):
            if count:
                text += f", {count} {what}"
        return (
            text if self.handling is None else f"{text}; at {self.handling} for {self.handling_seconds:.1f} s"
        )
