"""A watch as events: lines of JSON, without a parse of the objects in them, or frames of protobuf."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Self

import msgspec

from ..client.transport import ByteStream
from ..errors import TransportError
from ..objects.excerpts import excerpt
from ..objects.meta import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    NO_EVENT,
    WatchEvent,
)
from ..objects.nesting import DECODE_ERRORS, decode_parts
from .frames import Frames
from .lines import LONGEST_OBJECT, LineSplitter, Span

SIGN_OF_LIFE = 1.0
"""Seconds, at least, between two empty batches, which say that a part of an event has come."""

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


def decode_lines(lines: Iterable[Span]) -> list[WatchEvent]:
    """The events of these lines; of a line that says none, NO_EVENT with the line.

    In the layout that API servers send, the object is what stands between a fixed head and the closing brace: it
    is cut out and not parsed, as whoever decodes it later checks all of it, and drops what fields stand behind it
    (``decoders.without_rest``). Any other layout is parsed. Objects stay bytes, save the Status of an ERROR, which
    is decoded. Blank lines are passed over.
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
        if line and not line.isspace():
            events.append(_parse(line))
    return events


def _parse(line: bytes) -> WatchEvent:
    try:
        parsed = _decode_line(line)
    except msgspec.ValidationError:
        return WatchEvent(NO_EVENT, line)
    except DECODE_ERRORS:
        return _parse_parts(line)
    if parsed.type == ERROR:
        with suppress(*DECODE_ERRORS):
            return WatchEvent(ERROR, _decode_status(parsed.object))
    return WatchEvent(parsed.type, bytes(parsed.object))


def _parse_parts(line: bytes) -> WatchEvent:
    """The event of a line that msgspec refuses, as its object may be nested deeply."""
    with suppress(*DECODE_ERRORS):
        fields = decode_parts(line)
        type_, obj = fields.get("type"), fields.get("object")
        if isinstance(type_, str) and type_ != ERROR and isinstance(obj, dict):
            return WatchEvent(type_, msgspec.json.encode(obj))
    return WatchEvent(NO_EVENT, line)


class Lines(LineSplitter):
    """The lines of a watch in JSON, and the events in them."""

    events = staticmethod(decode_lines)

    def last(self) -> list[Span]:
        """What is left at the end: a line without its newline, or nothing.

        Raises:
            TransportError: The stream ended within a line.
        """
        rest = self.close()
        if not rest or rest.isspace():
            return []
        if _parse(rest).type == NO_EVENT:
            size, beginning = len(rest), excerpt(rest)
            del rest  # whoever keeps the error keeps this frame
            raise TransportError(
                f"the stream was cut in the middle of a line, after {size} bytes beginning {beginning}"
            )
        return [(rest, 0, len(rest))]


class EventStream:
    """A watch: lists of the events that arrived at once, out of a stream of bytes, lines of JSON or frames of protobuf.

    A line that says no event is NO_EVENT; the stream goes on. It ends where the server ends it after a whole line;
    cut inside a line it raises TransportError. While one event arrives slowly there is an empty batch now and then: the
    stream is not silent. Owns the byte stream: close it with ``aclose``.

    Args:
        chunks: The body of a watch.
        longest_object: Bytes that a line may have; a longer one ends the stream with DecodeError.
    """

    def __init__(self, chunks: ByteStream, longest_object: int = LONGEST_OBJECT) -> None:
        self._chunks = chunks
        self._longest = longest_object
        self._form: Lines | Frames | None = None
        self._batches: deque[list[Span]] = deque()
        self._ended = False
        self._lived: float | None = None  # loop time of the last sign of it

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        while True:
            while self._batches:
                assert self._form is not None
                events = self._form.events(self._batches.popleft())
                if events:
                    return events
                await asyncio.sleep(0)  # nothing but blank lines: let others run, as who takes events would
            if self._ended:
                raise StopAsyncIteration
            try:
                chunk = await self._chunks.__anext__()
            except StopAsyncIteration:
                self._ended = True
                self._add([] if self._form is None else self._form.last())
                continue
            if self._form is None:
                # A frame begins with its length, whose first byte is 0 for all that an API server stores.
                self._form = (Frames if chunk[0] == 0 else Lines)(self._longest)
            self._add(self._form.feed(chunk))
            if not self._batches and self._is_sign_of_life():
                return []

    async def aclose(self) -> None:
        """Close the connection. Idempotent."""
        self._ended = True
        self._batches.clear()
        await self._chunks.aclose()

    def _is_sign_of_life(self) -> bool:
        """A part of an event has come; whether to say so."""
        now = asyncio.get_running_loop().time()
        if self._lived is not None and now - self._lived < SIGN_OF_LIFE:
            return False
        self._lived, is_first = now, self._lived is None
        return not is_first

    def _add(self, spans: list[Span]) -> None:
        for start in range(0, len(spans), LONGEST_BATCH):
            self._batches.append(spans[start : start + LONGEST_BATCH])
