"""ShardingState: what a replica knows of the slots, for logs, the debug page and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from ..errors import message_of
from ..metrics import Sample
from .slots import show_slots


class SlotLoad(NamedTuple):
    """How many objects the slots of a replica have.

    Attributes:
        least: Of the emptiest slot.
        median: Half of the slots have no more.
        most: Of the fullest slot.
        fullest: That slot.
    """

    least: int
    median: float
    most: int
    fullest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingState:
    """A snapshot of a Sharding.

    Attributes:
        name: Its name.
        identity: The identity of this replica's term; ``""`` while it has none. It is the name of its Lease.
        slots: The number of slots of the whole key space.
        owned: The slots of this replica.
        leaving: Those among them that wait for running work to end before another replica gets them.
        owners: The slots of each replica, by identity, as of the last read.
        members: The replicas that are alive, as of the last read.
        moves: How many slots this replica has got or given back.
        moved_seconds: Seconds since the last of them; None before the first.
        objects: The number of objects in each slot, over the informers of this replica.
        is_filtered_by_server: Whether the server selected the objects of the last list, by informer; False: this
            replica drops others.
        last_error: Why the last try to renew the Lease, or to read or write the owners, failed; None if it succeeded.
    """

    name: str
    identity: str
    slots: int
    owned: tuple[int, ...]
    leaving: tuple[int, ...]
    owners: Mapping[str, tuple[int, ...]]
    members: tuple[str, ...]
    moves: int
    moved_seconds: float | None
    objects: Mapping[int, int]
    is_filtered_by_server: Mapping[str, bool]
    last_error: Exception | None

    @property
    def load(self) -> SlotLoad | None:
        """How many objects the slots of this replica have; None while it owns none."""
        if not self.owned:
            return None
        counts = {slot: self.objects.get(slot, 0) for slot in self.owned}
        fullest = max(counts, key=lambda slot: counts[slot])
        return SlotLoad(min(counts.values()), median(counts.values()), counts[fullest], fullest)

    def __str__(self) -> str:
        text = f"owns {len(self.owned)} of {self.slots} slots ({show_slots(self.owned)})"
        if self.leaving:
            text += f", gives back {show_slots(self.leaving)}"
        text += f"; {len(self.members)} replicas"
        if any(not by_server for by_server in self.is_filtered_by_server.values()):
            text += "; the server does not select shards"
        return text if self.last_error is None else f"{text}; {message_of(self.last_error)}"

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics."""
        labels = {"name": self.name}
        yield Sample("aioinformer_sharding_slots", "gauge", labels, self.slots)
        yield Sample("aioinformer_sharding_owned_slots", "gauge", labels, len(self.owned))
        yield Sample("aioinformer_sharding_leaving_slots", "gauge", labels, len(self.leaving))
        yield Sample("aioinformer_sharding_replicas", "gauge", labels, len(self.members))
        yield Sample("aioinformer_sharding_moves_total", "counter", labels, self.moves)
        if self.moved_seconds is not None:
            yield Sample("aioinformer_sharding_moved_seconds", "gauge", labels, self.moved_seconds)
        for slot, count in self.objects.items():
            yield Sample("aioinformer_sharding_objects", "gauge", {**labels, "slot": str(slot)}, count)
        for informer, by_server in self.is_filtered_by_server.items():
            server = {**labels, "informer": informer}
            yield Sample("aioinformer_sharding_server_selects", "gauge", server, by_server)
