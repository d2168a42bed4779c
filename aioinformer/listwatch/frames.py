"""A watch in protobuf: frames, each of them a length and an event (apimachinery ``NewLengthDelimitedFrameReader``)."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from ..errors import TransportError
from ..objects.meta import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    NO_EVENT,
    WatchEvent,
)
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

_HEADS = {
    type_.encode()[0]: (type_, head, len(head))
    for type_ in (ADDED, MODIFIED, DELETED, BOOKMARK)
    for head in (b"\n%c%b\x12" % (len(type_), type_.encode()),)
}
"""How a frame begins, by the first letter of the event's type: that in field 1, and the tag of field 2, the object."""

_NO_HEAD = (NO_EVENT, b"\0", 0)

_LENGTHS = 100
"""Bytes in which, behind the frame's head, there are the lengths of what the object is in, and its envelope's head."""

_TAIL = b'\x1a\0"\0'
"""How a frame ends: two fields of the object's envelope that are empty."""


class Frames:
    """Cuts chunks of a stream into frames, and reads the events in them.

    Args:
        longest: Bytes that a frame may have.
    """

    def __init__(self, longest: int = LONGEST_OBJECT) -> None:
        self._begun = Pending(_LENGTH.size + longest)
        self._longest = longest
        self._enough = 0  # bytes with which the frame that has begun is complete, or its length is known
        self._form: ProtobufForm | None = None

    def feed(self, chunk: bytes) -> list[Span]:
        """Where the frames that this chunk completes stand, without their lengths.

        Raises:
            DecodeError: A frame is too long.
        """
        if self._begun.size + len(chunk) < self._enough:
            self._begun.add(chunk)
            return []
        if self._begun.size:
            chunk = self._begun.take() + chunk
        frames: list[Span] = []
        at, size = 0, len(chunk)
        self._enough = _LENGTH.size
        while at + _LENGTH.size <= size:
            begin = at + _LENGTH.size
            end = begin + _LENGTH.unpack_from(chunk, at)[0]
            if end > size:
                self._enough = end - at
                if end - begin > self._longest:
                    del chunk  # whoever keeps the error keeps this frame
                    raise self._begun.too_long()
                break
            frames.append((chunk, begin, end))
            at = end
        if at < size:
            self._begun.add(chunk[at:])
        return frames

    def events(self, frames: Iterable[Span]) -> list[WatchEvent]:
        """The events of frames; of one that says none, NO_EVENT with the frame.

        Objects are KubeObjects; in place of one that cannot be read is the error, which who decodes it will raise. An
        ERROR's is its Status.
        """
        events: list[WatchEvent] = []
        for data, at, end in frames:
            try:
                events.append(self._usual_event(data, at, end) or self._event(data, at, end))
            except PROTOBUF_ERRORS:
                events.append(WatchEvent(NO_EVENT, data[at:end]))
        return events

    def last(self) -> list[Span]:
        """The last frames, of which there are none.

        Raises:
            TransportError: The stream ended within one.
        """
        rest = self._begun.take()
        if rest:
            size = len(rest)
            del rest  # whoever keeps the error keeps this frame
            raise TransportError(f"the stream was cut in the middle of an event, after {size} bytes of it")
        return []

    def _usual_event(self, data: bytes, at: int, end: int) -> WatchEvent | None:
        """That of a frame as API servers write it, of the kind that the last one was of: all is known but lengths."""
        type_, head, length = _HEADS.get(data[at + 2], _NO_HEAD)
        form, stop = self._form, end - len(_TAIL)
        if form is None or not data.startswith(head, at) or not data.startswith(_TAIL, stop):
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
        if begin + size != stop:
            return None
        return WatchEvent(type_, form.object_of(data[begin:stop]))

    def _event(self, data: bytes, at: int, end: int) -> WatchEvent:
        type_, begin, stop = read_event(data, at, end)
        envelope = read_envelope(data, begin, stop)
        if type_ == ERROR:
            return WatchEvent(ERROR, read_status(data, envelope))
        type_meta, begin, stop = envelope
        self._form = form_of(type_meta)
        return WatchEvent(type_, self._form.object_of(data[begin:stop]))
