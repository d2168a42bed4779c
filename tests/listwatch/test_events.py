from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import TransportError, WatchEvent
from aioinformer.listwatch.events import LONGEST_BATCH, EventStream, decode_lines
from aioinformer.listwatch.lines import Span

from .streams import EVENT, Chunks

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def span(line: bytes) -> Span:
    """The line as it stands in the middle of a buffer."""
    return b"{" + line + b"}", 1, len(line) + 1


def decoded(lines: list[bytes]) -> list[WatchEvent]:
    bad: list[bytes] = []
    events = decode_lines(map(span, lines), bad)
    assert not bad
    return events


@given(
    type_=st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
    object_=st.dictionaries(st.text(max_size=5), JSON, max_size=4),
    ascii_=st.booleans(),
)
def test_a_line_means_the_same_in_every_layout(type_: str, object_: dict[str, Any], ascii_: bool) -> None:
    line = {"type": type_, "object": object_}
    usual = json.dumps(line, separators=(",", ":"), ensure_ascii=ascii_).encode()
    turned = json.dumps({"object": object_, "type": type_}, ensure_ascii=ascii_).encode()
    for layout in (usual, usual + b"\r", b" " + usual, json.dumps(line).encode(), turned):
        [event] = decoded([layout])
        found = event.object if type_ == "ERROR" else json.loads(event.object)
        assert (event.type, found) == (type_, object_)


def test_objects_are_cut_out_as_they_were_sent() -> None:
    raw = '{"metadata":{"name":"ü"} ,"spec": {}}'.encode()
    assert decoded([b'{"type":"MODIFIED","object":' + raw + b"}"]) == [WatchEvent("MODIFIED", raw)]
    assert decoded([b'{"object": ' + raw + b', "type": "DELETED"}']) == [WatchEvent("DELETED", raw)]


@pytest.mark.parametrize(
    "line",
    [
        b"junk",
        b"<html>",
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"WHATEVER","object":{}}',
        b'{"type":"ERROR","object":"no status"}',
        b'{"type":"ADDED","object":{"a":1}',
        b'{"type":"ADDED","object":{"a":1}}}}'.replace(b"ADDED", b"AD"),
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_a_line_that_says_no_event_is_put_aside(line: bytes) -> None:
    bad: list[bytes] = []
    # A brace too few at the end of a known layout is left to whoever decodes the object.
    events = decode_lines(map(span, [line, EVENT.rstrip()]), bad)
    if line == b'{"type":"ADDED","object":{"a":1}':
        assert events[0].object == b'{"a":1'
    else:
        assert bad == [line]
    assert events[-1] == WatchEvent("ADDED", b'{"kind":"Pod","metadata":{"name":"a"}}')


def test_blank_lines_are_no_errors() -> None:
    assert decoded([b"", b"\r", b"  "]) == []


def stream_of(*chunks: bytes | Exception) -> tuple[EventStream, list[int], Chunks]:
    bad: list[int] = []
    body = Chunks(chunks)
    return EventStream(body, "pods in default", bad.append), bad, body


async def test_what_arrived_at_once_is_one_batch() -> None:
    stream, _, _ = stream_of(EVENT * 3 + EVENT[:10], EVENT[10:])
    assert [len(batch) async for batch in stream] == [3, 1]


async def test_batches_are_bounded() -> None:
    stream, _, _ = stream_of(EVENT * (2 * LONGEST_BATCH + 1))
    assert [len(batch) async for batch in stream] == [LONGEST_BATCH, LONGEST_BATCH, 1]


async def test_a_bad_line_is_dropped_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    stream, bad, _ = stream_of(EVENT + b"x" * 100 + b"\nnothing\n" + EVENT)
    with caplog.at_level(logging.WARNING):
        assert [len(batch) async for batch in stream] == [2]
    assert bad == [2]
    assert "pods in default" in caplog.text
    assert "x" * 80 in caplog.text
    assert "x" * 81 not in caplog.text


async def test_a_chunk_of_bad_lines_is_no_end_of_the_stream() -> None:
    stream, bad, _ = stream_of(b"a\nb\n", EVENT)
    assert [len(batch) async for batch in stream] == [1]
    assert bad == [2]


async def test_a_stream_cut_inside_a_line_raises_after_its_events() -> None:
    stream, _, _ = stream_of(EVENT + EVENT[:20])
    assert len(await anext(stream)) == 1
    with pytest.raises(TransportError, match=r"cut in the middle of a line"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_whole_last_line_needs_no_newline() -> None:
    stream, _, _ = stream_of(EVENT + EVENT.rstrip())
    assert [len(batch) async for batch in stream] == [1, 1]


async def test_an_error_of_the_body_is_the_streams() -> None:
    stream, _, body = stream_of(EVENT, TransportError("reset"))
    assert len(await anext(stream)) == 1
    with pytest.raises(TransportError, match=r"reset"):
        await anext(stream)
    await stream.aclose()
    await stream.aclose()
    assert body.closed == 2
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_closed_stream_gives_nothing_more() -> None:
    stream, _, _ = stream_of(EVENT * (LONGEST_BATCH + 1), EVENT)
    await anext(stream)
    await stream.aclose()
    assert [batch async for batch in stream] == []
