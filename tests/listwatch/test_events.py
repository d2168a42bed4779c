from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject, TransportError, WatchEvent
from aioinformer.errors import DecodeError
from aioinformer.listwatch.events import LONGEST_BATCH, EventStream, decode_lines
from aioinformer.listwatch.lines import LONGEST_OBJECT, Span
from aioinformer.listwatch.partial import partial_object
from aioinformer.objects.codec import codec_for, decode_bookmark
from aioinformer.objects.meta import NO_EVENT

from ..steps import run_during
from ..virtual_time import virtual_time
from .streams import EVENT, Chunks

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def span(line: bytes) -> Span:
    """The line as it stands in the middle of a buffer."""
    return b"{" + line + b"}", 1, len(line) + 1


def read_lines(lines: list[bytes]) -> list[WatchEvent]:
    return decode_lines(map(span, lines))


@given(
    type_=st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "DRAINED"]),
    object_=st.dictionaries(st.text(max_size=5), JSON, max_size=4),
    ascii_=st.booleans(),
)
def test_a_line_means_the_same_in_every_layout(type_: str, object_: dict[str, Any], ascii_: bool) -> None:
    line = {"type": type_, "object": object_}
    usual = json.dumps(line, separators=(",", ":"), ensure_ascii=ascii_).encode()
    turned = json.dumps({"object": object_, "type": type_}, ensure_ascii=ascii_).encode()
    for layout in (usual, usual + b"\r", b" " + usual, json.dumps(line).encode(), turned):
        [event] = read_lines([layout])
        content = event.object if type_ == "ERROR" else json.loads(event.object)
        assert (event.type, content) == (type_, object_)


def test_objects_are_cut_out_as_they_were_sent() -> None:
    raw = '{"metadata":{"name":"ü"} ,"spec": {}}'.encode()
    assert read_lines([b'{"type":"MODIFIED","object":' + raw + b"}"]) == [WatchEvent("MODIFIED", raw)]
    assert read_lines([b'{"object": ' + raw + b', "type": "DELETED"}']) == [WatchEvent("DELETED", raw)]


@pytest.mark.parametrize(
    "line",
    [
        b"junk",
        b"<html>",
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":7,"object":{}}',
        b'{"type":"DRAINED","object":{"a":1}',
        b'{"type":"AD","object":{"a":1}}}}',
        b'\xef\xbb\xbf{"type":"ADDED","object":{}}',
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_line_without_an_event_is_returned_as_it_is(line: bytes) -> None:
    pod = WatchEvent("ADDED", b'{"kind":"Pod","metadata":{"name":"a"}}')
    assert read_lines([line, EVENT.rstrip()]) == [WatchEvent(NO_EVENT, line), pod]


def test_bad_object_is_left_to_the_decoder() -> None:
    assert read_lines([b'{"type":"ADDED","object":{"a":1}']) == [WatchEvent("ADDED", b'{"a":1')]


@pytest.mark.parametrize("behind", [b',"seen":1', b',"extra":{"a":[1]}', b', "x": null, "y": {}', b" "])
@pytest.mark.parametrize("drop_managed_fields", [False, True])
def test_decoder_drops_fields_after_an_object(behind: bytes, drop_managed_fields: bool) -> None:
    raw = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"7"},"spec":{}}'
    [event, mark] = read_lines(
        [b'{"type":"%s","object":%s%s}' % (type_, raw, behind) for type_ in (b"DELETED", b"BOOKMARK")]
    )
    assert (event.type, mark.type) == ("DELETED", "BOOKMARK")
    lean = {"drop_managed_fields": drop_managed_fields}
    assert codec_for(KubeObject, **lean).decode(event.object) == KubeObject.from_bytes(raw)
    assert codec_for(dict[str, Any], **lean).decode(event.object) == json.loads(raw)
    assert decode_bookmark(mark.object).resource_version == "7"
    assert partial_object(event.object).endswith(b'"metadata":{"name":"a","resourceVersion":"7"}}')


@pytest.mark.parametrize("behind", [b"}", b",", b',"seen"', b"{}", b',"seen":1}{"a":2'])
def test_other_text_after_an_object_is_malformed(behind: bytes) -> None:
    [event] = read_lines([b'{"type":"ADDED","object":{"metadata":{"name":"a"}}%s}' % behind])
    with pytest.raises(DecodeError):
        codec_for(KubeObject).decode(event.object)


