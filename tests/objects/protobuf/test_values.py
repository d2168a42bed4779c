"""Messages that JSON has as one value."""

from __future__ import annotations

import contextlib
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.objects.protobuf import PROTOBUF_ERRORS
from aioinformer.objects.protobuf.values import PIECES

from .samples import field, message


def read(type_: str, data: bytes) -> Any:
    return PIECES[type_][0](b"<" + data + b">", 1, len(data) + 1)


@pytest.mark.parametrize(
    ("type_", "data", "expected"),
    [
        ("string", "ü".encode(), "ü"),
        ("string", b"a\xff", "a\ufffd"),
        ("bytes", b"\x00\x01\xff", "AAH/"),
        ("bytes", b"", ""),
        ("time", b"", None),
        ("time", message((1, 0), (2, 0)), "1970-01-01T00:00:00Z"),
        ("time", message((1, 1_700_000_000), (2, 999_999_999)), "2023-11-14T22:13:20Z"),
        ("time", field(1, -1), "1969-12-31T23:59:59Z"),
        ("time", field(1, -62_135_596_800), "0001-01-01T00:00:00Z"),
        ("time", field(1, 253_402_300_799), "9999-12-31T23:59:59Z"),
        ("time", field(1, -62_167_219_200), "0000-01-01T00:00:00Z"),
        ("time", field(1, -62_167_219_201), "-0001-12-31T23:59:59Z"),
        ("time", field(1, 10**15), "31690708-07-05T01:46:40Z"),
        ("microTime", b"", None),
        ("microTime", message((1, -62_167_219_200), (2, 1_000)), "0000-01-01T00:00:00.000001Z"),
        ("microTime", message((1, 1_700_000_000), (2, 1_500)), "2023-11-14T22:13:20.000001Z"),
        ("microTime", field(1, 1_700_000_000), "2023-11-14T22:13:20.000000Z"),
        ("quantity", field(1, "100m"), "100m"),
        ("quantity", field(1, ""), "0"),
        ("quantity", b"", "0"),
        ("intOrString", message((1, 0), (2, 8080), (3, "")), 8080),
        ("intOrString", message((1, 0), (2, -1), (3, "")), -1),
        ("intOrString", message((1, 1), (2, 0), (3, "25%")), "25%"),
        ("intOrString", message((1, 1), (2, 0), (3, "")), ""),
        ("intOrString", b"", 0),
        ("raw", b"", None),
        ("raw", field(1, b""), None),
        ("raw", field(1, b'{"a":[1,null]}'), {"a": [1, None]}),
        ("raw", field(1, b"null"), None),
        ("strings", b"", []),
        ("strings", field(1, b"\xff"), ["\ufffd"]),
        ("strings", field(1, "a") + field(1, "") + field(1, "b"), ["a", "", "b"]),
    ],
)
def test_values_are_as_encoding_json_writes_them(type_: str, data: bytes, expected: Any) -> None:
    assert read(type_, data) == expected
    assert type(read(type_, data)) is type(expected)


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_times_of_all_years(seconds: int) -> None:
    text = read("time", field(1, seconds))
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(0, UTC) + (
        datetime.fromtimestamp(seconds, UTC) - datetime.fromtimestamp(0, UTC)
    )
    assert len(text) == len("2006-01-02T15:04:05Z")


@pytest.mark.parametrize("type_", ["quantity", "intOrString"])
def test_long_values_are_not_cached(type_: str) -> None:
    tracemalloc.start()
    try:
        for count in range(50):
            text = f"{count}" + "x" * 200_000
            value = message((1, text)) if type_ == "quantity" else message((1, 1), (2, 0), (3, text))
            assert read(type_, value) == text
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("time", b"\x08"),
        ("quantity", b"\x0a\x05"),
        ("quantity", field(1, b"\xff")),
        ("raw", field(1, b"{")),
        ("strings", b"\x0a\x7f"),
        ("intOrString", b"\x1a\x02a"),
        ("time", field(1, b"abc")),
        ("microTime", field(2, b"abc")),
        ("quantity", field(1, 5)),
        ("raw", field(1, 5)),
        ("intOrString", field(3, 5) + field(1, 1)),
    ],
)
def test_other_bytes_are_an_error(type_: str, data: bytes) -> None:
    with pytest.raises(PROTOBUF_ERRORS):
        read(type_, data)


_FIELDS = st.lists(
    st.builds(field, st.integers(1, 4), st.integers(0, 2**63) | st.binary(max_size=8)), max_size=4
).map(b"".join)


@given(st.sampled_from(sorted(PIECES)), st.binary(max_size=24) | _FIELDS)
def test_noise_raises_only_protobuf_errors(type_: str, data: bytes) -> None:
    with contextlib.suppress(*PROTOBUF_ERRORS):
        read(type_, data)
