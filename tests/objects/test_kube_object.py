"""objects.py: KubeObject, an object as its bytes."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject, ObjectMeta, OwnerReference, WatchEvent
from aioinformer.cache import TypeMeta
from aioinformer.errors import DecodeError
from aioinformer.objects.codec import codec_for
from aioinformer.objects.kube_object import read_labels

from ..samples import (
    POD,
    Meta,
    Pod,
    compress_object,
    pod,
    pod_dict,
)

FULL: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "generateName": "a-",
        "generation": 3,
        "labels": {"app": "x"},
        "annotations": {"k": "v"},
        "finalizers": ["f"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o", "controller": True}
        ],
        "creationTimestamp": "2024-01-02T03:04:05Z",
        "deletionTimestamp": "2024-01-02T03:04:06.5Z",
        "deletionGracePeriodSeconds": 30,
    },
    "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
}


def encode(fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_metadata_is_typed() -> None:
    meta = KubeObject.from_bytes(encode(FULL)).metadata
    assert (meta.name, meta.namespace, meta.uid, meta.resource_version) == ("a", "ns", "u", "7")
    assert (meta.generate_name, meta.generation, meta.deletion_grace_period_seconds) == ("a-", 3, 30)
    assert (meta.labels, meta.annotations, meta.finalizers) == ({"app": "x"}, {"k": "v"}, ["f"])
    assert meta.owner_references[0].controller is True
    assert meta.creation_timestamp == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert meta.deletion_timestamp == datetime(2024, 1, 2, 3, 4, 6, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "fields",
    [{}, dict.fromkeys(FULL["metadata"], None)],
    ids=["missing", "null"],
)
def test_metadata_that_is_missing_or_null_is_empty(fields: dict[str, Any]) -> None:
    obj = KubeObject.from_bytes(encode({"metadata": fields | {"name": "a"}}))
    meta = obj.metadata
    assert (obj.key, meta.namespace, meta.uid, meta.resource_version, meta.generate_name) == (
        "a",
        "",
        "",
        "",
        "",
    )
    assert (meta.labels, meta.annotations, meta.finalizers, meta.owner_references) == ({}, {}, [], [])
    assert (meta.creation_timestamp, meta.deletion_timestamp, meta.generation) == (None, None, 0)


def test_it_is_a_mapping() -> None:
    obj = KubeObject.from_bytes(encode(FULL))
    assert obj["spec"]["nodeName"] == "n"
    assert list(obj) == list(FULL)
    assert len(obj) == 4
    assert "status" not in obj
    assert obj.get("status") is None
    with pytest.raises(KeyError, match="status"):
        obj["status"]


@pytest.mark.parametrize(
    ("attribute", "remedy"),
    [
        ("spec", r"obj\['spec'\], or one field as field\('spec.nodeName'\)\(obj\), or give an object type"),
        ("status", r"obj\['status'\]"),
        ("data", r"obj.get\('data'\)"),
        ("labels", "obj.metadata.labels"),
        ("annotations", "obj.metadata.annotations"),
    ],
)
def test_attribute_error_says_how_to_read_a_field(attribute: str, remedy: str) -> None:
    obj = pod()
    with pytest.raises(
        AttributeError, match=f"'KubeObject' object has no attribute '{attribute}': .*{remedy}"
    ):
        getattr(obj, attribute)
    assert not hasattr(obj, attribute)
    assert getattr(obj, attribute, 5) == 5

    class WithIt(KubeObject, frozen=True):
        pass

    setattr(WithIt, attribute, property(lambda self: self.name))
    assert getattr(WithIt.from_bytes(obj.raw), attribute) == obj.name


@pytest.mark.parametrize("field", ["", 'a"b', "a\\b", "a\nb", "\ud800", "ключ", 5, None, ()])
def test_a_field_that_no_object_has_is_a_key_error(field: Any) -> None:
    obj = pod()
    with pytest.raises(KeyError):
        obj[field]
    assert field not in obj
    assert obj.get(field, 1) == 1


def test_none_is_not_the_name_of_a_field() -> None:
    obj = pod(value=1000)
    assert None not in obj
    with pytest.raises(KeyError):
        obj[None]  # type: ignore[index]


def test_a_kind_that_is_null_is_none() -> None:
    obj = pod(kind=None, apiVersion=None)
    assert (obj.api_version, obj.kind) == ("", "")


@pytest.mark.parametrize("field", ["", 'a"b', "a\\b", "a\nb", "ключ", "a.b/c"])
def test_fields_of_any_name_are_found(field: str) -> None:
    assert KubeObject.from_dict(pod_dict() | {field: 1})[field] == 1


def test_what_a_reader_changes_reaches_no_other_reader() -> None:
    obj = KubeObject.from_bytes(encode(FULL))
    obj["spec"]["nodeName"] = "changed"
    obj.to_dict()["spec"]["nodeName"] = "changed"
    obj.metadata.labels["app"] = "changed"
    obj.metadata.finalizers.append("changed")
    assert obj.to_dict() == FULL
    assert obj.metadata.labels == {"app": "x"}
    assert obj.metadata.finalizers == ["f"]


def test_bytes_are_kept_and_buffers_copied() -> None:
    raw = encode(FULL)
    assert KubeObject.from_bytes(raw).raw is raw
    buffer = bytearray(raw)
    obj = KubeObject.from_bytes(buffer)  # type: ignore[arg-type]
    buffer[:] = b"x" * len(buffer)
    assert obj.to_dict() == FULL


def test_cluster_scoped_objects_have_no_namespace() -> None:
    obj = pod("node", namespace="")
    assert (obj.key, obj.namespace, obj.name) == ("node", "", "node")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": []}',
        b'{"metadata": {"name": 5}}',
        b'{"metadata": {"name": "a"}} x',
        b'{"metadata": {"name": "a"}, "x": NaN}',
        b'{"metadata": {"name": "a"}',
        b'\xef\xbb\xbf{"metadata": {"name": "a"}}',
        b'{"metadata": {"name": "a"}, "x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    ],
    ids=range(12),
)
def test_other_bytes_are_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        KubeObject.from_bytes(raw)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("wrong", [None, "text", 5.0])
def test_other_types_are_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        KubeObject.from_bytes(wrong)


@pytest.mark.parametrize("x", [b"1e400", b"1" * 4400], ids=lambda x: repr(x[:5]))
def test_a_field_that_cannot_be_read_spoils_only_itself(x: bytes) -> None:
    obj = KubeObject.from_bytes(b'{"metadata": {"name": "a", "labels": 5}, "x": %s, "spec": 1}' % x)
    assert obj["spec"] == 1
    assert obj.metadata.name == "a"
    with pytest.raises(DecodeError, match=r"a at no version: metadata cannot be read"):
        _ = obj.metadata.labels
    with pytest.raises(DecodeError, match="x cannot be read"):
        obj["x"]
    with pytest.raises(DecodeError, match="the object cannot be read"):
        obj.to_dict()


def test_huge_object_is_read() -> None:
    obj = pod(data={"blob": "x" * 5_000_000})
    assert len(obj["data"]["blob"]) == 5_000_000
    assert obj.key == "ns/a"


class TestEquality:
    """Design 2: how an object arrived makes no difference."""

    def test_a_list_item_equals_the_watched_object(self) -> None:
        listed = KubeObject.from_bytes(encode(pod_dict(spec={"a": 1})), POD)
        watched = pod(apiVersion="v1", kind="Pod", spec={"a": 1})
        assert listed == watched
        assert hash(listed) == hash(watched)
        assert listed.to_dict() == watched.to_dict()
        assert (listed.api_version, listed.kind) == ("v1", "Pod") == (watched.api_version, watched.kind)
        assert listed["kind"] == "Pod"
        assert "apiVersion" in listed
        assert len({listed, watched}) == 1

    @pytest.mark.parametrize("own", [{"kind": "Cave"}, {"apiVersion": "v2"}, {"kind": ""}, {"kind": None}])
    def test_what_an_item_says_itself_is_said_however_it_is_read(self, own: dict[str, Any]) -> None:
        expected = {"apiVersion": "v1", "kind": "Pod"} | pod_dict() | own
        obj = KubeObject.from_bytes(encode(pod_dict() | own), POD)
        assert obj.to_dict() == dict(obj) == {name: obj[name] for name in expected} == expected
        assert obj.decode(dict) == expected
        assert list(obj) == [name for name in expected if name in obj]

    def test_the_order_of_fields_makes_no_difference(self) -> None:
        assert pod(a=1, b=2) == pod(b=2, a=1)

    def test_different_objects_are_not_equal(self) -> None:
        assert pod() != pod(version="2")
        assert pod(spec=1) != pod(spec=2)
        assert pod() != KubeObject.from_bytes(pod().raw, POD)
        assert KubeObject.from_bytes(pod().raw, TypeMeta("v1", "Node")) != KubeObject.from_bytes(
            pod().raw, POD
        )

    def test_not_equal_is_the_opposite_of_equal(self) -> None:
        """A Struct has a ``__ne__`` of its own."""
        one, other = pod(spec={"a": 1}), pod(spec={"a": 1})
        assert not one != other  # noqa: SIM202
        assert not one.metadata != other.metadata  # noqa: SIM202
        assert not one != one.to_dict()  # noqa: SIM202
        assert one.metadata != pod("b").metadata

    def test_to_other_things(self) -> None:
        assert pod() == pod_dict()
        assert pod_dict() == pod()
        assert pod() != "ns/a"
        assert pod() != None  # noqa: E711

    def test_truth_does_not_decode(self) -> None:
        assert bool(KubeObject.from_bytes(b'{"metadata": {"name": "a"}, "x": "\xff"}'))


class TestCopies:
    @pytest.mark.parametrize("type_meta", [None, POD])
    def test_pickle(self, type_meta: TypeMeta | None) -> None:
        obj = KubeObject.from_bytes(pod().raw, type_meta)
        assert pickle.loads(pickle.dumps(obj)) == obj

    @pytest.mark.parametrize("obj", [pod(), compress_object(pod())], ids=["as it came", "compressed"])
    def test_msgspec_refuses_to_encode(self, obj: KubeObject) -> None:
        for encode in (msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins):
            for thing in (obj, WatchEvent("ADDED", obj)):
                with pytest.raises(TypeError, match="unsupported"):
                    encode(thing)
        assert msgspec.json.encode({"pod": msgspec.Raw(obj.raw)}) == b'{"pod":%s}' % obj.raw

    def test_copies_are_the_object_as_it_cannot_change(self) -> None:
        obj = pod()
        assert copy.copy(obj) is obj
        assert copy.deepcopy([obj])[0] is obj

    def test_subclass_is_kept(self) -> None:
        class Cave(KubeObject, frozen=True):
            pass

        cave = Cave.from_bytes(pod().raw)
        assert type(cave) is Cave
        kind, args = cave.__reduce__()
        assert type(kind(*args)) is Cave
        assert cave == pod()


def test_decode_to_other_types() -> None:
    listed = KubeObject.from_bytes(encode(pod_dict(spec={"a": 1})), POD)
    assert listed.decode(dict) == listed.to_dict()
    assert listed.decode(Pod) == Pod(Meta("a", "ns", "1"), "v1", "Pod", {"a": 1})
    assert listed.decode(KubeObject) == listed


def test_from_dict() -> None:
    assert KubeObject.from_dict(FULL) == FULL
    for wrong in ({}, {"metadata": {"name": object()}}, {"metadata": {"name": "a"}, "x": {1j: 2}}):
        with pytest.raises(DecodeError):
            KubeObject.from_dict(wrong)
    cycle: dict[str, Any] = {"metadata": {"name": "a"}}
    cycle["self"] = cycle
    with pytest.raises(DecodeError):
        KubeObject.from_dict(cycle)


def test_repr_has_kind_key_and_version() -> None:
    assert repr(pod(version="7")) == "<KubeObject ns/a at 7>"
    assert repr(KubeObject.from_bytes(pod(version="").raw, POD)) == "<Pod ns/a at no version>"
    assert repr(pod().metadata) == "<ObjectMeta ns/a at 1>"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=20),
    fields=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5), json_values, max_size=4
    ),
)
def test_to_dict_returns_the_input(name: str, fields: dict[str, Any]) -> None:
    whole = {**fields, "metadata": {"name": name, "namespace": "ns"}}
    obj = KubeObject.from_bytes(encode(whole))
    assert obj.to_dict() == whole
    assert obj.key == f"ns/{name}"
    assert (obj.namespace, obj.name) == ("ns", name)
    assert all(obj[field] == value for field, value in whole.items())
    assert hash(obj) == hash(pickle.loads(pickle.dumps(obj)))


class TestGarbage:
    def test_the_collector_does_not_track_objects(self) -> None:
        assert not gc.is_tracked(pod())

    def test_attributes_are_read_only(self) -> None:
        with pytest.raises(AttributeError):
            pod().raw = b""  # type: ignore[misc]


def test_it_is_a_mapping_of_its_fields() -> None:
    obj = pod()
    assert isinstance(obj, Mapping)
    assert dict(obj) == obj.to_dict() == {**obj}
    assert list(obj.keys()) == list(obj)
    assert list(obj.values()) == [obj[field] for field in obj]
    assert dict(obj.items()) == obj.to_dict()
    assert "metadata" in obj
    assert "status" not in obj
    assert 1 not in obj
    assert obj.get("status", "none") == "none"


def test_labels_that_are_not_those_of_the_metadata_are_not_its_labels() -> None:
    obj = KubeObject.from_bytes(b'{"kind":"X","metadata":{"name":"a"},"labels":{"app":"web"},"spec":{}}')
    assert obj.metadata.labels == {}
    assert read_labels(obj) == {}


def test_last_of_duplicate_labels_counts() -> None:
    """As for any other field, and in the whole."""
    raw = b'{"metadata":{"name":"a","labels":{"app":"one"},"labels":{"app":"two"}}}'
    obj = KubeObject.from_bytes(raw)
    assert obj.metadata.labels == read_labels(obj) == {"app": "two"} == obj.to_dict()["metadata"]["labels"]


labels = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
anywhere = st.sampled_from(["labels", "metadata", "a", '"labels":{', "}"])
nested = st.recursive(
    json_values | labels, lambda inner: st.dictionaries(anywhere, inner, max_size=3), max_leaves=5
)


@given(st.data())
def test_labels_are_the_same_wherever_they_stand(data: st.DataObject) -> None:
    """They are looked for where API servers write them, and found wherever they are. Where the bytes are others than
    those that were read they are read again."""
    metadata = data.draw(st.dictionaries(anywhere, nested, max_size=4)) | {"name": "a"}
    if data.draw(st.booleans()):
        metadata["labels"] = data.draw(labels)
    items = list(metadata.items())
    metadata = dict(data.draw(st.permutations(items)))
    fields = data.draw(st.dictionaries(anywhere, nested, max_size=3)) | {"metadata": metadata}
    whole = dict(data.draw(st.permutations(list(fields.items()))))
    separators = data.draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    raw = json.dumps(whole, separators=separators).encode()
    for obj in (KubeObject.from_bytes(raw), codec_for(KubeObject, drop_managed_fields=True).decode(raw)):
        assert read_labels(obj) == metadata.get("labels", {})
        if isinstance(expected := metadata.get("labels"), dict) and all(
            isinstance(label, str) for label in expected.values()
        ):
            assert obj.metadata.labels == expected


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        (ObjectMeta, "creationTimestamp", "creation_timestamp"),
        (ObjectMeta, "deletionTimestamp", "deletion_timestamp"),
        (ObjectMeta, "resourceVersion", "resource_version"),
        (ObjectMeta, "ownerReferences", "owner_references"),
        (ObjectMeta, "managedFields", "managedFields"),
        (OwnerReference, "apiVersion", "api_version"),
        (KubeObject, "apiVersion", "obj.api_version"),
    ],
)
def test_name_of_the_json_says_what_the_attribute_is_called(owner: Any, name: str, remedy: str) -> None:
    obj = pod()
    subject = {ObjectMeta: obj.metadata, OwnerReference: OwnerReference(), KubeObject: obj}[owner]
    with pytest.raises(
        AttributeError, match=f"{owner.__name__!r} object has no attribute {name!r}: .*{remedy}"
    ):
        getattr(subject, name)
    assert getattr(subject, name, None) is None


def test_error_for_a_path_as_a_key_names_the_reader_of_paths() -> None:
    obj = KubeObject.from_dict({"metadata": {"name": "a"}, "spec": {}})
    with pytest.raises(KeyError) as raised:
        obj["spec.nodeName"]
    assert raised.value.__notes__ == [
        "This reads top-level fields; read a path with field('spec.nodeName')(obj)"
    ]
    assert obj.get("spec.nodeName") is None
