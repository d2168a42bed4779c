from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import DecodeError
from aioinformer.listwatch.lines import LineSplitter


@given(data=st.binary(max_size=200) | st.text("ab\n\r", max_size=80).map(str.encode), cuts=st.data())
def test_however_a_stream_is_cut_its_lines_are_the_same(data: bytes, cuts: st.DataObject) -> None:
    splitter, lines, position = LineSplitter(), list[bytes](), 0
    while position < len(data):
        size = cuts.draw(st.integers(0, 40))
        lines += [buffer[start:end] for buffer, start, end in splitter.feed(data[position : position + size])]
        position += size
    *expected, rest = data.split(b"\n")
    assert lines == expected
    assert splitter.close() == rest


def test_a_line_that_spans_many_chunks_is_joined_once() -> None:
    splitter, chunk = LineSplitter(), b"x" * 4096
    started = time.perf_counter()
    for _ in range(8 * 256):  # 8 MB
        assert splitter.feed(chunk) == []
    assert [end - start for _, start, end in splitter.feed(b"\n")] == [8 * 1024 * 1024]
    assert time.perf_counter() - started < 30  # quadratic joining takes minutes


def test_close_empties_the_buffer() -> None:
    splitter = LineSplitter()
    splitter.feed(b"begun")
    assert splitter.close() == b"begun"
    assert splitter.close() == b""
    assert splitter.feed(b"new\n") == [(b"new\n", 0, 3)]


@pytest.mark.parametrize("size", [2, 50])
def test_tiny_chunks_cost_no_more_memory_than_their_bytes(size: int) -> None:
    """A list of them would take twenty times that."""
    tracemalloc.start()
    try:
        splitter, total = LineSplitter(), 1_000_000
        for start in range(0, total, size):
            splitter.feed(b"%0*d" % (size, start % 10))
        ((buffer, _, end),) = splitter.feed(b"\n")
        assert (len(buffer), end) == (total, total)
        assert tracemalloc.get_traced_memory()[1] < 4 * total
    finally:
        tracemalloc.stop()


def test_a_line_has_its_limit() -> None:
    splitter = LineSplitter(longest=10)
    splitter.feed(b"12345")
    assert splitter.feed(b"67890\n") == [(b"1234567890", 0, 10)]
    splitter.feed(b"1234567890")
    with pytest.raises(DecodeError, match="more than 10 bytes"):
        splitter.feed(b"1")
    assert splitter.close() == b"", "what keeps the error keeps the splitter"
