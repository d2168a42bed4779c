"""Integers are read as by Go's strconv."""

from __future__ import annotations

import pytest

from aioinformer.testing.strconv import parse_int, parse_uint


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("+7", 7),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "9223372036854775807", 2**63 - 1),
    ],
)
def test_numbers_of_64_bits_are_read(text: str, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *[(text, "invalid syntax") for text in ("", "-", " 1", "1_000", "1.5", "²", "٣")],
        *[
            (text, "value out of range")
            for text in ("9223372036854775808", "-9223372036854775809", "9" * 5000)
        ],
    ],
)
def test_others_are_refused_in_go_s_words(text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_int(text, "Atoi")
    assert str(caught.value) == f'strconv.Atoi: parsing "{text}": {why}'


def test_unsigned_numbers_have_no_sign() -> None:
    assert parse_uint("18446744073709551615") == 2**64 - 1
    for text in ("+1", "-1", "18446744073709551616"):
        with pytest.raises(ValueError, match="ParseUint"):
            parse_uint(text)
