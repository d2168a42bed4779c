"""Reads messages that are one value in JSON, such as times and quantities, as Go's encoding/json writes them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from ..nesting import decode_any, reader_of
from .wire import PIECE, VARINT, WireError, long_number, piece, skip, text, to_signed

Read = Callable[[bytes, int, int], Any]
"""Reads the value between two offsets."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CYCLE = 146_097 * 24 * 3600
"""Seconds of 400 years, after which the calendar repeats itself."""


def _base64(data: bytes, at: int, end: int) -> str:
    return base64.b64encode(data[at:end]).decode()


def _fields(data: bytes, at: int, end: int, kinds: dict[int, int]) -> dict[int, Any]:
    """Read the fields of a small message by their numbers: ints, or bytes.

    Args:
        data: The bytes.
        at: The begin of the message.
        end: The end of the message.
        kinds: The wire type of each field, VARINT or PIECE; other fields are skipped.
    """
    fields: dict[int, Any] = {}
    while at < end:
        tag, at = long_number(data, at)
        number, kind = tag >> 3, tag & 7
        if number not in kinds:
            at = skip(kind, data, at, end)
        elif kind != kinds[number]:
            raise WireError(f"field {number} has the wrong wire type {kind}")
        elif kind == VARINT:
            value, at = long_number(data, at)
            fields[number] = to_signed(value)
        else:
            begin, at = piece(data, at, end)
            fields[number] = data[begin:at]
    if at > end:
        raise WireError("a message is longer than the message that contains it")
    return fields


def _moment(data: bytes, at: int, end: int, timespec: str) -> str:
    """Read seconds and nanoseconds since 1970 as RFC 3339, of any year as Go, also those that datetime lacks."""
    fields = _fields(data, at, end, {1: VARINT, 2: VARINT})
    cycles, seconds = divmod(fields.get(1, 0), _CYCLE)
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=fields.get(2, 0) // 1000)
    year = moment.year + 400 * cycles
    return f"{'-' * (year < 0)}{abs(year):04d}{moment.isoformat(timespec=timespec)[4:-6]}Z"


def _time(data: bytes, at: int, end: int) -> str | None:
    """Read a metav1.Time. An empty message is the zero time, null in JSON."""
    return _moment(data, at, end, "seconds") if at < end else None


def _micro_time(data: bytes, at: int, end: int) -> str | None:
    """Read a metav1.MicroTime. An empty message is null in JSON."""
    return _moment(data, at, end, "microseconds") if at < end else None


def _quantity(data: bytes, at: int, end: int) -> str:
    """Read a resource.Quantity, a string in protobuf, too."""
    return _fields(data, at, end, {1: PIECE}).get(1, b"0").decode() or "0"


def _int_or_string(data: bytes, at: int, end: int) -> int | str:
    """Read an intstr.IntOrString: type, intVal, strVal."""
    fields = _fields(data, at, end, {1: VARINT, 2: VARINT, 3: PIECE})
    number: int = fields.get(2, 0)
    return fields.get(3, b"").decode() if fields.get(1) else number


def _raw(data: bytes, at: int, end: int) -> Any:
    """Read a runtime.RawExtension or metav1.FieldsV1: JSON in a field."""
    raw = _fields(data, at, end, {1: PIECE}).get(1)
    return decode_any(raw) if raw else None


_check = reader_of(msgspec.Raw)


def read_raw(data: bytes, at: int, end: int) -> msgspec.Raw | None:
    """Read a runtime.RawExtension or metav1.FieldsV1 as it is."""
    raw = _fields(data, at, end, {1: PIECE}).get(1)
    return _check(raw) if raw else None


def _strings(data: bytes, at: int, end: int) -> list[str]:
    """Read a list of strings that is a message, such as a map's value."""
    strings: list[str] = []
    while at < end:
        tag, at = long_number(data, at)
        begin, at = piece(data, at, end) if tag & 7 == PIECE else (at, skip(tag & 7, data, at, end))
        if tag >> 3 == 1:
            strings.append(text(data, begin, at))
    return strings


LONGEST_CACHED = 64
"""Most bytes of a cached value: longer values rarely repeat, and would fill the memory."""


def _cache(read: Read) -> Read:
    """Cache the values of a reader: many repeat, such as the times of a pod's conditions."""
    cached = lru_cache(maxsize=4096)(lambda value: read(value, 0, len(value)))
    return lambda data, at, end: cached(data[at:end]) if end - at <= LONGEST_CACHED else read(data, at, end)


PIECES: dict[str, tuple[Read, Any]] = {
    "string": (text, ""),
    "bytes": (_base64, None),
    "time": (_cache(_time), None),
    "microTime": (_micro_time, None),
    "quantity": (_cache(_quantity), "0"),
    "intOrString": (_cache(_int_or_string), 0),
    "raw": (_raw, None),
    "strings": (_strings, None),
}
"""Readers of length-delimited types, and JSON's values for missing ones."""

NUMBERS: dict[str, tuple[Callable[[int], Any], Any]] = {"int": (to_signed, 0), "bool": (bool, False)}
"""Readers of varint types, and JSON's values for missing ones."""
