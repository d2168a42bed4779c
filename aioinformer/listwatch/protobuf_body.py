"""Split the protobuf body of a LIST into its items while it arrives."""

from __future__ import annotations

from math import inf
from typing import Any

from ..errors import AioInformerError, ApiError, DecodeError, TransportError
from ..objects.meta import ListResult, TypeMeta
from ..objects.protobuf import (
    MAGIC,
    PIECE,
    PROTOBUF_ERRORS,
    ProtobufForm,
    form_of,
    long_number,
    read_envelope,
    read_head,
    read_list_meta,
    read_shard_selector,
    status_of,
)
from .lines import LONGEST_OBJECT, Pending

HEAD = 1024
"""Bytes that contain a list's kind and length."""

_META, _ITEM = 1 << 3 | PIECE, 2 << 3 | PIECE


class ProtobufListSplitter:
    """Takes chunks of a LIST's body and returns its items, KubeObjects, in pieces. As ``ListBodySplitter`` for JSON.

    A DecodeError takes the place of an item that cannot be read; the codec raises it.

    Args:
        longest_object: Largest allowed item, in bytes. The rest of the body must be shorter, too.
    """

    def __init__(self, longest_object: int = LONGEST_OBJECT) -> None:
        self._pending = Pending(HEAD + longest_object)
        self._longest = longest_object
        self._received = 0
        self._enough: float = 0  # pending bytes needed before the next search
        self._form: ProtobufForm | None = None  # the items' form, once it is known
        self._remaining = 0  # bytes of the list that have not been read
        self._version = self._continue = self._shard_selector = ""

    def feed(self, chunk: bytes) -> ListResult | None:
        """Take a chunk; return the items that it completes. Only ``close`` returns version and continue token.

        Raises:
            DecodeError: The body is not a list, or of an unknown kind; or an item is longer than ``longest_object``.
        """
        self._received += len(chunk)
        if self._pending.size + len(chunk) < self._enough:
            self._pending.add(chunk)
            return None
        data, begin = self._pending.take() + chunk, 0
        if self._form is None:
            begin = self._take_head(data)
        if self._form is None:
            self._pending.add(data)
            return None
        items: list[Any] = []
        try:
            end = self._take_fields(self._form, data, begin, items)
        except PROTOBUF_ERRORS as error:
            raise DecodeError(f"the answer is not a list: {error}") from error
        if self._remaining:
            self._pending.add(data[end:])
        return ListResult(items, type_meta=self._form.type_meta) if items else None

    def close(self) -> ListResult:
        """Return the last piece: the collection's version and the continue token.

        Raises:
            TransportError: The body is incomplete.
            ApiError: The body is a Status with an error.
            DecodeError: The body is not a list.
        """
        body = self._pending.take()
        if self._form is None:
            raise self._not_a_list(body)
        if self._remaining:
            raise self._incomplete()
        return ListResult(
            (), self._version, self._continue, self._form.type_meta, shard_selector=self._shard_selector
        )

    def _take_head(self, data: bytes) -> int:
        """Find the list's kind; return where its fields begin. A body that is not a list is collected until its end."""
        self._enough = inf
        try:
            (api_version, kind), begin, end = read_head(data)
        except PROTOBUF_ERRORS:
            if len(data) < HEAD:
                self._enough = 0
            return 0
        if kind.endswith("List"):
            self._form = form_of(TypeMeta(api_version, kind.removesuffix("List")))
            self._remaining = end - begin
        return begin

    def _take_fields(self, form: ProtobufForm, data: bytes, at: int, items: list[Any]) -> int:
        """Read the complete fields of the list; return where the rest begins."""
        self._enough = 0
        while self._remaining:
            try:
                tag, begin = long_number(data, at)
                size, begin = long_number(data, begin)
            except IndexError:
                break  # tag and size are incomplete
            end = begin + size
            if tag & 7 != PIECE or end - at > self._remaining:
                raise DecodeError(f"the answer is not a list: it has no such field as {data[at : at + 20]!r}")
            if end > len(data):
                self._enough = end - at
                if size > self._longest:
                    del data, items  # the error keeps this frame alive
                    raise self._pending.too_long()
                break
            if tag == _ITEM:
                items.append(form.object_of(data[begin:end]))
            elif tag == _META:
                self._version, self._continue = read_list_meta(data, begin, end)
                self._shard_selector = read_shard_selector(data, begin, end)
            self._remaining -= end - at
            at = end
        return at

    def _not_a_list(self, body: bytes) -> AioInformerError:
        """Return the error for an answer that is not a list."""
        if (status := status_of(body)) is not None:
            return ApiError.from_status(status)
        try:
            kind = read_envelope(body, 0, len(body)).type_meta.kind
        except PROTOBUF_ERRORS as error:
            has_begun = body.startswith(MAGIC) or MAGIC.startswith(body)
            return self._incomplete() if has_begun else DecodeError(f"the answer is not a list: {error}")
        is_list = not kind or kind.endswith("List")  # a list's envelope without its content
        return self._incomplete() if is_list else DecodeError(f"the answer is a {kind}, not a list")

    def _incomplete(self) -> TransportError:
        return TransportError(f"the answer breaks off after {self._received} bytes")
