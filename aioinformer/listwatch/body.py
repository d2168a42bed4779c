"""The body of a LIST, taken apart while it arrives.

A real API server ignores ``limit`` at resourceVersion "0": 100,000 pods come as one body of 660 MB. It is never
held whole, and never parsed in one go: whenever enough has arrived, the items that are complete are cut off.
"""

from __future__ import annotations

import re

import msgspec

from ..api import ListResult, TypeMeta
from ..errors import DecodeError, TransportError
from ..objects import DECODE_ERRORS

PIECE = 256 * 1024
"""Bytes that are taken apart at once: a quarter of a millisecond's work."""

_TRIES = 8
_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_ITEM = re.compile(rb'\s*(\{\s*(?:"(?:apiVersion|kind)"\s*:\s*"[^"\\]*"\s*,\s*)*"[^"\\]*"\s*:)')
_SPACE = b" \t\r\n"


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    continue_token: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None

    @property
    def type_meta(self) -> TypeMeta | None:
        """Of the items; a generic ``List`` says nothing about them."""
        kind = self.kind.removesuffix("List")
        return TypeMeta(self.api_version, kind) if kind and kind != self.kind else None


_decode_list = msgspec.json.Decoder(_List).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class ListBodySplitter:
    """Takes chunks of a LIST's body and gives its items, as bytes, in pieces.

    The end of an item is guessed, at the last ``},`` that is followed by what the first item begins with, and then
    checked: what lies before it must parse as a sequence of whole values, which a guess inside of an item cannot.
    After a wrong guess earlier ones are tried, a bounded number, and then more bytes awaited. So every layout of
    JSON gives the same items; an unusual one may make the pieces larger, up to the whole body.

    The bytes of items are copies: a cached object does not keep a body alive.
    """

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._enough = PIECE
        self._head = b""
        self._item_begin = b""
        self._type_meta: TypeMeta | None = None

    def feed(self, chunk: bytes) -> ListResult | None:
        """Take a chunk; a piece if that completes one. Versions and tokens are on the last piece only."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size < self._enough:
            return None
        data = b"".join(self._chunks)
        if not self._head:
            data = self._take_head(data)
        items, end = self._cut(data) if self._item_begin else ([], 0)
        rest = data[end:]
        self._chunks = [rest]
        self._size = len(rest)
        # After a vain search twice as much must come before the next: all of them cost no more than the last.
        self._enough = PIECE + len(rest) if items else 2 * len(rest)
        return ListResult(items, type_meta=self._type_meta) if items else None

    def close(self) -> ListResult:
        """The last piece: what items are left, the collection's version and the continue token.

        Raises:
            TransportError: The body breaks off.
            DecodeError: It is not a list that can be watched.
        """
        body = b"".join((self._head, *self._chunks))
        self._chunks.clear()
        try:
            parsed = _decode_list(body)
        except DECODE_ERRORS as error:
            if not body or "truncated" in str(error):
                raise TransportError(f"the answer breaks off after {body[-80:]!r}") from error
            raise DecodeError(f"the answer is not a list: {error}; it begins {body[:80]!r}") from error
        if parsed.kind == "Table":
            raise DecodeError("the answer is a Table, not a list of objects")
        if parsed.metadata is None or not parsed.metadata.resource_version:
            raise DecodeError(f"the answer is not a list with a resourceVersion; it begins {body[:80]!r}")
        return ListResult(
            [bytes(item) for item in parsed.items or ()],
            parsed.metadata.resource_version,
            parsed.metadata.continue_token,
            parsed.type_meta,
        )

    def _take_head(self, data: bytes) -> bytes:
        """Find where the items begin, and how; what comes after the head."""
        items = _ITEMS.search(data)
        first = _ITEM.match(data, items.end()) if items else None
        if items is None or first is None:
            return data
        head = data[: items.end()]
        try:
            parsed = _decode_list(head + b"]}")
        except DECODE_ERRORS:
            return data  # these are the items of something inside; all is parsed at the end
        self._head = head
        self._type_meta = parsed.type_meta
        self._item_begin = first[1]
        return data[items.end() :]

    def _cut(self, data: bytes) -> tuple[list[bytes], int]:
        """The complete items at the beginning of data, and where the next one begins."""
        before, step = len(data), PIECE // 64
        for attempt in range(_TRIES):
            begin = data.rfind(self._item_begin, 1, before)
            if begin < 0:
                break
            end = _end_of_previous(data, begin)
            if end > 0:
                try:
                    raws = _decode_items(b"".join((b"[", memoryview(data)[:end], b"]")))
                except DECODE_ERRORS:
                    pass
                else:
                    return [bytes(raw) for raw in raws], begin
            before = begin if attempt == 0 else begin - step
            step *= 2
        return [], 0


def _end_of_previous(data: bytes, begin: int) -> int:
    """Where the object before the one that begins here has ended, if only a comma lies between; else 0."""
    position = begin - 1
    while position > 0 and data[position] in _SPACE:
        position -= 1
    if data[position] != 0x2C:  # ,
        return 0
    position -= 1
    while position > 0 and data[position] in _SPACE:
        position -= 1
    return position + 1 if data[position] == 0x7D else 0  # }
