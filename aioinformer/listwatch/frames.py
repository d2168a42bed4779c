"""Split a protobuf watch into frames, each a length and an event (apimachinery ``NewLengthDelimitedFrameReader``)."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from ..errors import TransportError
from ..objects.meta import ERROR, NO_EVENT, OBJECT_EVENTS, WatchEvent
from ..objects.protobuf import (
    PROTOBUF_ERRORS,
    ProtobufForm,
    form_of,
    long_number,
    read_envelope,
    read_event,
    read_status,
)
from .lines import LONGEST_OBJECT, Pending, Span

_LENGTH = Struct(">I")

_HEADS = {b"\n%c%b\x12" % (len(type_), type_.encode()): type_ for type_ in OBJECT_EVENTS}
"""The type of an event, by the usual beginning of its frame: the type in field 1, then field 2's tag."""

_LENGTHS = 100
"""Bytes after a frame's head that contain the lengths and the head of the object's envelope."""

_TAIL = b'\x1a\0"\0'
"""Usual end of a frame: two empty fields of the object's envelope."""
_TAIL_LENGTH = len(_TAIL)


class Frames:
    """Splits chunks of a stream into frames, and reads their events.

    Args:
        longest: Largest allowed frame in bytes.
    """

    def __init__(self, longest: int = LONGEST_OBJECT) -> None:
        self._pending = Pending(_LENGTH.size + longest)
        self._longest = longest
        self._enough = 0  # bytes until the current frame is complete, or its length is known
        self._form: ProtobufForm | None = None

    def feed(self, chunk: bytes) -> list[Span]:
        """Return the spans of the frames that this chunk completes, without their lengths.

        Raises:
            DecodeError: A frame is too long.
        """
        size = self._pending.size + len(chunk)
        if size < self._enough:
            self._pending.add(chunk)
            return []
        if self._pending.size:
            chunk = self._pending.take() + chunk
        frames: list[Span] = []
        at = 0
        self._enough = _LENGTH.size
        while at + _LENGTH.size <= size:
            begin = at + _LENGTH.size
            end = begin + _LENGTH.unpack_from(chunk, at)[0]
            if end > size:
                self._enough = end - at
                if end - begin > self._longest:
                    del chunk  # the error keeps this Python frame alive
                    raise self._pending.too_long()
                break
            frames.append((chunk, begin, end))
            at = end
        if at < size:
            self._pending.add(chunk[at:])
        return frames

    def events(self, frames: Iterable[Span]) -> list[WatchEvent]:
        """Return the events of frames; NO_EVENT with the frame for a frame without an event.

        Objects are KubeObjects. A DecodeError takes the place of an object that cannot be read; the codec raises it.
        The object of an ERROR is its Status.
        """
        events: list[WatchEvent] = []
        for data, at, end in frames:
            try:
                events.append(self._usual_event(data, at, end) or self._event(data, at, end))
            except PROTOBUF_ERRORS:
                events.append(WatchEvent(NO_EVENT, data[at:end]))
        return events

    def last(self) -> list[Span]:
        """Return the frames at the end of the stream: always none.

        Raises:
            TransportError: The stream ended inside a frame.
        """
        rest = self._pending.take()
        if rest:
            size = len(rest)
            del rest  # the error keeps this Python frame alive
            raise TransportError(f"the stream was cut in the middle of an event, after {size} bytes of it")
        return []

    def _usual_event(self, data: bytes, at: int, end: int) -> WatchEvent | None:
        """Return the event of a frame in the usual layout and of the last frame's kind; None for other frames."""
        form, stop, length = self._form, end - _TAIL_LENGTH, data[at + 1] + 3
        type_ = _HEADS.get(data[at : at + length])
        if type_ is None or form is None or not data.startswith(_TAIL, stop):
            return None
        begin = data.find(form.head, at + length, at + length + _LENGTHS)
        if begin < 0:
            return None
        begin += len(form.head)
        size = data[begin]
        begin += 1
        if size > 0x7F:
            size = size & 0x7F | data[begin] << 7
            begin += 1
            if size > 0x3FFF:
                size, begin = long_number(data, begin - 2)
        return WatchEvent(type_, form.object_of(data[begin:stop])) if begin + size == stop else None

    def _event(self, data: bytes, at: int, end: int) -> WatchEvent:
        type_, begin, stop = read_event(data, at, end)
        envelope = read_envelope(data, begin, stop)
        if type_ == ERROR:
            return WatchEvent(ERROR, read_status(data, envelope))
        type_meta, begin, stop = envelope
        self._form = form_of(type_meta)
        return WatchEvent(type_, self._form.object_of(data[begin:stop]))
