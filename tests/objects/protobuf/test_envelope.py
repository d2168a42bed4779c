from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache import TypeMeta
from aioinformer.objects.protobuf import (
    PROTOBUF_ERRORS,
    read_envelope,
    read_event,
    read_head,
    read_list_meta,
    read_status,
    status_of,
)
from aioinformer.objects.protobuf.envelope import head_of
from aioinformer.objects.protobuf.wire import WireError, write_varint

from .samples import POD, envelope, field, message, pod_protobuf

STATUS = message((1, b""), (2, "Failure"), (3, "too old resource version"), (4, "Expired"), (6, 410))
STATUS_JSON: dict[str, Any] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "too old resource version",
    "reason": "Expired",
    "code": 410,
}


def test_envelope_has_kind_and_position_of_the_object() -> None:
    data = b"<" + envelope(pod_protobuf()) + b">"
    read = read_envelope(data, 1, len(data) - 1)
    assert read.type_meta == POD
    assert data[read.begin : read.end] == pod_protobuf()


def test_head_is_the_same_for_all_objects_of_a_kind() -> None:
    for type_meta in (POD, TypeMeta("meta.k8s.io/v1", "PartialObjectMetadata"), TypeMeta("", "")):
        body = envelope(pod_protobuf(), type_meta)
        assert body.startswith(head_of(type_meta) + write_varint(len(pod_protobuf())))


def test_fields_may_be_in_any_order_or_missing() -> None:
    turned = (
        b"k8s\0"
        + field(4, "text/plain")
        + field(2, pod_protobuf())
        + field(1, message((2, "Pod"), (1, "v1")))
    )
    read = read_envelope(turned, 0, len(turned))
    assert (read.type_meta, turned[read.begin : read.end]) == (POD, pod_protobuf())
    empty = read_envelope(b"k8s\0", 0, 4)
    assert (empty.type_meta, empty.begin, empty.end) == (TypeMeta("", ""), 4, 4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"k8s",
        b"{}",
        b"k8s\0\x0a",
        b"k8s\0" + field(1, b"\x0a\x7f"),
        b"k8s\0" + field(3, "gzip") + field(2, ""),
    ],
)
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(PROTOBUF_ERRORS):
        read_envelope(data, 0, len(data))


def test_unrequested_content_encoding_is_an_error() -> None:
    data = b"k8s\0" + field(3, "gzip")
    with pytest.raises(WireError, match="encoded as b'gzip'"):
        read_envelope(data, 0, len(data))


def test_reads_the_head_before_the_end_has_arrived() -> None:
    body = envelope(bytes(5000), TypeMeta("v1", "PodList"))
    known = len(body) - 5000 - 4
    for size in range(known):
        with pytest.raises(PROTOBUF_ERRORS):
            read_head(body[:size])
    for size in (known, known + 1, len(body)):
        head = read_head(body[:size])
        assert head == (TypeMeta("v1", "PodList"), known, known + 5000)


def test_reads_version_and_token_of_a_list() -> None:
    data = message((1, ""), (2, "42"), (3, "next"), (4, 17))
    assert read_list_meta(data, 0, len(data)) == ("42", "next")
    assert read_list_meta(b"", 0, 0) == ("", "")


def test_event_has_type_and_position_of_the_object() -> None:
    for data in (
        message((1, "ADDED"), (2, field(1, envelope(pod_protobuf())))),
        message((2, field(2, "new") + field(1, envelope(pod_protobuf()))), (3, 1), (1, "ADDED")),
    ):
        type_, begin, end = read_event(data, 0, len(data))
        assert (type_, data[begin:end]) == ("ADDED", envelope(pod_protobuf()))
    assert read_event(b"", 0, 0) == ("", 0, 0)


def test_status_equals_its_json() -> None:
    body = envelope(STATUS, TypeMeta("v1", "Status"))
    assert read_status(body, read_envelope(body, 0, len(body))) == STATUS_JSON
    assert status_of(body) == STATUS_JSON


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"not found", envelope(pod_protobuf()), envelope(b"\x0a", TypeMeta("v1", "Status"))]
)
def test_other_bodies_are_not_a_status(body: bytes) -> None:
    assert status_of(body) is None


@given(st.binary(max_size=80))
def test_noise_raises_only_protobuf_errors(data: bytes) -> None:
    for read in (
        lambda: read_envelope(b"k8s\0" + data, 0, len(data) + 4),
        lambda: read_head(b"k8s\0" + data),
        lambda: read_event(data, 0, len(data)),
        lambda: read_list_meta(data, 0, len(data)),
    ):
        with contextlib.suppress(*PROTOBUF_ERRORS):
            read()
