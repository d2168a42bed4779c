"""A watch in protobuf."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject, TransportError, WatchEvent, meta_namespace_key_func
from aioinformer.cache import TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.listwatch.events import LONGEST_BATCH, EventStream
from aioinformer.listwatch.frames import Frames
from aioinformer.listwatch.lines import LONGEST_OBJECT
from aioinformer.objects.codec import codec_for, decode_bookmark
from aioinformer.objects.meta import NO_EVENT
from aioinformer.reflector.event_decoder import EventDecoder

from ..objects.protobuf import samples
from ..objects.protobuf.samples import entry, envelope, field, message, pod_protobuf
from ..objects.protobuf.test_envelope import STATUS, STATUS_JSON
from .streams import EVENT, Chunks

TYPES = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "DRAINED"])
PODS = st.builds(
    pod_protobuf,
    st.text("abc", min_size=1, max_size=200),
    st.text("abc", max_size=5),
    st.just("1"),
    st.builds(lambda size: (12, entry("note", "x" * size)), st.integers(0, 20_000)),
)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def event(type_: str, raw: bytes, type_meta: TypeMeta = samples.POD) -> bytes:
    """A frame as API servers write it."""
    return frame(message((1, type_), (2, field(1, envelope(raw, type_meta)))))


def decode_stream(stream: bytes, frames: Frames | None = None) -> list[WatchEvent]:
    frames = frames or Frames()
    return frames.events(frames.feed(stream))


async def read_stream(*chunks: bytes) -> list[list[WatchEvent]]:
    return [batch async for batch in EventStream(Chunks(chunks))]


@given(events=st.lists(st.tuples(TYPES, PODS), max_size=5), cuts=st.data())
def test_however_a_stream_is_cut_its_events_are_the_same(
    events: list[tuple[str, bytes]], cuts: st.DataObject
) -> None:
    stream = b"".join(event(*parts) for parts in events)
    frames, read_events, at = Frames(), list[WatchEvent](), 0
    while at < len(stream):
        size = cuts.draw(st.integers(0, 30) | st.integers(0, 30_000))
        read_events += decode_stream(stream[at : at + size], frames)
        at += size
    assert [(decoded_event.type, decoded_event.object._kept) for decoded_event in read_events] == events
    assert all(
        read.object == samples.kube_object(raw) for read, (_, raw) in zip(read_events, events, strict=True)
    )
    assert frames.last() == []


@given(TYPES, PODS, st.sampled_from([1, 2, 3]))
def test_an_event_means_the_same_in_every_layout(type_: str, raw: bytes, layout: int) -> None:
    within = b"k8s\0" + field(2, raw) + field(1, message((2, "Pod"), (1, "v1")))
    body = {
        1: message((2, field(1, envelope(raw))), (1, type_)),
        2: message((1, type_), (2, field(1, within))),
        3: message((1, type_), (2, field(2, "new") + field(1, envelope(raw) + field(5, "new"))), (3, "new")),
    }[layout]
    frames = Frames()
    for _ in range(2):  # the second time it knows what the first one was of
        [read_event] = decode_stream(frame(body), frames)
        assert (read_event.type, read_event.object._kept, read_event.object.kind) == (type_, raw, "Pod")
        [read_event] = decode_stream(event(type_, raw), frames)
        assert (read_event.type, read_event.object._kept) == (type_, raw)


def test_kinds_may_change() -> None:
    frames = Frames()
    partial = TypeMeta("meta.k8s.io/v1", "PartialObjectMetadata")
    for type_meta in (samples.POD, partial, samples.POD, TypeMeta("v1", "Node"), partial):
        [read_event] = decode_stream(event("ADDED", pod_protobuf(), type_meta), frames)
        assert (read_event.object.api_version, read_event.object.kind) == type_meta


def test_a_bookmark_is_read_as_that_of_json() -> None:
    raw = field(1, samples.metadata("", "", "42", (12, entry("k8s.io/initial-events-end", "true")))) + field(
        2, b""
    )
    [read_event] = decode_stream(event("BOOKMARK", raw))
    bookmark = decode_bookmark(read_event.object)
    assert (bookmark.resource_version, bookmark.metadata.annotations) == (
        "42",
        {"k8s.io/initial-events-end": "true"},
    )


def test_the_status_of_an_error_is_decoded() -> None:
    assert decode_stream(event("ERROR", STATUS, TypeMeta("v1", "Status"))) == [
        WatchEvent("ERROR", STATUS_JSON)
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x0a",
        b"not protobuf",
        message((1, "ADDED")),
        message((1, "ADDED"), (2, field(1, b"no envelope"))),
        message((1, "ADDED"), (2, field(1, envelope(pod_protobuf())[:-9]))),
        message((1, "ERROR"), (2, field(1, envelope(pod_protobuf())))),
        message((1, b"\xff"), (2, field(1, envelope(pod_protobuf())))),
    ],
)
def test_frame_without_an_event_does_not_stop_the_others(body: bytes) -> None:
    stream = event("ADDED", pod_protobuf("a")) + frame(body) + event("ADDED", pod_protobuf("b"))
    assert [(read.type, read.object) for read in decode_stream(stream)] == [
        ("ADDED", samples.kube_object(pod_protobuf("a"))),
        (NO_EVENT, body),
        ("ADDED", samples.kube_object(pod_protobuf("b"))),
    ]


def test_unreadable_object_is_replaced_by_its_error() -> None:
    bad = pod_protobuf() + b"\x1a\x05"
    frames = Frames()
    for _ in range(2):
        [read_event] = decode_stream(event("MODIFIED", bad), frames)
        assert read_event.type == "MODIFIED"
        for decode in (codec_for(KubeObject).decode, codec_for(dict).decode, decode_bookmark):
            with pytest.raises(DecodeError, match=r"not a Kubernetes object: .*; it has [0-9]+ bytes"):
                decode(read_event.object)


def test_unreadable_objects_are_freed() -> None:
    """Errors keep frames, which keep events; and the garbage collector does not see those."""

    def errors() -> int:
        gc.collect()
        return len([obj for obj in gc.get_objects() if isinstance(obj, DecodeError)])

    rejected: list[str] = []
    intake = EventDecoder(
        codec_for(KubeObject), meta_namespace_key_func, False, lambda error: rejected.append(str(error))
    )
    before = errors()
    for _ in range(3):
        intake.changes_of(decode_stream(event("MODIFIED", pod_protobuf() + b"\x1a\x05")), from_any=False)
    assert len(rejected) == 3
    assert errors() <= before


def test_unknown_kind_ends_the_stream() -> None:
    """The request did not ask for it."""
    with pytest.raises(DecodeError, match=r"Cave of example\.com/v1 cannot be read as protobuf"):
        decode_stream(event("ADDED", pod_protobuf(), TypeMeta("example.com/v1", "Cave")))


@given(st.data())
def test_damage_raises_nothing_else_and_does_not_hang(data: st.DataObject) -> None:
    stream = bytearray(
        event("ADDED", pod_protobuf("a"))
        + event("MODIFIED", samples.WHOLE)
        + event("DELETED", pod_protobuf("b"))
    )
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    frames = Frames()
    try:
        for read_event in decode_stream(bytes(stream), frames):
            assert isinstance(read_event.object, (KubeObject, bytes, dict, DecodeError))
        frames.last()
    except (DecodeError, TransportError):
        pass


def test_a_frame_that_spans_many_chunks_is_joined_once() -> None:
    body = message((1, "ADDED"), (2, bytes(8 * 1024 * 1024)))
    stream, frames = frame(body), Frames()
    started = time.perf_counter()
    spans = [span for at in range(0, len(stream), 4096) for span in frames.feed(stream[at : at + 4096])]
    assert [(end - begin) for _, begin, end in spans] == [len(body)]
    assert time.perf_counter() - started < 30  # quadratic joining takes minutes


def test_a_frame_has_its_limit() -> None:
    frames = Frames(longest=100)
    frames.feed(frame(bytes(100)))
    with pytest.raises(DecodeError, match="more than 104 bytes have come, and no object has ended"):
        frames.feed((101).to_bytes(4, "big"))
    assert frames.last() == []
    with pytest.raises(DecodeError):
        Frames().feed((LONGEST_OBJECT + 1).to_bytes(4, "big") + b"x")


async def test_first_byte_decides_between_protobuf_and_json() -> None:
    assert await read_stream(event("ADDED", pod_protobuf("a")), event("DELETED", pod_protobuf("a"))) == [
        [WatchEvent("ADDED", samples.kube_object(pod_protobuf("a")))],
        [WatchEvent("DELETED", samples.kube_object(pod_protobuf("a")))],
    ]
    assert [read.type for [read] in await read_stream(EVENT, EVENT)] == ["ADDED", "ADDED"]
    assert await read_stream() == []


async def test_batches_have_their_limit() -> None:
    batches = await read_stream(event("ADDED", pod_protobuf()) * (LONGEST_BATCH + 1))
    assert [len(batch) for batch in batches] == [LONGEST_BATCH, 1]


@pytest.mark.parametrize("left", [1, 3, 4, 5, 60])
async def test_stream_cut_inside_an_event_is_a_transport_error(left: int) -> None:
    stream = EventStream(
        Chunks([event("ADDED", pod_protobuf("a")) + event("ADDED", pod_protobuf("b"))[:left]])
    )
    assert [read.object.name for read in await anext(stream)] == ["a"]
    with pytest.raises(TransportError, match=f"in the middle of an event, after {left} bytes"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


def test_objects_are_copies() -> None:
    """A cached object does not keep a chunk alive."""
    stream = event("ADDED", pod_protobuf()) + event("ADDED", pod_protobuf())
    raws: list[Any] = [read.object._kept for read in decode_stream(stream)]
    assert all(type(kept) is bytes and len(kept) == len(pod_protobuf()) for kept in raws)
