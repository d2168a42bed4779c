"""The wire format of protobuf: varints, and pieces (length-delimited values)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

VARINT, FIXED64, PIECE, FIXED32 = 0, 1, 2, 5
"""Wire types, the last three bits of a field's tag. (3 and 4 are groups, which Kubernetes does not use.)"""

_LONGEST = 10
"""Most bytes of a varint."""


class WireError(ValueError):
    """The bytes are not protobuf."""


PROTOBUF_ERRORS = (ValueError, IndexError, OverflowError, RecursionError, msgspec.MsgspecError)
"""Errors of reading damaged or too deeply nested bytes, also of strings, times and JSON in them."""


def long_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint of several bytes; return it and its end. Callers read varints of one byte themselves.

    Raises:
        WireError: It is longer than ten bytes.
        IndexError: The data ends within it.
    """
    number = 0
    for count in range(_LONGEST):
        byte = data[at + count]
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return number, at + count + 1
    raise WireError("a varint is longer than ten bytes")


def write_varint(number: int) -> bytes:
    """Encode a varint."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def to_signed(number: int) -> int:
    """Return a varint as a signed number (two's complement of 64 bits)."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number


def piece(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return begin and end of the piece whose length is at an offset.

    Raises:
        WireError: It ends after ``end``.
        IndexError: The data ends within its length.
    """
    size = data[at]
    at += 1
    if size > 0x7F:
        size, at = long_number(data, at - 1)
    if at + size > end:
        raise WireError(f"a piece of {size} bytes is longer than the message that contains it")
    return at, at + size


def text(data: bytes, at: int, end: int) -> str:
    """Return a string. Bytes that are not UTF-8, which API servers take, become U+FFFD, as in their JSON."""
    return data[at:end].decode("utf-8", "replace")


def skip(kind: int, data: bytes, at: int, end: int) -> int:
    """Return the end of a value of a wire type.

    Raises:
        WireError: It ends after ``end``, or has an unknown wire type.
        IndexError: The data ends within it.
    """
    if kind == PIECE:
        return piece(data, at, end)[1]
    if kind == VARINT:
        at = at + 1 if data[at] < 0x80 else long_number(data, at)[1]
    elif kind in (FIXED32, FIXED64):
        at += 4 if kind == FIXED32 else 8
    else:
        raise WireError(f"unknown wire type {kind}")
    if at > end:
        raise WireError("a value is longer than the message that contains it")
    return at


def pieces(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield tag, begin and end of each piece of a message. Other fields are skipped.

    Raises:
        WireError, IndexError: It is not a message.
    """
    while at < end:
        tag, at = long_number(data, at)
        if tag & 7 == PIECE:
            begin, at = piece(data, at, end)
            yield tag, begin, at
        else:
            at = skip(tag & 7, data, at, end)
