"""Envelopes around messages: ``runtime.Unknown`` behind the four magic bytes, lists, events of a watch."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from aioinformer.objects.protobuf import MAGIC
from aioinformer.objects.protobuf.wire import PIECE, write_varint
from aioinformer.testing.protobuf.marshal import marshaller
from aioinformer.testing.protobuf.values import piece, tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.objects.meta import WatchEventType
    from aioinformer.testing.objects import Object

_LENGTH = Struct(">I")

_TAIL = piece(3, b"") + piece(4, b"")
"""The end of an envelope: empty contentEncoding and contentType."""


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a message as a body."""
    return b"%b%b%b" % (_head(api_version, kind, len(message)), message, _TAIL)


def envelope_of_list(
    api_version: str, kind: str, metadata: Object, items: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield a list as a body in pieces: the part before the items, each item, the part after them.

    The first piece has the total length, so all items are encoded before it. An empty piece after each marks a pause.
    """
    first = piece(1, marshaller("meta/v1.ListMeta")(metadata))
    pieces: list[bytes] = []
    for item in items:
        pieces.append(piece(2, item))
        yield b""
    yield _head(api_version, kind, len(first) + sum(map(len, pieces))) + first
    yield from pieces
    yield _TAIL


def frame(kind: WatchEventType, body: bytes) -> bytes:
    """Return an event of a watch: its length, then a ``metav1.WatchEvent`` with the object in an envelope."""
    event = piece(1, kind.encode()) + piece(2, piece(1, body))
    return _LENGTH.pack(len(event)) + event


def _head(api_version: str, kind: str, length: int) -> bytes:
    type_meta = piece(1, piece(1, api_version.encode()) + piece(2, kind.encode()))
    return b"%b%b%b%b" % (MAGIC, type_meta, tag(2, PIECE), write_varint(length))
