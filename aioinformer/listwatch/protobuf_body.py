"""The body of a LIST in protobuf, taken apart while it arrives."""

from __future__ import annotations

from math import inf
from typing import Any

from ..api import ListResult, TypeMeta
from ..errors import ApiError, DecodeError, TransportError
from ..protobuf import (
    MAGIC,
    PIECE,
    PROTOBUF_ERRORS,
    ProtobufForm,
    form_of,
    long_number,
    read_envelope,
    read_head,
    read_list_meta,
    status_of,
)
from .lines import LONGEST_OBJECT, Pending

_META, _ITEM = 1 << 3 | 2, 2 << 3 | 2

HEAD = 1024
"""Bytes in which a list says what it is, and how long."""


class ProtobufListSplitter:
    """Takes chunks of a LIST's body and gives its items, as KubeObjects, in pieces. See ``ListBodySplitter``.

    An item that cannot be read stays bytes, which whoever decodes it will drop.

    Args:
        longest_object: Bytes that an item may have; all else must be shorter, too.
    """

    def __init__(self, longest_object: int = LONGEST_OBJECT) -> None:
        self._pending = Pending(HEAD + longest_object)
        self._longest = longest_object
        self._received = 0
        self._enough: float = 0  # bytes with which what is pending is worth being looked at again
        self._form: ProtobufForm | None = None
        self._left = 0  # bytes of the list that are still to come
        self._version = self._continue = ""

    def feed(self, chunk: bytes) -> ListResult | None:
        """Take a chunk; the items that it completes, if any. Versions and tokens are on the last piece only.

        Raises:
            DecodeError: An item, or whatever else it is, does not end; or nothing is known of its kind.
        """
        self._received += len(chunk)
        if self._pending.size + len(chunk) < self._enough:
            self._pending.add(chunk)
            return None
        data = self._pending.take() + chunk
        begin = self._take_head(data) if self._form is None else 0
        items: list[Any] = []
        if self._form is None:
            self._pending.add(data)
            return None
        end = self._take_fields(self._form, data, begin, items)
        if self._left:
            self._pending.add(data[end:])
        return ListResult(items, type_meta=self._form.type_meta) if items else None

    def close(self) -> ListResult:
        """The collection's version and the continue token. Raises as ``ListBodySplitter.close``."""
        rest = self._pending.take()
        if self._form is None:
            raise self._no_list(rest)
        if self._left:
            raise self._breaks_off()
        if not self._version:
            raise DecodeError("the answer is not a list with a resourceVersion")
        return ListResult((), self._version, self._continue, self._form.type_meta)

    def _take_head(self, data: bytes) -> int:
        """Find out what the list is of, and where its fields begin; 0 while, or if, that is not known."""
        try:
            type_meta, begin, end = read_head(data)
        except PROTOBUF_ERRORS:
            self._enough = len(data) + 1 if len(data) < HEAD else inf
            return 0
        kind = type_meta.kind.removesuffix("List")
        if kind == type_meta.kind:
            self._enough = inf
            return 0
        self._form = form_of(TypeMeta(type_meta.api_version, kind))
        self._left = end - begin
        return begin

    def _take_fields(self, form: ProtobufForm, data: bytes, at: int, items: list[Any]) -> int:
        """Take the fields of the list that are complete; where what is left begins."""
        self._enough = 0
        while self._left:
            try:
                tag, begin = long_number(data, at)
                size, begin = long_number(data, begin)
            except IndexError:
                break  # not even that has come
            end = begin + size
            if tag & 7 != PIECE or end - at > self._left:
                raise DecodeError(
                    f"the answer is not a list: there is no such field as {data[at : at + 20]!r}"
                )
            if end > len(data):
                self._enough = end - at
                if size > self._longest:
                    del data, items  # whoever keeps the error keeps this frame
                    raise self._pending.too_long()
                break
            if tag == _ITEM:
                items.append(_object_of(form, data[begin:end]))
            elif tag == _META:
                self._version, self._continue = read_list_meta(data, begin, end)
            self._left -= end - at
            at = end
        return at

    def _no_list(self, body: bytes) -> Exception:
        """What to say of an answer that is none."""
        if (status := status_of(body)) is not None:
            return ApiError.from_status(status)
        try:
            kind = read_envelope(body, 0, len(body)).type_meta.kind
        except PROTOBUF_ERRORS as error:
            if body[: len(MAGIC)] == MAGIC[: len(body)]:
                return self._breaks_off()
            return DecodeError(f"the answer is not a list: {error}")
        return DecodeError(f"the answer is a {kind}, not a list")

    def _breaks_off(self) -> TransportError:
        return TransportError(f"the answer breaks off after {self._received} bytes")


def _object_of(form: ProtobufForm, raw: bytes) -> Any:
    try:
        return form.object_of(raw)
    except DecodeError:
        return raw
