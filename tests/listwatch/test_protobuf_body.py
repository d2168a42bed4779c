"""The body of a LIST in protobuf."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import ApiError, KubeObject, TransportError
from aioinformer.cache import ListResult, TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.listwatch.lines import LONGEST_OBJECT
from aioinformer.listwatch.protobuf_body import HEAD, ProtobufListSplitter
from aioinformer.objects.codec import codec_for

from ..objects.protobuf import samples
from ..objects.protobuf.samples import (
    entry,
    envelope,
    field,
    message,
    pod_protobuf,
)
from ..objects.protobuf.test_envelope import STATUS

PODS = st.builds(
    pod_protobuf,
    st.text("abc", min_size=1, max_size=200),
    st.text("abc", max_size=5),
    st.just("1"),
    st.builds(lambda size: (12, entry("note", "x" * size)), st.integers(0, 20_000)),
)
META = message((1, ""), (2, "12"), (3, ""))


def list_of(*items: bytes, meta: bytes = META, kind: str = "PodList") -> bytes:
    """A list as API servers write it."""
    return envelope(message((1, meta), *((2, item) for item in items)), TypeMeta("v1", kind))


def split(body: bytes, size: int, longest: int = LONGEST_OBJECT) -> list[ListResult]:
    splitter = ProtobufListSplitter(longest)
    pieces = [splitter.feed(body[start : start + size]) for start in range(0, len(body), size)]
    return [*(piece for piece in pieces if piece is not None), splitter.close()]


def items_of(pieces: list[ListResult]) -> list[Any]:
    return [item for piece in pieces for item in piece.items]


@given(
    items=st.lists(PODS, max_size=8),
    size=st.integers(1, 100) | st.integers(1, 40_000),
    token=st.sampled_from(["", "page-2"]),
    meta_first=st.booleans(),
)
def test_in_any_chunks_it_gives_the_same_items(
    items: list[bytes], size: int, token: str, meta_first: bool
) -> None:
    meta = (1, message((1, ""), (2, "12"), (3, token), (4, 7)))
    fields = [(2, item) for item in items]
    fields.insert(0 if meta_first else len(fields), meta)
    pieces = split(envelope(message(*fields, (9, "new")), TypeMeta("v1", "PodList")), size)
    assert items_of(pieces) == [samples.kube_object(item) for item in items]
    assert [item._kept for item in items_of(pieces)] == items
    assert (pieces[-1].resource_version, pieces[-1].continue_token) == ("12", token)
    assert {(piece.resource_version, piece.continue_token) for piece in pieces[:-1]} <= {("", "")}
    assert {piece.type_meta for piece in pieces} == {samples.POD}


def test_item_is_returned_when_it_is_complete() -> None:
    body = list_of(pod_protobuf("a"), pod_protobuf("b"))
    splitter, end = ProtobufListSplitter(), body.index(pod_protobuf("a")) + len(pod_protobuf("a"))
    assert splitter.feed(body[: end - 1]) is None
    piece = splitter.feed(body[end - 1 : end])
    assert piece is not None
    assert [item.name for item in piece.items] == ["a"]


def test_metadata_only_list_has_its_own_kind() -> None:
    raw = field(1, samples.metadata())
    partial = TypeMeta("meta.k8s.io/v1", "PartialObjectMetadataList")
    pieces = split(envelope(message((1, META), (2, raw)), partial), 50)
    assert [(item.api_version, item.kind) for item in items_of(pieces)] == [
        ("meta.k8s.io/v1", "PartialObjectMetadata")
    ]


def test_unreadable_item_is_replaced_by_its_error() -> None:
    [a, error, c] = items_of(
        split(list_of(pod_protobuf("a"), pod_protobuf("b") + b"\x1a\x05", pod_protobuf("c")), 40)
    )
    assert (a.name, c.name) == ("a", "c")
    with pytest.raises(DecodeError, match="not a Kubernetes object"):
        codec_for(KubeObject).decode(error, samples.POD)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_incomplete_body_is_a_transport_error(size: int) -> None:
    body = list_of(pod_protobuf("a"), pod_protobuf("b"))
    for end in range(1, len(body) - 4):  # the last four are empty fields behind the list
        with pytest.raises(TransportError, match=f"the answer breaks off after {end} bytes"):
            split(body[:end], size)


def test_list_without_a_version_is_a_list() -> None:
    pieces = split(list_of(pod_protobuf(), meta=b""), 10_000)
    assert (len(items_of(pieces)), pieces[-1].resource_version) == (1, "")


def test_status_is_raised_as_its_error() -> None:
    for size in (1, 10_000):
        with pytest.raises(ApiError) as raised:
            split(envelope(STATUS, TypeMeta("v1", "Status")), size)
        assert (raised.value.status, raised.value.reason) == (410, "Expired")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (envelope(pod_protobuf()), "the answer is a Pod, not a list"),
        (envelope(bytes(5000)), "the answer is a Pod, not a list"),
        (
            b"knock, knock",
            "the answer is not a list: it does not begin as Kubernetes' protobuf does, but with b'knock",
        ),
        (list_of(kind="CaveList"), "Cave of v1 cannot be read as protobuf"),
        (envelope(field(1, 5) + field(2, pod_protobuf()), TypeMeta("v1", "PodList")), "it has no such field"),
        (
            envelope(field(1, META) + b"\x12\x7f" + pod_protobuf(), TypeMeta("v1", "PodList")),
            "it has no such field",
        ),
        (
            envelope(field(1, b"\x12\x7f"), TypeMeta("v1", "PodList")),
            "the answer is not a list: a piece of 127 bytes",
        ),
        (envelope(b"\xff" * 30, TypeMeta("v1", "PodList")), "longer than ten bytes"),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_other_answer_is_an_error_with_its_kind(body: bytes, message: str, size: int) -> None:
    with pytest.raises(DecodeError, match=message):
        split(body, size)


@given(st.data())
def test_damage_raises_nothing_else_and_does_not_hang(data: st.DataObject) -> None:
    body = bytearray(list_of(pod_protobuf("a"), samples.WHOLE, pod_protobuf("b")))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        items = items_of(split(bytes(body), data.draw(st.integers(1, len(body)))))
    except (DecodeError, TransportError):
        return
    assert all(isinstance(item, (KubeObject, DecodeError)) for item in items)


def test_an_item_has_its_limit() -> None:
    assert len(items_of(split(list_of(pod_protobuf("a")), 10, longest=len(pod_protobuf("a"))))) == 1
    with pytest.raises(DecodeError, match="no object has ended"):
        split(list_of(pod_protobuf("ab")), 10, longest=len(pod_protobuf("a")))


def test_body_without_a_kind_has_its_limit() -> None:
    splitter = ProtobufListSplitter(longest_object=1000)
    with pytest.raises(DecodeError, match=f"more than {HEAD + 1000} bytes have come"):
        for _ in range(100):
            splitter.feed(envelope(pod_protobuf()) + bytes(100))


def test_an_item_that_spans_many_chunks_is_joined_once() -> None:
    body = list_of(pod_protobuf("a", "ns", "1", (12, entry("note", "x" * 8_000_000))))
    started = time.perf_counter()
    assert [item.name for item in items_of(split(body, 4096))] == ["a"]
    assert time.perf_counter() - started < 30  # quadratic joining takes minutes


def test_items_are_copies() -> None:
    """A cached object does not keep a body alive."""
    for item in items_of(split(list_of(pod_protobuf("a"), pod_protobuf("b")), 10_000)):
        assert type(item._kept) is bytes
        assert len(item._kept) == len(pod_protobuf("a"))
