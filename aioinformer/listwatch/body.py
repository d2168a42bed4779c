"""Split the JSON body of a LIST into its items while it arrives.

A real API server ignores ``limit`` at resourceVersion "0": 100,000 pods come as one body of 660 MB. The splitter
never holds all of it and never parses it in one go: it cuts off the complete items each time enough bytes have arrived.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import msgspec

from ..errors import ApiError, DecodeError, TransportError
from ..objects.decoders import FromBytes
from ..objects.excerpts import begins
from ..objects.kube_object import KubeObject
from ..objects.meta import ListResult, TypeMeta
from ..objects.nesting import DECODE_ERRORS, decode_object, end_of_brackets
from .lines import LONGEST_OBJECT, Pending

PIECE = 128 * 1024
"""Bytes to collect before splitting: half a millisecond's work. One read from a socket gives at most twice as many."""

FAR = 16
"""The search for the next item's end covers this many times the last item's bytes."""

NEAR = 29_000
"""Bytes that CPython searches twice as fast: from 30,000 on it switches to an algorithm for larger texts."""

TRIES = 5
"""Boundaries that may be inside an item before its brackets are counted."""

LONGEST_BEGINNING = 32
"""Bytes in which an item's first field is named."""

_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_COMMA = re.compile(rb"\s*,\s*")
_END_OF_LIST = re.compile(rb"\s*\]")


class _ShardInfo(msgspec.Struct):
    selector: str | None = None


class _ListMeta(msgspec.Struct):
    # some servers write null for an empty field
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    continue_token: str | None = msgspec.field(name="continue", default=None)
    shard_info: _ShardInfo | None = msgspec.field(name="shardInfo", default=None)

    @property
    def shard_selector(self) -> str:
        """The shard selector that the server has applied; ``""`` for none."""
        return "" if self.shard_info is None else self.shard_info.selector or ""


class _List(msgspec.Struct):
    api_version: str | None = msgspec.field(name="apiVersion", default=None)
    kind: str | None = None
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None

    @property
    def type_meta(self) -> TypeMeta | None:
        """The items' apiVersion and kind; None for a generic ``List``, which does not name them."""
        list_kind = self.kind or ""
        kind = list_kind.removesuffix("List")
        return TypeMeta(self.api_version or "", kind) if kind and kind != list_kind else None


_decode_list = msgspec.json.Decoder(_List).decode
_decode_only_item = msgspec.json.Decoder(tuple[msgspec.Raw]).decode


