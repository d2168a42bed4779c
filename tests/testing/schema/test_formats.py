"""Formats of strings in the schemas of custom resources."""

from __future__ import annotations

import pytest

from aioinformer.testing.schema.formats import fits_format, is_known_format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T10:00:00.5+01:00", "2026-02-28T10:00:00"),
        ("duration", "1h30m", "soon"),
        ("ipv4", "010.0.0.1", "10.0.0.256"),
        ("ipv6", "fe80::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("uuid", "7F2C1D0A-0000-4000-8000-000000000000", "7f2c"),
        ("uuid4", "7f2c1d0a-0000-4000-8000-000000000000", "7f2c1d0a-0000-3000-8000-000000000000"),
        ("email", "a@example.com", "a@"),
        ("hostname", "a.example.com", "a_b"),
        ("uri", "https://a/b", "a b"),
        ("mac", "00:00:5e:00:53:01", "00:00"),
        ("byte", "YQ==", "YQ"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "111-11-1111", "111"),
        ("hexcolor", "#fff", "#ff"),
        ("rgbcolor", "rgb(1,2,255)", "rgb(1,2,256)"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ("k8s-short-name", "a-b", "A"),
        ("k8s-long-name", "a.b", "a..b"),
    ],
)
def test_strings_have_a_format_or_not(name: str, good: str, bad: str) -> None:
    assert is_known_format("string", name)
    assert fits_format(name, good)
    assert not fits_format(name, bad)


def test_unknown_formats_are_ignored() -> None:
    assert not is_known_format("string", "quantity")
    assert not is_known_format("integer", "float")
    assert is_known_format("integer", "int32")
