"""Encoders of single values: numbers, and length-delimited pieces.

The reverse of ``aioinformer.objects.protobuf.values``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from aioinformer.objects.protobuf.wire import PIECE, VARINT, write_varint

Write = Callable[[Any], bytes]
"""Encodes a JSON value; raises TypeError, ValueError or AttributeError for an invalid value."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def tag(number: int, kind: int) -> bytes:
    """Return a field's tag."""
    return write_varint(number << 3 | kind)


def number(field: int, value: int) -> bytes:
    """Return a field with a number."""
    return tag(field, VARINT) + write_varint(value)


def piece(field: int, data: bytes) -> bytes:
    """Return a field with a length-delimited piece."""
    return b"%b%b%b" % (tag(field, PIECE), write_varint(len(data)), data)


def _int(value: Any) -> bytes:
    if type(value) is not int:
        raise TypeError("it is no whole number")
    return write_varint(value)


def _bool(value: Any) -> bytes:
    if type(value) is not bool:
        raise TypeError("it is neither true nor false")
    return b"\1" if value else b"\0"


def _text(value: str) -> bytes:
    return value.encode()


def _time(value: str) -> bytes:
    """Encode metav1.Time, without fractions of a second; the zero time is empty."""
    moment = datetime.fromisoformat(value)
    return b"" if moment == _ZERO_TIME else number(1, (moment - _EPOCH) // _SECOND) + number(2, 0)


def _micro_time(value: str) -> bytes:
    """Encode metav1.MicroTime."""
    moment = datetime.fromisoformat(value)
    if moment == _ZERO_TIME:
        return b""
    seconds, rest = divmod(moment - _EPOCH, _SECOND)
    return number(1, seconds) + number(2, rest // _MICROSECOND * 1000)


def _quantity(value: str | float) -> bytes:
    """Encode resource.Quantity, which JSON may give as a number."""
    return piece(1, str(value).encode())


def _int_or_string(value: int | str) -> bytes:
    """Encode intstr.IntOrString, always with all three fields."""
    if isinstance(value, str):
        return number(1, 1) + number(2, 0) + piece(3, value.encode())
    return b"%b%b%b%b" % (number(1, 0), tag(2, VARINT), _int(value), piece(3, b""))


def _raw(value: Any) -> bytes:
    """Encode runtime.RawExtension and metav1.FieldsV1."""
    return piece(1, msgspec.json.encode(value))


def _strings(value: list[str]) -> bytes:
    """Encode a list of strings that is itself an item of a list or map."""
    return b"".join(piece(1, text.encode()) for text in value)


NUMBERS: dict[str, Write] = {"int": _int, "bool": _bool}
"""Encoders of the types that are numbers."""

PIECES: dict[str, tuple[Write, bytes | None]] = {
    "string": (_text, b""),
    "bytes": (base64.b64decode, None),
    "time": (_time, b""),
    "microTime": (_micro_time, b""),
    "quantity": (_quantity, piece(1, b"0")),
    "intOrString": (_int_or_string, number(1, 0) + number(2, 0) + piece(3, b"")),
    "raw": (_raw, b""),
    "strings": (_strings, b""),
}
"""Encoders of the types that are pieces, each with the bytes of a missing value; None writes nothing."""
