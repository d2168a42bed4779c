"""EventStream: the events of a watch, from lines of JSON or frames of protobuf. Objects are not parsed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self

import msgspec

from ..client.error_mapping import raise_converted
from ..client.transport import ByteStream
from ..errors import TransportError
from ..objects.excerpts import excerpt
from ..objects.meta import ERROR, NO_EVENT, OBJECT_EVENTS, WatchEvent
from ..objects.nesting import DECODE_ERRORS, decode_object, reader_of
from .frames import Frames
from .lines import LONGEST_OBJECT, LineSplitter, Span

EMPTY_BATCH_INTERVAL = 1.0
"""Seconds, at least, between two empty batches, which show that part of an event has arrived."""

LONGEST_BATCH = 256
"""Lines in one batch: enough to share the cost of a hand-over, few enough not to block the event loop."""

_HEADS = tuple(
    (type_, head, len(head))
    for type_ in OBJECT_EVENTS
    for head in (b'{"type":"%s","object":' % type_.encode(),)
)
"""How API servers begin a line with an event of each type."""


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_read_line = reader_of(_Line)


def decode_lines(lines: Iterable[Span]) -> list[WatchEvent]:
    """Return the events of these lines; NO_EVENT with the line for a line without an event.

    In the API server's layout the object stands between a fixed head and the closing brace. It is cut out and not
    parsed: its decoder checks it and drops fields that follow it (``decoders.without_rest``). Other lines are parsed.
    Objects stay bytes, except the Status of an ERROR. Blank lines are skipped.
    """
    events: list[WatchEvent] = []
    for buffer, start, end in lines:
        for type_, head, length in _HEADS:
            if buffer.startswith(head, start, end) and buffer[end - 1] == 0x7D:  # }
                events.append(WatchEvent(type_, buffer[start + length : end - 1]))
                break
        else:
            line = buffer[start:end]
            if line and not line.isspace():
                events.append(_parse(line))
    return events


def _parse(line: bytes) -> WatchEvent:
    """Return the event of a line; its object may be nested deeply."""
    try:
        parsed = _read_line(line)
    except DECODE_ERRORS:
        return WatchEvent(NO_EVENT, line)
    if parsed.type == ERROR:
        with suppress(*DECODE_ERRORS):
            return WatchEvent(ERROR, decode_object(parsed.object))
    return WatchEvent(parsed.type, bytes(parsed.object))


class Lines(LineSplitter):
    """Splits a JSON watch into lines, and reads their events."""

    events = staticmethod(decode_lines)

    def last(self) -> list[Span]:
        """Return the last line if it has no newline.

        Raises:
            TransportError: The stream ended inside a line.
        """
        rest = self.close()
        if not rest or rest.isspace():
            return []
        if _parse(rest).type == NO_EVENT:
            size, beginning = len(rest), excerpt(rest)
            del rest  # the error keeps this frame alive
            raise TransportError(
                f"the stream was cut in the middle of a line, after {size} bytes beginning {beginning}"
            )
        return [(rest, 0, len(rest))]


class EventStream:
    """The events of a watch, in lists of the events that arrived together. Reads lines of JSON or frames of protobuf.

    - A line without an event becomes NO_EVENT, and the stream goes on.
    - The stream ends when the server ends it after a whole line. Inside a line it raises TransportError.
    - While an event arrives slowly, an empty list about once a second shows that the stream is alive.

    Owns the byte stream: close it with ``aclose``.

    Args:
        chunks: The body of a watch.
        longest_object: Largest allowed line in bytes. A longer one ends the stream with DecodeError.
        request: The request, for messages: ``"watch pods at resourceVersion 5"``.
    """

    pauses = True
    """Other tasks run between two batches: each chunk is awaited, and holds all that has arrived."""

    def __init__(
        self, chunks: ByteStream, longest_object: int = LONGEST_OBJECT, request: str = "watch"
    ) -> None:
        self._chunks = chunks
        self._request = request
        self._longest = longest_object
        self._parser: Lines | Frames | None = None
        self._events: Callable[[list[Span]], list[WatchEvent]] = decode_lines
        self._batches: deque[list[Span]] = deque()
        self._ended = False
        self._last_empty_batch: float | None = None  # loop time

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        try:
            while True:
                while self._batches:
                    await asyncio.sleep(0)
                    if events := self._events(self._batches.popleft()):
                        return events
                if self._ended:
                    raise StopAsyncIteration
                try:
                    chunk = await self._chunks.__anext__()
                except StopAsyncIteration:
                    self._ended = True
                    spans = [] if self._parser is None else self._parser.last()
                else:
                    if self._parser is None:
                        # A frame begins with its length; the first byte is 0 for every size that an API server stores.
                        self._parser = (Frames if chunk[0] == 0 else Lines)(self._longest)
                        self._events = self._parser.events
                    spans = self._parser.feed(chunk)
                if spans:
                    if len(spans) > LONGEST_BATCH:
                        self._keep_rest(spans)
                    if events := self._events(spans):
                        return events
                elif not self._ended and self._is_empty_batch_due():
                    return []
        except StopAsyncIteration:
            raise
        except Exception as error:
            raise_converted(error, self._request)

    async def aclose(self) -> None:
        """Close the connection. Idempotent."""
        self._ended = True
        self._batches.clear()
        await self._chunks.aclose()

    def _is_empty_batch_due(self) -> bool:
        """Whether to return an empty batch, now that part of an event has arrived."""
        now = asyncio.get_running_loop().time()
        if self._last_empty_batch is not None and now - self._last_empty_batch < EMPTY_BATCH_INTERVAL:
            return False
        self._last_empty_batch, is_first = now, self._last_empty_batch is None
        return not is_first

    def _keep_rest(self, spans: list[Span]) -> None:
        """Keep what is beyond one batch for the next ones."""
        rest = spans[LONGEST_BATCH:]
        del spans[LONGEST_BATCH:]
        self._batches.extend(
            rest[start : start + LONGEST_BATCH] for start in range(0, len(rest), LONGEST_BATCH)
        )
