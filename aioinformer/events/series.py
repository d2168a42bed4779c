"""Which events are the same once more, and what the server knows of them (client-go ``tools/events``).

Plain code: the recorder asks what is to be sent, and says what was.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

FINISH_TIME = 360.0
"""Seconds without another one of its kind after which a series ends, and its last count is written."""

REFRESH_TIME = 1800.0
"""Seconds after which a series that goes on is written again, for it would expire otherwise."""

MOST_SERIES = 4096
"""Kinds of events that are remembered; of those that were not heard of for the longest the next one is a first one."""


class EventKey(NamedTuple):
    """What makes two events the same: all but when.

    Unlike upstream's, not the version of the object: whoever writes its status at each event has series, too. And the
    note, which a server does not let anybody change: upstream shows the first one only.
    """

    type: str
    reason: str
    action: str
    regarding: tuple[str, ...]
    related: tuple[str, ...]
    note: str

    @property
    def kind(self) -> tuple[Hashable, ...]:
        """The same for events that differ in their notes alone."""
        return self[:-1]


@dataclass(slots=True, eq=False)
class Series:
    """An event, and how often it has come.

    Attributes:
        key: Which.
        event: The first one, as it is created.
        bucket: Whose budget it costs.
        heard: When it came last, in the loop's time.
        last: When it came last, as the API writes it.
        count: How often it has come.
        told: What count the server was told; 0 before it was created.
        refreshed: When the server was told last, in the loop's time.
        is_asked: Whether the server was asked to create it.
        tries: How often telling has failed since.
        not_before: When the server may be told again after that, in the loop's time.
        is_over: Whether it is forgotten once it was told.
    """

    key: EventKey
    event: dict[str, Any]
    bucket: Hashable
    heard: float
    last: str
    count: int = 1
    told: int = 0
    refreshed: float = 0.0
    is_asked: bool = False
    tries: int = 0
    not_before: float = 0.0
    is_over: bool = False

    def body(self) -> dict[str, Any]:
        """The event as it is created."""
        return {**self.event, **self.patch()} if self.count > 1 else self.event

    def patch(self) -> dict[str, Any]:
        """What changes of it."""
        return {"series": {"count": self.count, "lastObservedTime": self.last}}


@dataclass(slots=True, eq=False)
class SeriesCache:
    """The events of the last minutes, and those of them that the server is to be told of, in order."""

    known: OrderedDict[EventKey, Series] = field(default_factory=OrderedDict)
    queue: dict[Series, None] = field(default_factory=dict)
    kinds: Counter[Hashable] = field(default_factory=Counter)

    def again(self, key: EventKey, now: float, last: str) -> Series | None:
        """Count an event that has come before; None for a first one."""
        series = self.known.get(key)
        if series is not None:
            self.known.move_to_end(key)
            series.count += 1
            series.heard, series.last = now, last
            series.is_over = False
        return series

    def add(self, series: Series) -> None:
        """A first one."""
        self.known[series.key] = series
        self.kinds[series.key.kind] += 1
        self.queue[series] = None
        if len(self.known) > MOST_SERIES:
            oldest = next(iter(self.known.values()))
            self.forget(oldest)
            oldest.is_over = True
            if oldest.count > oldest.told:
                self.queue[oldest] = None

    def forget(self, series: Series) -> None:
        """The next one of its kind is a first one."""
        if self.known.get(series.key) is not series:
            return
        del self.known[series.key]
        self.kinds[series.key.kind] -= 1
        if not self.kinds[series.key.kind]:
            del self.kinds[series.key.kind]

    def tidy(self, now: float, limit: int) -> None:
        """End what has not come for a while, and queue what the server is to be told again.

        Args:
            now: The loop's time.
            limit: How many may wait. What finds no room is left as it is, for the next time.
        """
        for series in list(self.known.values()):
            is_over = now - series.heard >= FINISH_TIME
            is_due = is_over or now - series.refreshed >= REFRESH_TIME
            has_room = series in self.queue or len(self.queue) < limit
            if is_over and series.count <= series.told:
                series.is_over = True
                if series not in self.queue:
                    self.forget(series)
            elif is_due and has_room:
                series.is_over = is_over
                self.queue[series] = None

    def first(self) -> Series | None:
        """What is to be told first: of those that wait, what has never failed, in order, and then the others."""
        return min(self.queue, key=attrgetter("not_before"), default=None)

    def finish(self) -> None:
        """Queue all that the server does not know yet, to be told at once."""
        for series in self.known.values():
            if series.count > series.told:
                self.queue[series] = None
        for series in self.queue:
            series.not_before = 0.0