def test_other_types_and_errors_without_a_status_are_returned() -> None:
    assert read_lines([b'{"type":"DRAINED","object":{}}']) == [WatchEvent("DRAINED", b"{}")]
    assert read_lines([b'{"type":"ERROR","object":"no status"}']) == [WatchEvent("ERROR", b'"no status"')]


def test_blank_lines_are_skipped() -> None:
    assert read_lines([b"", b"\r", b"  "]) == []


def stream_of(*chunks: bytes | Exception, longest: int = LONGEST_OBJECT) -> tuple[EventStream, Chunks]:
    body = Chunks(chunks)
    return EventStream(body, longest), body


async def test_events_of_one_chunk_are_one_batch() -> None:
    stream, _ = stream_of(EVENT * 3 + EVENT[:10], EVENT[10:])
    assert [len(batch) async for batch in stream] == [3, 1]


async def test_batches_are_bounded() -> None:
    stream, _ = stream_of(EVENT * (2 * LONGEST_BATCH + 1))
    assert [len(batch) async for batch in stream] == [LONGEST_BATCH, LONGEST_BATCH, 1]


async def test_bad_line_does_not_end_the_stream() -> None:
    stream, _ = stream_of(EVENT + b"nothing\n" + EVENT, b"a\nb\n", EVENT)
    types = [[event.type for event in batch] async for batch in stream]
    assert types == [["ADDED", NO_EVENT, "ADDED"], [NO_EVENT, NO_EVENT], ["ADDED"]]


async def test_endless_blank_lines_let_other_tasks_run() -> None:
    stream, _ = stream_of(*[b"\n" * 1000] * 10, EVENT)
    others = 0

    async def count() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async with run_during(count()):
        assert len(await anext(stream)) == 1
    assert others >= 10


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_line_without_an_end_ends_the_stream(size: int) -> None:
    """It would fill the memory. Whole lines before it are returned."""
    stream, _ = stream_of(EVENT, *[b"x" * size] * (30_000 // size), longest=20_000)
    assert len(await anext(stream)) == 1
    with pytest.raises(DecodeError, match=r"more than 20000 bytes have come, and no object has ended"):
        await anext(stream)


async def test_line_of_the_longest_length_is_read() -> None:
    stream, _ = stream_of(EVENT[:9], EVENT[9:], longest=len(EVENT) - 1)
    assert len(await anext(stream)) == 1


async def test_a_stream_cut_inside_a_line_raises_after_its_events() -> None:
    stream, _ = stream_of(EVENT + EVENT[:20])
    assert len(await anext(stream)) == 1
    with pytest.raises(TransportError, match=r"cut in the middle of a line"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_whole_last_line_needs_no_newline() -> None:
    stream, _ = stream_of(EVENT + EVENT.rstrip())
    assert [len(batch) async for batch in stream] == [1, 1]


async def test_error_of_the_body_ends_the_stream() -> None:
    stream, body = stream_of(EVENT, TransportError("reset"))
    assert len(await anext(stream)) == 1
    with pytest.raises(TransportError, match=r"reset"):
        await anext(stream)
    await stream.aclose()
    await stream.aclose()
    assert body.closed == 2
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_closed_stream_returns_nothing() -> None:
    stream, _ = stream_of(EVENT * (LONGEST_BATCH + 1), EVENT)
    await anext(stream)
    await stream.aclose()
    assert [batch async for batch in stream] == []


class Slow(Chunks):
    """Chunks that come so many seconds apart."""

    def __init__(self, chunks: Iterable[bytes | Exception], apart: float) -> None:
        super().__init__(chunks)
        self._apart = apart

    async def __anext__(self) -> bytes:
        await asyncio.sleep(self._apart)
        return await super().__anext__()


@virtual_time
async def test_slow_event_yields_empty_batches() -> None:
    """Otherwise the reader would close the watch and never get the event."""
    whole = EVENT
    chunks = [whole[at : at + 4] for at in range(0, len(whole), 4)]
    stream = EventStream(Slow(chunks, 0.4))
    now = asyncio.get_running_loop().time
    began, times, events = now(), [], []
    async for batch in stream:
        times.append(now() - began)
        events += batch
    assert len(events) == 1
    assert len(times) > 3
    assert max(later - earlier for earlier, later in pairwise(times)) < 2
