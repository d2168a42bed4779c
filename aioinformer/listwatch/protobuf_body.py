"""The body of a LIST in protobuf, taken apart while it arrives."""

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
    status_of,
)
from .lines import LONGEST_OBJECT, Pending

HEAD = 1024
"""Bytes in which a list says what it is of, and how long."""

_META, _ITEM = 1 << 3 | PIECE, 2 << 3 | PIECE


class ProtobufListSplitter:
    """Takes chunks of a LIST's body and gives its items, KubeObjects, in pieces: as ``ListBodySplitter`` does of JSON.

    In place of an item that cannot be read is the error, which who decodes it will raise.

    Args:
        longest_object: Bytes that an item may have; all else must be shorter, too.
    """

    def __init__(self, longest_object: int = LONGEST_OBJECT) -> None:
        self._pending = Pending(HEAD + longest_object)
        self._longest = longest_object
        self._received = 0
        self._enough: float = 0  # bytes with which what is pending is worth being looked at again
        self._form: ProtobufForm | None = None  # of the items, once it is known
        self._left = 0  # bytes of the list that are still to come
        self._version = self._continue = ""

    def feed(self, chunk: bytes) -> ListResult | None:
        """Take a chunk; the items that it completes, if any. Versions and tokens are on the last piece only.

        Raises:
            DecodeError: It is no list, or of a kind that is not known; or an item does not end.
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
        if self._left:
            self._pending.add(data[end:])
        return ListResult(items, type_meta=self._form.type_meta) if items else None

    def close(self) -> ListResult:
        """The last piece: the collection's version and the continue token.

        Raises:
            TransportError: The body breaks off.
            ApiError: It is a Status that says what went wrong.
            DecodeError: It is not a list.
        """
        body = self._pending.take()
        if self._form is None:
            raise self._no_list(body)
        if self._left:
            raise self._breaks_off()
        return ListResult((), self._version, self._continue, self._form.type_meta)

    def _take_head(self, data: bytes) -> int:
        """Find out what it is a list of, and where its fields begin. What is none is gathered until the end."""
        self._enough = inf
        try:
            (api_version, kind), begin, end = read_head(data)
        except PROTOBUF_ERRORS:
            if len(data) < HEAD:
                self._enough = 0
            return 0
        if kind.endswith("List"):
            self._form = form_of(TypeMeta(api_version, kind.removesuffix("List")))
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
                break  # not even these have come
            end = begin + size
            if tag & 7 != PIECE or end - at > self._left:
                raise DecodeError(f"the answer is not a list: it has no such field as {data[at : at + 20]!r}")
            if end > len(data):
                self._enough = end - at
                if size > self._longest:
                    del data, items  # whoever keeps the error keeps this frame
                    raise self._pending.too_long()
                break
            if tag == _ITEM:
                items.append(form.object_of(data[begin:end]))
            elif tag == _META:
                self._version, self._continue = read_list_meta(data, begin, end)
            self._left -= end - at
            at = end
        return at

    def _no_list(self, body: bytes) -> AioInformerError:
        """What to say of an answer that is none."""
        if (status := status_of(body)) is not None:
            return ApiError.from_status(status)
        try:
            kind = read_envelope(body, 0, len(body)).type_meta.kind
        except PROTOBUF_ERRORS as error:
            has_begun = body.startswith(MAGIC) or MAGIC.startswith(body)
            return self._breaks_off() if has_begun else DecodeError(f"the answer is not a list: {error}")
        is_list = not kind or kind.endswith("List")  # without what is in it
        return self._breaks_off() if is_list else DecodeError(f"the answer is a {kind}, not a list")

    def _breaks_off(self) -> TransportError:
        return TransportError(f"the answer breaks off after {self._received} bytes")
