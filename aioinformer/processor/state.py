"""What a listener is doing, for whoever asks."""

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
        depth: Notifications that wait, the one being handled among them.
        high_water: The most that ever waited.
        delivered: Calls that have returned or raised.
        failed: Calls that raised.
        handling: The key being handled, or None.
        handling_seconds: For how long.
        backlog: What becomes of notifications that it is too slow for.
        coalesced: Notifications that newer ones of the same object made needless.
        dropped: Notifications that were lost to newer ones of other objects.
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
        """The numbers, for Prometheus."""
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
