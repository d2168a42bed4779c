"""Messages that JSON has as one value: what stands on the wire of each, as encoding/json would write it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from ..nesting import decode_any
from .wire import PIECE, VARINT, WireError, long_number, piece, signed, skip

Read = Callable[[bytes, int, int], Any]
"""Reads the value between two places."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _text(data: bytes, at: int, end: int) -> str:
    return data[at:end].decode()


def _base64(data: bytes, at: int, end: int) -> str:
    return base64.b64encode(data[at:end]).decode()


def _fields(data: bytes, at: int, end: int, kinds: dict[int, int]) -> dict[int, Any]:
    """The fields of a small message by their numbers: ints, or the bytes of pieces.

    Args:
        data: In which it is.
        at: Where it begins.
        end: Where it ends.
        kinds: How each of them is written, as VARINT or PIECE; others are passed over.
    """
    found: dict[int, Any] = {}
    while at < end:
        tag, at = long_number(data, at)
        number, kind = tag >> 3, tag & 7
        if number not in kinds:
            at = skip(kind, data, at, end)
        elif kind != kinds[number]:
            raise WireError(f"field {number} is written in another way than it should be: {kind}")
        elif kind == VARINT:
            value, at = long_number(data, at)
            found[number] = signed(value)
        else:
            begin, at = piece(data, at, end)
            found[number] = data[begin:at]
    if at > end:
        raise WireError("a message ends behind what it is in")
    return found


def _moment(data: bytes, at: int, end: int) -> datetime:
    fields = _fields(data, at, end, {1: VARINT, 2: VARINT})
    return _EPOCH + timedelta(seconds=fields.get(1, 0), microseconds=fields.get(2, 0) // 1000)


def _time(data: bytes, at: int, end: int) -> str | None:
    """metav1.Time; without a field it is the zero one, which is null."""
    return _moment(data, at, end).isoformat()[:19] + "Z" if at < end else None


def _micro_time(data: bytes, at: int, end: int) -> str | None:
    """metav1.MicroTime, likewise."""
    return _moment(data, at, end).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if at < end else None


def _quantity(data: bytes, at: int, end: int) -> str:
    """resource.Quantity, which is text in protobuf, too."""
    return _fields(data, at, end, {1: PIECE}).get(1, b"0").decode() or "0"


def _int_or_string(data: bytes, at: int, end: int) -> int | str:
    """intstr.IntOrString: type, intVal, strVal."""
    fields = _fields(data, at, end, {1: VARINT, 2: VARINT, 3: PIECE})
    number: int = fields.get(2, 0)
    return fields.get(3, b"").decode() if fields.get(1) else number


def _raw(data: bytes, at: int, end: int) -> Any:
    """runtime.RawExtension and metav1.FieldsV1: JSON in a field of its own."""
    raw = _fields(data, at, end, {1: PIECE}).get(1)
    return decode_any(raw) if raw else None


def _strings(data: bytes, at: int, end: int) -> list[str]:
    """A list of strings where no list can be, such as in a map."""
    found: list[str] = []
    while at < end:
        tag, at = long_number(data, at)
        begin, at = piece(data, at, end) if tag & 7 == PIECE else (at, skip(tag & 7, data, at, end))
        if tag >> 3 == 1:
            found.append(data[begin:at].decode())
    return found


LONGEST_REMEMBERED = 64
"""Bytes of a value that is remembered: a longer one does not come again and again, and would fill the memory."""


def _remembered(read: Read) -> Read:
    """Values that come again and again, such as the times of a pod's conditions, are read once."""
    remember = lru_cache(maxsize=4096)(lambda value: read(value, 0, len(value)))
    return lambda data, at, end: (
        remember(data[at:end]) if end - at <= LONGEST_REMEMBERED else read(data, at, end)
    )


PIECES: dict[str, tuple[Read, Any]] = {
    "string": (_text, ""),
    "bytes": (_base64, None),
    "time": (_remembered(_time), None),
    "microTime": (_micro_time, None),
    "quantity": (_remembered(_quantity), "0"),
    "intOrString": (_remembered(_int_or_string), 0),
    "raw": (_raw, None),
    "strings": (_strings, None),
}
"""How the types are read that are pieces, and what JSON has for them where there is none."""

NUMBERS: dict[str, tuple[Callable[[int], Any], Any]] = {"int": (signed, 0), "bool": (bool, False)}
"""How the types are read that are numbers, likewise."""