class ListBodySplitter:
    """Takes chunks of a LIST's body and returns its items, as bytes, in pieces.

    - Items of one list begin alike. So an item probably ends where a comma and the same beginning follow. If
      ``read_item`` can read the bytes up to there, they are the item.
    - Otherwise msgspec checks the next few such places. After that the item's brackets are counted, which takes 5 to
      50 ms for each megabyte, so an item that is only incomplete is left alone.
    - After a search that finds no complete item, the next search waits until twice as many bytes have arrived.
    - An item that msgspec cannot parse (malformed or nested too deeply) is cut off by its brackets. Its decoder drops
      it later; the other items are read.
    - If the items are not where they are expected, ``close`` parses the whole body at once. No item is lost.

    Items are copies of the bytes: a cached object does not keep a body alive. apiVersion and kind that come after the
    items are ignored if items were returned before.

    Args:
        longest_object: Largest allowed item, in bytes. The rest of the body must be shorter, too.
        read_item: Reads an item whose end is a guess. The piece contains its result; without it the piece contains
            bytes.
    """

    def __init__(self, longest_object: int = LONGEST_OBJECT, read_item: FromBytes | None = None) -> None:
        self._read_item = read_item or _check
        self._pending = Pending(longest_object)
        self._received = 0
        self._enough = PIECE  # bytes to collect before the next search
        self._head = b""
        self._type_meta: TypeMeta | None = None
        self._longest = longest_object
        self._shortest = LONGEST_OBJECT  # bytes of the shortest item so far
        self._last = LONGEST_OBJECT  # bytes of the last item

    def feed(self, chunk: bytes) -> ListResult | None:
        """Take a chunk; return a piece if one is complete. Only ``close`` returns version and continue token.

        Raises:
            DecodeError: An item, or another part of the body, is longer than ``longest_object``.
        """
        self._received += len(chunk)
        if self._pending.size + len(chunk) < min(self._enough, self._longest):
            self._pending.add(chunk)
            return None
        data = self._pending.take() + chunk
        if not self._head:
            data = self._take_head(data)
        piece, end = None, 0
        if self._head:
            data = data.lstrip()
            piece, end = self._complete_items(data)
        rest = data[end:]
        if len(rest) > self._longest:
            del chunk, data, rest, piece  # the error keeps this frame alive
            raise self._pending.too_long()
        self._pending.add(rest)
        # Doubling after a search without result: all searches together cost no more than the last one.
        self._enough = len(rest) + PIECE if piece is not None else 2 * len(rest)
        return piece

    def close(self) -> ListResult:
        """Return the last piece: the remaining items, the collection's version and the continue token.

        Raises:
            TransportError: The body is incomplete.
            ApiError: The body is a Status with an error.
            DecodeError: The body is not a list: it has neither a list's kind nor a resourceVersion, or it is a single
                object.
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
            breaks_off, beginning = _breaks_off(body), begins(body)
            del body, rest, piece  # the error keeps this frame alive
            if breaks_off:
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
                metadata.shard_selector,
            )
        beginning = begins(body)
        del body, rest, piece, parsed  # the error keeps this frame alive
        raise failure or DecodeError(f"the answer is not a list with a resourceVersion; {beginning}")

    def _take_head(self, data: bytes) -> bytes:
        """Keep everything before the first item as the head; return the rest. Return data if there is no such place."""
        items = _ITEMS.search(data)
        if items is None:
            return data
        head = data[: items.end()]
        try:
            parsed = _decode_list(head + b"]}")
        except DECODE_ERRORS:
            return data  # items of a nested field; close() parses the whole body
        if parsed.items is None:
            return data  # these words are part of a name; likewise
        self._head = head
        self._type_meta = parsed.type_meta
        return data[items.end() :]

    def _complete_items(self, data: bytes, *, is_all: bool = False) -> tuple[ListResult | None, int]:
        """Return the complete items at the beginning of data, if any, and where the rest begins.

        Args:
            data: Items, from the beginning of an item on.
            is_all: Whether the body has ended. Then an item without an end is malformed, and the list's last item is
                complete, too.
        """
        items: list[Any] = []
        begin = 0
        beginning = data[: data.find(b":", 0, LONGEST_BEGINNING) + 1]
        between = b"}," + beginning
        boundary = re.compile(rb"}\s*,\s*" + re.escape(beginning))
        while True:
            # Skip three quarters of the shortest item so far: a boundary before that is probably inside the item.
            # Limit the search: without a limit it would scan all the rest for each item that has no such boundary.
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
            maybe_next = data.find(beginning, begin + 1) >= 0  # much faster than the regular expression
            end = _probable_end(data, begin, boundary) if maybe_next else 0
            # Without an end the item is incomplete. But if another item seems to follow, count its brackets.
            if not end:
                has_next = (maybe_next and boundary.search(data, begin)) or _starts_with_item(data[begin:])
                end = end_of_brackets(data, begin) if is_all or has_next else 0
            comma = _COMMA.match(data, end) if end else None
            if comma is None and not (is_all and end and _END_OF_LIST.match(data, end)):
                break
            items.append(data[begin:end])
            self._last = end - begin
            self._shortest = min(self._shortest, self._last)
            begin = end if comma is None else comma.end()
        return (ListResult(items, type_meta=self._type_meta) if items else None), begin


def _probable_end(data: bytes, begin: int, boundary: re.Pattern[bytes]) -> int:
    """Return where the item at ``begin`` ends, if that is at one of the next boundaries; 0 otherwise."""
    for match in islice(boundary.finditer(data, begin), TRIES):
        end = match.start() + 1
        try:
            _decode_only_item(b"[%b]" % data[begin:end])
        except DECODE_ERRORS:
            continue
        return end
    return 0


def _starts_with_item(data: bytes) -> bool:
    """Whether a complete item and a comma come first. msgspec finds a second item in place of the only one then."""
    try:
        _decode_only_item(b"[%b,1" % data)
    except msgspec.ValidationError:
        return True
    except DECODE_ERRORS:
        pass
    return False


def _breaks_off(body: bytes) -> bool:
    """Whether a body that cannot be decoded ends inside its value."""
    begin = len(body) - len(body.lstrip())
    return begin == len(body) or (body[begin] in b"{[" and not end_of_brackets(body, begin))


def _check(item: bytes, type_meta: TypeMeta | None) -> bytes:
    """Return the item as it is, if it is an object."""
    KubeObject.from_bytes(item, type_meta)
    return item


def _failure_of(kind: str | None, body: bytes) -> ApiError | DecodeError | None:
    """Return the error that a Table or a Status stands for; None for other kinds."""
    if kind == "Table":
        return DecodeError("the answer is a Table, not a list of objects")
    if kind != "Status":
        return None
    try:
        return ApiError.from_status(decode_object(body))
    except DECODE_ERRORS as error:
        return DecodeError(f"the answer is a Status that cannot be read: {error}")
