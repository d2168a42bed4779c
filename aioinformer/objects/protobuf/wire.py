"""The wire format of protobuf: numbers in seven bits a byte, and pieces that say how long they are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

VARINT, FIXED64, PIECE, FIXED32 = 0, 1, 2, 5
"""How a field's value is written: in the last three bits of its tag. (3 and 4 are groups, which nobody writes.)"""

_LONGEST = 10
"""Bytes that a number may have."""


class WireError(ValueError):
    """Bytes that are no protobuf."""


PROTOBUF_ERRORS = (ValueError, IndexError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What reading raises of bytes that are not what they should be, or are nested too deeply: the above, and what texts,
times and JSON in them raise."""


def long_number(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, of more than one byte, and where it ends. Readers take one of one byte themselves.

    Raises:
        WireError: It does not end.
        IndexError: Likewise, with the data.
    """
    number = 0
    for count in range(_LONGEST):
        byte = data[at + count]
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return number, at + count + 1
    raise WireError("a number does not end")


def written(number: int) -> bytes:
    """A number as it is written."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def signed(number: int) -> int:
    """A number that may be negative: those are written in two's complement of 64 bits."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number


def piece(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the piece begins and ends whose length is at a place.

    Raises:
        WireError: It is not all before the end.
        IndexError: Likewise, with the data.
    """
    size = data[at]
    at += 1
    if size > 0x7F:
        size, at = long_number(data, at - 1)
    if at + size > end:
        raise WireError(f"a piece of {size} bytes ends behind what it is in")
    return at, at + size


def skip(kind: int, data: bytes, at: int, end: int) -> int:
    """Where a value ends that is written in one of the ways above.

    Raises:
        WireError: It is not all before the end, or written otherwise.
        IndexError: Likewise, with the data.
    """
    if kind == PIECE:
        return piece(data, at, end)[1]
    if kind == VARINT:
        at = at + 1 if data[at] < 0x80 else long_number(data, at)[1]
    elif kind in (FIXED32, FIXED64):
        at += 4 if kind == FIXED32 else 8
    else:
        raise WireError(f"a value is written in the way {kind}, which there is not")
    if at > end:
        raise WireError("a value ends behind what it is in")
    return at


def skip_field(data: bytes, at: int, end: int) -> int:
    """Where the field ends that begins at a place. Raises as ``skip``."""
    tag, at = long_number(data, at)
    return skip(tag & 7, data, at, end)


def pieces(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The tag of each piece of a message, and where it begins and ends. Numbers are passed over.

    Raises:
        WireError, IndexError: It is no message.
    """
    while at < end:
        tag, at = long_number(data, at)
        if tag & 7 == PIECE:
            begin, at = piece(data, at, end)
            yield tag, begin, at
        else:
            at = skip(tag & 7, data, at, end)
