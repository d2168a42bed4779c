"""Lines of a watch as events, without a parse of the objects in them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Self

import msgspec

from ..api import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent
from ..errors import TransportError
from ..objects import DECODE_ERRORS
from .lines import LineSplitter, Span
from .transport import ByteStream

logger = logging.getLogger(__name__)

LONGEST_BATCH = 256
"""Lines handed on at once: enough to share the cost of a hand-over, few enough not to hold the loop."""

_OBJECT_TYPES = (ADDED, MODIFIED, DELETED, BOOKMARK)
_LAYOUTS = {
    head[9]: (type_, head, len(head))
    for type_, head in ((type_, b'{"type":"%s","object":' % type_.encode()) for type_ in _OBJECT_TYPES)
}
"""How the API server begins a line, by the first letter of the type."""


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_status = msgspec.json.Decoder(dict).decode


def decode_lines(lines: Iterable[Span], bad: list[bytes]) -> list[WatchEvent]:
    """The events of these lines; lines that say none are added to ``bad``.

    In the layout that API servers send, the object is what stands between a fixed head and the closing brace: it
    is cut out and not parsed, as whoever decodes it later checks all of it. Any other layout is parsed. Objects
    stay bytes, save that of an ERROR, which is decoded. Blank lines are passed over.
    """
    events: list[WatchEvent] = []
    for buffer, start, end in lines:
        layout = _LAYOUTS.get(buffer[start + 9]) if end - start > 9 else None
        if layout is not None:
            type_, head, length = layout
            if buffer.startswith(head, start, end) and buffer[end - 1] == 0x7D:  # }
                events.append(WatchEvent(type_, buffer[start + length : end - 1]))
                continue
        line = buffer[start:end]
        if not line or line.isspace():
            continue
        event = _parse(line)
        if event is None:
            bad.append(line)
        else:
            events.append(event)
    return events


def _parse(line: bytes) -> WatchEvent | None:
    try:
        parsed = _decode_line(line)
        if parsed.type == ERROR:
            return WatchEvent(ERROR, _decode_status(parsed.object))
    except DECODE_ERRORS:
        return None
    return WatchEvent(parsed.type, bytes(parsed.object)) if parsed.type in _OBJECT_TYPES else None


class EventStream:
    """A watch: lists of the events that arrived at once, out of a stream of bytes.

    A line that says no event is dropped, logged and counted; the stream goes on. It ends where the server ends it
    after a whole line; cut inside a line it raises TransportError. Owns the byte stream: close it with ``aclose``.

    Args:
        chunks: The body of a watch.
        description: What is watched, for messages.
        on_bad_lines: Told of the number of lines dropped.
    """

    def __init__(self, chunks: ByteStream, description: str, on_bad_lines: Callable[[int], None]) -> None:
        self._chunks = chunks
        self._description = description
        self._on_bad_lines = on_bad_lines
        self._splitter = LineSplitter()
        self._lines: deque[list[Span]] = deque()
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        while True:
            while self._lines:
                events = self._decode(self._lines.popleft())
                if events:
                    return events
            if self._ended:
                raise StopAsyncIteration
            try:
                chunk = await self._chunks.__anext__()
            except StopAsyncIteration:
                self._ended = True
                self._take_rest()
                continue
            lines = self._splitter.feed(chunk)
            for start in range(0, len(lines), LONGEST_BATCH):
                self._lines.append(lines[start : start + LONGEST_BATCH])

    async def aclose(self) -> None:
        """Close the connection. Idempotent."""
        self._ended = True
        self._lines.clear()
        await self._chunks.aclose()

    def _decode(self, lines: list[Span]) -> list[WatchEvent]:
        bad: list[bytes] = []
        events = decode_lines(lines, bad)
        if bad:
            self._on_bad_lines(len(bad))
            logger.warning(
                "watch %s: dropped %d undecodable line(s), the first of %d bytes beginning %r",
                self._description,
                len(bad),
                len(bad[0]),
                bad[0][:80],
            )
        return events

    def _take_rest(self) -> None:
        rest = self._splitter.close()
        if not rest or rest.isspace():
            return
        if _parse(rest) is None:
            raise TransportError(
                f"the stream was cut in the middle of a line, after {len(rest)} bytes beginning {rest[:80]!r}"
            )
        self._lines.append([(rest, 0, len(rest))])
