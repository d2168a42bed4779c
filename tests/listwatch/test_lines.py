from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

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
    assert time.perf_counter() - started < 1  # quadratic joining takes minutes


def test_what_was_closed_is_forgotten() -> None:
    splitter = LineSplitter()
    splitter.feed(b"begun")
    assert splitter.close() == b"begun"
    assert splitter.close() == b""
    assert splitter.feed(b"new\n") == [(b"new\n", 0, 3)]
