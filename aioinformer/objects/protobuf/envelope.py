"""The envelope of an object: four magic bytes and a message with its kind (``runtime.Unknown``).

In a watch an event contains the envelope (``metav1.WatchEvent``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..meta import TypeMeta
from .messages import message
from .wire import PIECE, PROTOBUF_ERRORS, WireError, long_number, pieces

MAGIC = b"k8s\x00"
"""The first bytes of every envelope."""

_TYPE_META, _RAW, _CONTENT_ENCODING = (number << 3 | PIECE for number in (1, 2, 3))
_API_VERSION, _KIND = (number << 3 | PIECE for number in (1, 2))
_VERSION, _CONTINUE = (number << 3 | PIECE for number in (2, 3))
_SHARD_INFO, _SHARD_SELECTOR = (number << 3 | PIECE for number in (5, 1))
_EVENT_TYPE, _EVENT_OBJECT = (number << 3 | PIECE for number in (1, 2))
_EXTENSION_RAW = 1 << 3 | PIECE


class Envelope(NamedTuple):
    """The position of an object in its envelope.

    Args:
        type_meta: apiVersion and kind.
        begin: The object's first byte.
        end: The byte after it.
    """

    type_meta: TypeMeta
    begin: int
    end: int


def head_of(type_meta: TypeMeta) -> bytes:
    """Return the envelope's bytes of a kind before the object's length."""
    fields = b"".join(
        b"%c%c%b" % (tag, len(text), text.encode())
        for tag, text in zip((_API_VERSION, _KIND), type_meta, strict=True)
    )
    return b"%b%c%c%b%c" % (MAGIC, _TYPE_META, len(fields), fields, _RAW)


def read_envelope(data: bytes, at: int, end: int) -> Envelope:
    """Read the envelope between two offsets.

    Raises:
        WireError, IndexError, ValueError: It is not an envelope.
    """
    if not data.startswith(MAGIC, at):
        raise WireError(f"it does not begin as Kubernetes' protobuf does, but with {data[at : at + 20]!r}")
    places: dict[int, tuple[int, int]] = {}
    for tag, begin, stop in pieces(data, at + len(MAGIC), end):
        places[tag] = begin, stop
    begin, stop = places.get(_CONTENT_ENCODING, (0, 0))
    if begin < stop:
        raise WireError(f"it is encoded as {data[begin:stop]!r}, which was not requested")
    type_meta = _type_meta(data, *places.get(_TYPE_META, (end, end)))
    return Envelope(type_meta, *places.get(_RAW, (end, end)))


def read_head(data: bytes) -> Envelope:
    """Read the envelope of an object whose end may not have arrived yet.

    Raises:
        WireError, IndexError, ValueError: It is not an envelope, or too few bytes.
    """
    if not data.startswith(MAGIC):
        raise WireError(f"it does not begin as Kubernetes' protobuf does, but with {data[:20]!r}")
    type_meta, end = TypeMeta("", ""), len(MAGIC)
    while True:
        tag, at = long_number(data, end)
        size, begin = long_number(data, at)
        end = begin + size
        if tag == _RAW:
            return Envelope(type_meta, begin, end)
        if tag & 7 != PIECE or end > len(data):
            raise WireError("it does not begin with its kind")
        if tag == _TYPE_META:
            type_meta = _type_meta(data, begin, end)


def read_list_meta(data: bytes, at: int, end: int) -> tuple[str, str]:
    """Read resourceVersion and continue token of a list (``metav1.ListMeta``).

    Raises:
        WireError, IndexError, ValueError: It is not a ListMeta.
    """
    texts = {tag: data[begin:stop] for tag, begin, stop in pieces(data, at, end)}
    return texts.get(_VERSION, b"").decode(), texts.get(_CONTINUE, b"").decode()


def read_shard_selector(data: bytes, at: int, end: int) -> str:
    """Read the selector in the shardInfo of a list (``metav1.ListMeta``); ``""`` if it has none."""
    for tag, begin, stop in pieces(data, at, end):
        if tag == _SHARD_INFO:
            for inner, first, last in pieces(data, begin, stop):
                if inner == _SHARD_SELECTOR:
                    return data[first:last].decode()
    return ""


def read_event(data: bytes, at: int, end: int) -> tuple[str, int, int]:
    """Read an event between two offsets; return its type, and begin and end of the envelope in it.

    Raises:
        WireError, IndexError, ValueError: It is not an event.
    """
    places = {tag: (begin, stop) for tag, begin, stop in pieces(data, at, end)}
    begin, stop = places.get(_EVENT_TYPE, (end, end))
    type_ = data[begin:stop].decode()
    begin = stop = end
    for tag, *place in pieces(data, *places.get(_EVENT_OBJECT, (end, end))):
        if tag == _EXTENSION_RAW:
            begin, stop = place
    return type_, begin, stop


def read_status(data: bytes, envelope: Envelope) -> dict[str, Any]:
    """Return the Status in an envelope as decoded JSON.

    Raises:
        WireError, IndexError, ValueError: It is not a Status.
    """
    type_meta, begin, end = envelope
    if type_meta.kind != "Status":
        raise WireError(f"a {type_meta.kind} is no Status")
    return {
        "kind": "Status",
        "apiVersion": type_meta.api_version,
        **message("meta/v1.Status").read(data, begin, end),
    }


def status_of(body: bytes) -> dict[str, Any] | None:
    """Return the Status of a protobuf body; None for other bodies."""
    try:
        return read_status(body, read_envelope(body, 0, len(body)))
    except PROTOBUF_ERRORS:
        return None


def _type_meta(data: bytes, at: int, end: int) -> TypeMeta:
    names = {tag: data[begin:stop].decode() for tag, begin, stop in pieces(data, at, end)}
    return TypeMeta(names.get(_API_VERSION, ""), names.get(_KIND, ""))
