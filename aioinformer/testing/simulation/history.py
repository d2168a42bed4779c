"""The history of a simulation: which actor did what, and when."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from aioinformer.testing.simulation.exchange import ClientRequest
from aioinformer.testing.simulation.loop import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.storage.storage import StoredEvent

_REQUEST = re.compile(rb"([A-Z]+ \S+) HTTP/1\.1\r\n")

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Entry(NamedTuple):
    """One entry of the history.

    Attributes:
        time: Virtual seconds since the beginning.
        who: The actor: the server, a connection, a handler, the storm.
        what: What it did; converted to text when read.
    """

    time: float
    who: str
    what: object

    def __str__(self) -> str:
        return f"{self.time:12.6f}  {self.who:<12} {self.what}"


class History:
    """The entries of a simulation, oldest first.

    Args:
        clock: Returns the loop's time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.entries: list[Entry] = []

    def add(self, who: str, what: object) -> None:
        """Add an entry with the current time."""
        self.entries.append(Entry(self._clock() - START, who, what))

    def end(self) -> None:
        """Release the clock, so that the history does not keep the loop and the world in memory."""
        ended = self._clock()
        self._clock = lambda: ended

    def text(self, last: int | None = None) -> str:
        """Return one line for each entry.

        Args:
            last: Keep only this many of the latest traffic entries (requests, answers, changes on the server) and as
                many of the latest other entries. The text says how many were left out.
        """
        traffic, others = deque[int](maxlen=last), deque[int](maxlen=last)
        for number, entry in enumerate(self.entries):
            (traffic if isinstance(entry.what, _TRAFFIC) else others).append(number)
        lines, following = list[str](), 0
        for number in sorted([*traffic, *others]):
            if left_out := number - following:
                lines.append(f"… {left_out:,} left out")
            lines.append(str(self.entries[number]))
            following = number + 1
        if left_out := len(self.entries) - following:
            lines.append(f"… {left_out:,} left out")
        return "\n".join(lines)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        return self.text()


class Sent:
    """Data that a client sent through a socket, shown by its request line."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __str__(self) -> str:
        request = _REQUEST.match(self._data)
        return f"{len(self._data)} bytes more" if request is None else request[1].decode("utf-8", "replace")


class Arrived:
    """Data that arrived at a client; lines of a watch are shown as events."""

    __slots__ = ("_item",)

    def __init__(self, item: bytes | tuple[int, object] | Exception | str | None) -> None:
        self._item = str(item) if isinstance(item, Exception) else item  # an error keeps frames

    def __str__(self) -> str:
        item = self._item
        if item is None:
            return "<- end"
        if isinstance(item, str):
            return f"<- {item}"
        if isinstance(item, tuple):
            return f"<- status {item[0]}"
        if item.startswith(b"HTTP/1.1 "):
            return f"<- status {item[9:12].decode()}, {len(item)} bytes"
        if lines := [line for line in item.splitlines() if line.startswith(b'{"type":')]:
            return f"<- {', '.join(map(_describe_event, lines))}"
        version = _VERSION.search(item)
        at = f" at {version[1].decode()}" if version else ""
        return f"<- {len(item)} bytes{at}"


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    annotations: dict[str, str] = {}


class _Object(msgspec.Struct):
    metadata: _Meta | None = None
    code: int = 0
    message: str = ""


class _Event(msgspec.Struct):
    type: str
    object: _Object


_decode = msgspec.json.Decoder(_Event).decode


def _describe_event(line: bytes) -> str:
    try:
        event = _decode(line)
    except msgspec.MsgspecError:
        return f"a piece of a line, {line[:40]!r} …"
    if event.type == "ERROR" or event.object.metadata is None:
        return f"{event.type} {event.object.code} {event.object.message}"
    meta = event.object.metadata
    key = f" {meta.namespace}/{meta.name}" if meta.namespace else f" {meta.name}" if meta.name else ""
    closing = " (end of the initial events)" if meta.annotations else ""
    return f"{event.type}{key} at {meta.resource_version}{closing}"


class Change:
    """A change of an object on the server."""

    __slots__ = ("_event",)

    def __init__(self, event: StoredEvent) -> None:
        self._event = event

    def __str__(self) -> str:
        event = self._event
        verb = {"ADDED": "created", "MODIFIED": "changed", "DELETED": "deleted"}[event.type]
        return f"{verb} {event.key} at {event.resource_version}"


_TRAFFIC = (ClientRequest, Sent, Arrived, Change)
