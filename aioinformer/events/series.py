"""Series: repetitions of an event, and what the server knows of them (client-go ``tools/events``).

Plain code: the recorder asks what to send, and records what it sent.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

FINISH_TIME = 360.0
"""Seconds without a repetition after which a series ends, and its last count is written."""

REFRESH_TIME = 1800.0
"""Seconds after which a continuing series is written again, since its Event would expire otherwise."""

MOST_SERIES = 4096
"""Series that are kept. The one that was not seen for the longest time is dropped."""


class EventKey(NamedTuple):
    """What equal events have in common: everything except the time.

    Unlike upstream, the key leaves out the object's version, so that writing its status at each event makes a series,
    too. It includes the note, which the server does not let clients change: upstream shows the first note only.
    """

    type: str
    reason: str
    action: str
    regarding: tuple[str, ...]
    related: tuple[str, ...]
    note: str

    @property
    def kind(self) -> tuple[Hashable, ...]:
        """The same for events that differ only in their notes."""
        return self[:-1]


@dataclass(slots=True, eq=False)
class Series:
    """An event and its repetitions.

    Attributes:
        key: What the events have in common.
        event: The first event, as it is created.
        bucket: Key of the token bucket that it uses.
        last_seen: Loop time of the last repetition.
        last_time: Time of the last repetition, in the API's format.
        count: Number of events.
        written_count: The count that the server has; 0 before the Event was created.
        refreshed: Loop time when the server last got the count.
        is_create_sent: Whether a request to create it was sent.
        tries: Failed tries since the last success.
        not_before: Loop time before which it is not sent again.
        is_over: Whether it is forgotten once it has been written.
    """

    key: EventKey
    event: dict[str, Any]
    bucket: Hashable
    last_seen: float
    last_time: str
    count: int = 1
    written_count: int = 0
    refreshed: float = 0.0
    is_create_sent: bool = False
    tries: int = 0
    not_before: float = 0.0
    is_over: bool = False

    def body(self) -> dict[str, Any]:
        """Return the Event to create."""
        return {**self.event, **self.patch()} if self.count > 1 else self.event

    def patch(self) -> dict[str, Any]:
        """Return the patch that updates the count."""
        return {"series": {"count": self.count, "lastObservedTime": self.last_time}}


@dataclass(slots=True, eq=False)
class SeriesCache:
    """The series of the last minutes, and the queue of those to write, in order."""

    known: OrderedDict[EventKey, Series] = field(default_factory=OrderedDict)
    queue: dict[Series, None] = field(default_factory=dict)
    kinds: Counter[Hashable] = field(default_factory=Counter)

    def repeat(self, key: EventKey, now: float, time: str) -> Series | None:
        """Count a repetition and return its series; None for a first event."""
        series = self.known.get(key)
        if series is not None:
            self.known.move_to_end(key)
            series.count += 1
            series.last_seen, series.last_time = now, time
            series.is_over = False
        return series

    def add(self, series: Series) -> None:
        """Add a first event and queue it."""
        self.known[series.key] = series
        self.kinds[series.key.kind] += 1
        self.queue[series] = None
        if len(self.known) > MOST_SERIES:
            oldest = next(iter(self.known.values()))
            self.forget(oldest)
            oldest.is_over = True
            if oldest.count > oldest.written_count:
                self.queue[oldest] = None

    def forget(self, series: Series) -> None:
        """Drop a series, so that the next event of its key is a first one."""
        if self.known.get(series.key) is not series:
            return
        del self.known[series.key]
        self.kinds[series.key.kind] -= 1
        if not self.kinds[series.key.kind]:
            del self.kinds[series.key.kind]

    def tidy(self, now: float, limit: int) -> None:
        """End series without repetitions for a while, and queue what must be written again.

        Args:
            now: Loop time.
            limit: Limit of the queue. Series that find no room are checked again next time.
        """
        for series in list(self.known.values()):
            is_over = now - series.last_seen >= FINISH_TIME
            is_due = is_over or now - series.refreshed >= REFRESH_TIME
            has_room = series in self.queue or len(self.queue) < limit
            if is_over and series.count <= series.written_count:
                series.is_over = True
                if series not in self.queue:
                    self.forget(series)
            elif is_due and has_room:
                series.is_over = is_over
                self.queue[series] = None

    def first(self) -> Series | None:
        """Return the series to write first: those that have never failed, in order, before the others."""
        return min(self.queue, key=attrgetter("not_before"), default=None)

    def finish(self) -> None:
        """Queue all unwritten counts, to be sent at once."""
        for series in self.known.values():
            if series.count > series.written_count:
                self.queue[series] = None
        for series in self.queue:
            series.not_before = 0.0
