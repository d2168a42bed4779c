"""What is read of every object without the schema; it must say what the schema says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.objects.protobuf import PROTOBUF_ERRORS
from aioinformer.objects.protobuf.messages import message as reader
from aioinformer.objects.protobuf.metadata import (
    ANNOTATIONS,
    LABELS,
    read_head,
    texts,
    without_managed_fields,
)

from .samples import WHOLE, WHOLE_JSON, entry, field, message, metadata, pod_protobuf

TEXTS = st.text(max_size=150)


def texts_of(data: bytes, wanted: int) -> dict[str, str] | None:
    return texts(data, wanted, read_head(data)[4])


@given(name=TEXTS, namespace=TEXTS, uid=TEXTS, version=TEXTS, generate=TEXTS, more=st.binary(max_size=300))
def test_heads_of_all_lengths(
    name: str, namespace: str, uid: str, version: str, generate: str, more: bytes
) -> None:
    texts = [name, generate, namespace, "", uid, version]
    data = message((1, message(*enumerate(texts, 1), (7, 2))), (2, more), (3, b""))
    assert read_head(data)[:4] == (name, namespace, uid, version)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (field(1, message((1, "a"))), ("a", "", "", "")),
        (field(1, message((1, "a"), (3, "ns"), (6, "7"), (8, b""))), ("a", "ns", "", "7")),
        (field(2, b"") + field(1, metadata("a", "ns", "1")), ("a", "ns", "uid-a", "1")),
        (pod_protobuf() + field(4, 7) + field(100, b"new"), ("a", "ns", "uid-a", "1")),
        (field(1, metadata("a", "ns", "1", (12, entry("note", "x" * 20_000)))), ("a", "ns", "uid-a", "1")),
        (message((1, metadata()), (2, bytes(20_000)), (3, bytes(200))), ("a", "ns", "uid-a", "1")),
    ],
)
def test_heads_of_other_layouts(data: bytes, expected: tuple[str, ...]) -> None:
    assert read_head(data)[:4] == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0a",
        field(2, b""),
        field(1, b""),
        pod_protobuf()[:-1],
        pod_protobuf() + b"\x1a\x05",
        pod_protobuf() + b"\x1a",
        field(1, metadata()[:-1]),
        field(1, metadata() + b"\x0a\x05")[:-1],
        b"\x0a\x05" + pod_protobuf(),
        field(1, b"\x0a\x7f" + metadata()),
    ],
)
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(PROTOBUF_ERRORS):
        read_head(data)


@given(st.data())
def test_head_equals_that_of_the_schema(data: st.DataObject) -> None:
    """Damage in texts. A head takes bytes that are not UTF-8, which the schema's reader refuses."""
    damaged = bytearray(pod_protobuf("a", "ns", "1", (11, entry("app", "web"))))
    texts = [at for at, byte in enumerate(damaged) if byte in b"aniudspweb"]
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.sampled_from(texts))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged)
    head = read_head(cut)
    wanted = (("metadata", tuple((name, ()) for name in ("name", "namespace", "uid", "resourceVersion"))),)
    try:
        read = reader("core/v1.Pod", wanted).read(cut, 0, len(cut)).get("metadata", {})
    except PROTOBUF_ERRORS:
        return
    assert head[:4] == tuple(read.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion"))


@given(
    labels=st.dictionaries(TEXTS, TEXTS, max_size=5),
    annotations=st.dictionaries(TEXTS, st.text(max_size=300), max_size=3),
)
def test_labels_and_annotations_of_all_lengths(labels: dict[str, str], annotations: dict[str, str]) -> None:
    entries = [
        (number, entry(*pair))
        for number, texts in ((11, labels), (12, annotations))
        for pair in texts.items()
    ]
    data = pod_protobuf("a", "ns", "1", (7, 2), (8, b"\x08\x01"), *entries, (14, "finalizer"), (17, b""))
    for tag, expected in ((LABELS, labels), (ANNOTATIONS, annotations)):
        assert texts_of(data, tag) in (expected, None)
        if all(len(key.encode()) < 128 for key in expected):
            assert texts_of(data, tag) == expected


def test_labels_of_other_layouts_are_read_by_the_schema() -> None:
    assert texts_of(field(2, b"") + pod_protobuf(), LABELS) is None
    for odd in (message((2, "web"), (1, "app")), field(1, "app"), field(2, "web")):
        assert texts_of(pod_protobuf("a", "ns", "1", (11, odd + b"\x1a\x00")), LABELS) is None
    assert texts_of(pod_protobuf(), LABELS) == {}


@given(st.data())
def test_damaged_strings_raise_only_protobuf_errors(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE)
    damaged[data.draw(st.integers(0, 300))] = data.draw(st.integers(0, 255))
    for tag in (LABELS, ANNOTATIONS):
        try:
            read = texts_of(bytes(damaged), tag)
        except PROTOBUF_ERRORS:
            continue
        assert read is None or isinstance(read, dict)


def lean_of(data: bytes) -> bytes:
    """It is the same wherever one begins to look, and says where the other fields begin."""
    lean, rest = without_managed_fields(data, read_head(data)[4])
    assert (lean, rest) == (without_managed_fields(data, None)[0], read_head(lean)[4])
    assert without_managed_fields(lean, rest)[0] is lean
    return lean


def test_managed_fields_are_cut_out() -> None:
    lean = lean_of(WHOLE)
    fields = reader("core/v1.Pod").read(lean, 0, len(lean))
    metadata = {name: value for name, value in WHOLE_JSON["metadata"].items() if name != "managedFields"}
    assert fields == {**WHOLE_JSON, "metadata": metadata}
    assert read_head(lean)[:4] == read_head(WHOLE)[:4]


@pytest.mark.parametrize("size", [0, 1, 60, 100, 200, 20_000])
def test_all_managed_fields_entries_are_cut_out(size: int) -> None:
    managed = (17, message((1, "kubelet"), (7, field(1, b"{}" + b" " * size))))
    annotation = (12, entry("note", "x" * size))
    data = pod_protobuf("a", "ns", "1", (7, 300), annotation, (14, "finalizer"), managed, managed)
    assert lean_of(data) == pod_protobuf("a", "ns", "1", (7, 300), annotation, (14, "finalizer"))


def test_managed_fields_of_other_layouts_are_cut_out() -> None:
    managed = (17, message((1, "kubelet")))
    assert lean_of(message((1, message((3, "ns"), (1, "a"), managed)))) == message(
        (1, message((3, "ns"), (1, "a")))
    )
    turned = message((2, ""), (1, message((1, "a"), managed)))
    assert without_managed_fields(turned, None) == (turned, None)
    new_field = (16, "new")
    assert lean_of(pod_protobuf("a", "ns", "1", new_field, managed)) == pod_protobuf(
        "a", "ns", "1", new_field
    )
