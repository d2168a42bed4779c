"""The body of a LIST, taken apart while it arrives.

A real API server ignores ``limit`` at resourceVersion "0": 100,000 pods come as one body of 660 MB. It is never
held whole, and never parsed in one go: whenever enough has arrived, the items that are complete are cut off.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..errors import ApiError, DecodeError, TransportError
from ..objects.decoders import FromBytes
from ..objects.excerpts import begins
from ..objects.kube_object import KubeObject
from ..objects.meta import ListResult, TypeMeta
from ..objects.nesting import DECODE_ERRORS, end_of_brackets
from .lines import LONGEST_OBJECT, Pending

PIECE = 128 * 1024
"""Bytes that are worth being taken apart. What a socket gives at once has twice as many at most, and is not to wait for
more: half a millisecond's work."""

FAR = 16
"""Times the last item's bytes within which the next one's end is looked for."""

NEAR = 29_000
"""Bytes in which CPython looks for some bytes in half the time: from 30,000 on by an algorithm for larger ones."""

LONGEST_BEGINNING = 32
"""Bytes in which an item's first field is named."""

_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_COMMA = re.compile(rb"\s*,\s*")
_END_OF_LIST = re.compile(rb"\s*\]")
_END_OF_VALUE = re.compile(r"trailing characters \(byte (\d+)\)")


class _ListMeta(msgspec.Struct):
    # null is what some servers write for an empty field
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    continue_token: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct):
    api_version: str | None = msgspec.field(name="apiVersion", default=None)
    kind: str | None = None
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None

    @property
    def type_meta(self) -> TypeMeta | None:
        """Of the items; a generic ``List`` says nothing about them."""
        list_kind = self.kind or ""
        kind = list_kind.removesuffix("List")
        return TypeMeta(self.api_version or "", kind) if kind and kind != list_kind else None


_decode_list = msgspec.json.Decoder(_List).decode
_decode_value = msgspec.json.Decoder(msgspec.Raw).decode


