"""Reduce objects to their metadata (PartialObjectMetadata, client-go ``metadata``).

The server does that if asked. Some aggregated servers cannot and send whole objects. This module reduces those, so that
the cache does not depend on the server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import msgspec

from ..objects.decoders import FromBytes, without_rest
from ..objects.meta import (
    ERROR,
    NO_EVENT,
    PARTIAL_KIND,
    ListResult,
    TypeMeta,
    WatchEvent,
)
from ..objects.nesting import DECODE_ERRORS, reader_of

_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _Object(msgspec.Struct):
    metadata: msgspec.Raw
    kind: str | None = None


_read = reader_of(_Object)


def partial_object(raw: bytes) -> bytes:
    """Return an object with only its metadata; bytes that are not an object, or are reduced, stay as they are."""
    if raw.startswith(_HEAD):
        return raw
    try:
        fields = _read(raw)
    except DECODE_ERRORS:
        alone = without_rest(raw)
        return raw if alone is None else partial_object(alone)  # its decoder reports the error
    return raw if fields.kind == PARTIAL_KIND else _HEAD + bytes(fields.metadata) + b"}"


def partial_list(piece: ListResult) -> ListResult:
    """Return a piece of a list with reduced items."""
    if _is_partial(piece.type_meta):
        return piece
    return replace(
        piece, items=[partial_object(item) if type(item) is bytes else item for item in piece.items]
    )


def read_partial(read_item: FromBytes | None) -> FromBytes | None:
    """Return a function that reduces an item and then reads it."""
    if read_item is None:
        return None

    def read(raw: bytes, type_meta: TypeMeta | None) -> Any:
        return read_item(raw if _is_partial(type_meta) else partial_object(raw), type_meta)

    return read


def _is_partial(type_meta: TypeMeta | None) -> bool:
    return type_meta is not None and type_meta.kind == PARTIAL_KIND


class PartialStream:
    """A watch that reduces its objects."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self.pauses = getattr(events, "pauses", False)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        return [
            WatchEvent(event.type, partial_object(event.object))
            if event.type not in (ERROR, NO_EVENT) and type(event.object) is bytes
            else event
            for event in await self._events.__anext__()
        ]

    async def aclose(self) -> None:
        """Close the watch."""
        await self._events.aclose()
