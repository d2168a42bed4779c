from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.objects.protobuf.wire import (
    FIXED32,
    FIXED64,
    PIECE,
    VARINT,
    WireError,
    long_number,
    piece,
    pieces,
    skip,
    to_signed,
    write_varint,
)

from .samples import field


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_numbers_are_read_as_they_were_written(number: int, before: bytes) -> None:
    data = before + write_varint(number) + b"\x00"
    read_number, end = long_number(data, len(before))
    assert (to_signed(read_number), end) == (number, len(data) - 1)
    assert skip(VARINT, data, len(before), len(data)) == end


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (-1, "ff" * 9 + "01")]
)
def test_numbers_are_written_in_seven_bits_a_byte(number: int, expected: str) -> None:
    assert write_varint(number).hex() == expected


def test_varint_has_at_most_ten_bytes() -> None:
    with pytest.raises(WireError, match="longer than ten bytes"):
        long_number(b"\xff" * 11, 0)
    with pytest.raises(IndexError):
        long_number(b"\xff" * 9, 0)


def test_piece_ends_within_its_message() -> None:
    data = b"\x03abcdef"
    assert piece(data, 0, 4) == (1, 4)
    with pytest.raises(WireError, match="a piece of 3 bytes is longer than the message"):
        piece(data, 0, 3)
    long = write_varint(300) + bytes(300)
    assert piece(long, 0, len(long)) == (2, 302)


@pytest.mark.parametrize(
    ("kind", "data", "end"),
    [
        (VARINT, b"\x05", 1),
        (VARINT, b"\x80\x01", 2),
        (FIXED64, bytes(8), 8),
        (FIXED32, bytes(4), 4),
        (PIECE, b"\x02ab", 3),
    ],
)
def test_skip_finds_the_end_of_values(kind: int, data: bytes, end: int) -> None:
    assert skip(kind, data, 0, end) == end
    with pytest.raises((WireError, IndexError)):
        skip(kind, data, 0, end - 1)


@pytest.mark.parametrize("kind", [3, 4, 6, 7])
def test_groups_and_unknown_wire_types_are_errors(kind: int) -> None:
    with pytest.raises(WireError, match=f"unknown wire type {kind}"):
        skip(kind, bytes(20), 0, 20)


def test_the_pieces_of_a_message() -> None:
    data = field(1, "a") + field(2, 300) + field(20, "bc") + b"\x19" + bytes(8)
    assert [(tag >> 3, data[begin:end]) for tag, begin, end in pieces(data, 0, len(data))] == [
        (1, b"a"),
        (20, b"bc"),
    ]
    with pytest.raises(IndexError):
        list(pieces(data + b"\x0a", 0, len(data) + 1))
