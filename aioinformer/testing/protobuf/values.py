"""How values are written of which JSON has one: numbers, and what is in pieces. The other way round than
``aioinformer.objects.kube_object.protobuf.values``."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from aioinformer.objects.protobuf.wire import PIECE, VARINT, written

Write = Callable[[Any], bytes]
"""Writes what JSON has; raises TypeError, ValueError or AttributeError for what cannot be."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def tag(number: int, kind: int) -> bytes:
    """How a field begins."""
    return written(number << 3 | kind)


def number(field: int, value: int) -> bytes:
    """A field that is a number."""
    return tag(field, VARINT) + written(value)


def piece(field: int, data: bytes) -> bytes:
    """A field that is a piece."""
    return b"%b%b%b" % (tag(field, PIECE), written(len(data)), data)


def _int(value: Any) -> bytes:
    if type(value) is not int:
        raise TypeError("it is no whole number")
    return written(value)


def _bool(value: Any) -> bytes:
    if type(value) is not bool:
        raise TypeError("it is neither true nor false")
    return b"\1" if value else b"\0"


def _text(value: str) -> bytes:
    return value.encode()


def _time(value: str) -> bytes:
    """metav1.Time, which has no fractions of a second; the zero one is nothing."""
    moment = datetime.fromisoformat(value)
    return b"" if moment == _ZERO_TIME else number(1, (moment - _EPOCH) // _SECOND) + number(2, 0)


def _micro_time(value: str) -> bytes:
    """metav1.MicroTime."""
    moment = datetime.fromisoformat(value)
    if moment == _ZERO_TIME:
        return b""
    seconds, rest = divmod(moment - _EPOCH, _SECOND)
    return number(1, seconds) + number(2, rest // _MICROSECOND * 1000)


def _quantity(value: str | float) -> bytes:
    """resource.Quantity, of which JSON may have a number."""
    return piece(1, str(value).encode())


def _int_or_string(value: int | str) -> bytes:
    """intstr.IntOrString: all three fields, whichever it is."""
    if isinstance(value, str):
        return number(1, 1) + number(2, 0) + piece(3, value.encode())
    return b"%b%b%b%b" % (number(1, 0), tag(2, VARINT), _int(value), piece(3, b""))


def _raw(value: Any) -> bytes:
    """runtime.RawExtension and metav1.FieldsV1."""
    return piece(1, msgspec.json.encode(value))


def _strings(value: list[str]) -> bytes:
    """A list of strings where no list can be."""
    return b"".join(piece(1, text.encode()) for text in value)


NUMBERS: dict[str, Write] = {"int": _int, "bool": _bool}
"""How the types are written that are numbers."""

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
"""How the types are written that are pieces, and what of them is written where there is none; None for nothing."""