class ListBodySplitter:
    """Takes chunks of a LIST's body and gives its items, as bytes, in pieces.

    What is complete is cut off. The items of a list begin alike, so that an item's end is probably where a comma and
    such a beginning follow; if all up to there can be read as an object it is one, and has been read. Else msgspec is
    asked to decode what begins with the item and goes on after it: it scans the item and says where it ends. An item
    that is incomplete is scanned once more, when twice as much has come. Should a msgspec say it in other words, or a
    body have its items where nobody looks for them, all is parsed at the end instead: nothing gets lost but the
    gentleness. An item that msgspec cannot parse, as it is malformed or nested too deeply, is cut off by its brackets:
    who decodes it will drop it, and take the others.

    The bytes of items are copies: a cached object does not keep a body alive. What a body in pieces says behind its
    items of their kind comes too late, and is true of none.

    Args:
        longest_object: Bytes that an item may have; all else must be shorter, too.
        read_item: Of the options. Items that have to be read are what it makes of them; all are bytes without it.
    """

    def __init__(self, longest_object: int = LONGEST_OBJECT, read_item: FromBytes | None = None) -> None:
        self._read_item = read_item or _checked
        self._pending = Pending(longest_object)
        self._received = 0
        self._enough = PIECE
        self._head = b""
        self._type_meta: TypeMeta | None = None
        self._longest = longest_object
        self._shortest = LONGEST_OBJECT  # item so far
        self._last = LONGEST_OBJECT  # bytes of the last item

    def feed(self, chunk: bytes) -> ListResult | None:
        """Take a chunk; a piece if that completes one. Versions and tokens are on the last piece only.

        Raises:
            DecodeError: An item, or whatever else it is, does not end.
        """
        self._received += len(chunk)
        if self._pending.size + len(chunk) < min(self._enough, self._longest):
            self._pending.add(chunk)
            return None
        data = self._pending.take() + chunk  # of which it is the rest that may be too long
        if not self._head:
            data = self._take_head(data)
        piece, end = None, 0
        if self._head:
            data = data.lstrip()
            piece, end = self._complete_items(data)
        rest = data[end:]
        if len(rest) > self._longest:
            del chunk, data, rest, piece  # whoever keeps the error keeps this frame
            raise self._pending.too_long()
        self._pending.add(rest)
        # After a vain search twice as much must come before the next: all of them cost no more than the last.
        self._enough = len(rest) + PIECE if piece is not None else 2 * len(rest)
        return piece

    def close(self) -> ListResult:
        """The last piece: what items are left, the collection's version and the continue token.

        Raises:
            TransportError: The body breaks off.
            ApiError: It is a Status that says what went wrong.
            DecodeError: It is not a list: it has neither the kind of one nor a resourceVersion, or is one object.
        """
        rest = self._pending.take()
        body = self._head + rest
        piece: ListResult | None = None
        try:
            try:
                parsed = _decode_list(body)
            except DECODE_ERRORS:
                rest = rest if self._head else self._take_head(rest)
                if not self._head:
                    raise
                rest = rest.lstrip()
                piece, end = self._complete_items(rest, is_all=True)
                parsed = _decode_list(self._head + rest[end:])
        except DECODE_ERRORS as error:
            object_without_end = body.lstrip().startswith(b"{") and not body.rstrip().endswith(b"}")
            if _END_OF_VALUE.search(str(error)):
                object_without_end = False  # something follows the list
            beginning = begins(body)
            del body, rest, piece  # whoever keeps an error keeps this frame
            if object_without_end or "truncated" in str(error):
                raise TransportError(f"the answer breaks off after {self._received} bytes") from error
            raise DecodeError(f"the answer is not a list: {error}; {beginning}") from error
        metadata, failure = parsed.metadata or _ListMeta(), _failure_of(parsed.kind, body)
        is_object = parsed.kind and parsed.items is None
        is_list = (parsed.kind or "").endswith("List") or (metadata.resource_version and not is_object)
        if is_list and failure is None:
            return ListResult(
                [*(piece.items if piece is not None else ()), *(bytes(item) for item in parsed.items or ())],
                metadata.resource_version or "",
                metadata.continue_token or "",
                self._type_meta if self._head else parsed.type_meta,
            )
        beginning = begins(body)
        del body, rest, piece, parsed
        raise failure or DecodeError(f"the answer is not a list with a resourceVersion; {beginning}")

    def _take_head(self, data: bytes) -> bytes:
        """Find where the items begin; what comes after the head."""
        items = _ITEMS.search(data)
        if items is None:
            return data
        head = data[: items.end()]
        try:
            parsed = _decode_list(head + b"]}")
        except DECODE_ERRORS:
            return data  # these are the items of something inside; all is parsed at the end
        if parsed.items is None:
            return data  # so is what has these words in a name
        self._head = head
        self._type_meta = parsed.type_meta
        return data[items.end() :]

    def _complete_items(self, data: bytes, *, is_all: bool = False) -> tuple[ListResult | None, int]:
        """The items at the beginning of data that are complete, if any, and where what is left begins.

        Args:
            data: Items, from the beginning of one on.
            is_all: Whether no more comes: what seems to be incomplete is malformed then, and the list's last item is
                complete, too.
        """
        items: list[Any] = []
        view, begin = memoryview(data), 0
        between = b"}," + data[: data.find(b":", 0, LONGEST_BEGINNING) + 1]
        while True:
            # An item that is much shorter than all before it is not missed: what seems to be it cannot be read.
            # Nor is one looked for far away: that would go through all the rest for each of those before it.
            reach = min(FAR * self._last, max(2 * self._last, NEAR))
            probable = data.find(between, begin + self._shortest // 4 * 3, begin + reach)
            if probable >= 0:
                item = data[begin : probable + 1]
                try:
                    items.append(self._read_item(item, self._type_meta))
                except DecodeError:
                    pass
                else:
                    self._last = probable + 1 - begin
                    self._shortest = min(self._shortest, self._last)
                    begin = probable + 2
                    continue
            end, comma = 0, None
            try:
                _decode_value(view[begin:])
            except RecursionError:
                end = end_of_brackets(data, begin)
            except DECODE_ERRORS as error:
                if found := _END_OF_VALUE.search(str(error)):
                    end = begin + int(found[1]) - 1
                elif is_all or "truncated" not in str(error):
                    end = end_of_brackets(data, begin)
            if end:
                comma = _COMMA.match(data, end)
            if comma is None and not (is_all and end and _END_OF_LIST.match(data, end)):
                break
            items.append(data[begin:end].rstrip())
            self._last = end - begin
            self._shortest = min(self._shortest, self._last)
            begin = end if comma is None else comma.end()
        return (ListResult(items, type_meta=self._type_meta) if items else None), begin


def _checked(item: bytes, type_meta: TypeMeta | None) -> bytes:
    """An item as it is, if it is an object."""
    KubeObject.from_bytes(item, type_meta)
    return item


def _failure_of(kind: str | None, body: bytes) -> ApiError | DecodeError | None:
    """What an answer of a kind that is no list's says."""
    if kind == "Table":
        return DecodeError("the answer is a Table, not a list of objects")
    if kind != "Status":
        return None
    try:
        return ApiError.from_status(msgspec.json.decode(body, type=dict))
    except DECODE_ERRORS as error:
        return DecodeError(f"the answer is a Status that cannot be read: {error}")
