"""Messages as Go writes them: by Kubernetes' own examples, and rule by rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aioinformer.objects.meta import BOOKMARK
from aioinformer.objects.protobuf.messages import message
from aioinformer.objects.protobuf.schema import message_of, schema
from aioinformer.testing.errors import MarshalError
from aioinformer.testing.http.encodings import PROTOBUF
from aioinformer.testing.protobuf import frame, marshaller
from tests.objects.protobuf.samples import entry, field
from tests.objects.protobuf.samples import message as written


def test_kubernetes_own_examples_are_written_byte_by_byte(kubernetes_testdata: Path) -> None:
    """All fields are set; e2e/test_protobuf.py has objects with few fields."""
    compared = 0
    for file in sorted((kubernetes_testdata / "HEAD").glob("*.json")):
        obj = json.loads(file.read_text())
        if message_of(obj.get("apiVersion", ""), obj.get("kind", "")) is not None:
            assert PROTOBUF.body(obj) == file.with_suffix(".pb").read_bytes(), file.name
            compared += 1
    assert compared > 100


@pytest.mark.parametrize("name", schema().messages)
def test_fields_missing_in_json_read_as_missing(name: str) -> None:
    empty = marshaller(name)({})
    assert message(name).read(empty, 0, len(empty)) == message(name).zero()


def test_empty_non_pointer_fields_are_written() -> None:
    """The bytes are kube-apiserver's own, of a bookmark."""
    metadata = {"resourceVersion": "226", "annotations": {"k8s.io/initial-events-end": "true"}}
    bookmark = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    assert frame(BOOKMARK, PROTOBUF.body(bookmark)) == (
        b"\x00\x00\x00\x90\n\x08BOOKMARK\x12\x83\x01\n\x80\x01k8s\x00\n\t\n\x02v1\x12\x03Pod\x12k\n6\n\x00\x12\x00"
        b'\x1a\x00"\x00*\x002\x032268\x00B\x00b!\n\x19k8s.io/initial-events-end\x12\x04true\x12\x1c\x1a\x002\x00B\x00'
        b'J\x00R\x00X\x00`\x00h\x00\x82\x01\x00\x8a\x01\x00\x9a\x01\x00\xc2\x01\x00\x1a\x13\n\x00\x1a\x00"\x00*\x002\x00J'
        b'\x00Z\x00r\x00\x88\x01\x00\x1a\x00"\x00'
    )


@pytest.mark.parametrize(
    ("name", "field_name", "value", "expected"),
    [
        ("core/v1.PodSpec", "priority", -1, field(25, (1 << 64) - 1)),
        ("core/v1.PodSpec", "priority", 0, field(25, 0)),
        ("core/v1.PodSpec", "shareProcessNamespace", False, field(27, 0)),
        ("core/v1.PodSpec", "nodeSelector", {"b": "2", "a": "1"},
         field(7, entry("a", "1")) + field(7, entry("b", "2"))),
        ("core/v1.PodSpec", "nodeSelector", {}, b""),
        ("core/v1.PodSpec", "containers", [], b""),
        ("core/v1.Secret", "data", {"a": "", "b": None, "c": "AP8="},
         field(2, entry("a", "")) + field(2, field(1, "b")) + field(2, entry("c", b"\x00\xff"))),
        ("core/v1.ConfigMap", "data", {"a": None}, field(2, entry("a", ""))),
        ("core/v1.ResourceRequirements", "limits", {"cpu": 2, "memory": "1Gi", "x": None},
         field(1, entry("cpu", field(1, "2"))) + field(1, entry("memory", field(1, "1Gi")))
         + field(1, entry("x", field(1, "0")))),
        ("meta/v1.ObjectMeta", "deletionTimestamp", "1969-12-31T23:59:58.9Z",
         field(9, written((1, (1 << 64) - 2), (2, 0)))),
        ("meta/v1.ObjectMeta", "deletionTimestamp", "0001-01-01T00:00:00Z", field(9, b"")),
        ("meta/v1.ObjectMeta", "deletionTimestamp", None, b""),
        ("coordination/v1.LeaseSpec", "renewTime", "2026-01-02T04:04:05.123456+01:00",
         field(4, written((1, 1767323045), (2, 123456000)))),
        ("coordination/v1.LeaseSpec", "renewTime", "0001-01-01T00:00:00Z", field(4, b"")),
        ("meta/v1.ManagedFieldsEntry", "fieldsV1", {"f:a": {}}, field(7, field(1, '{"f:a":{}}'))),
        ("authentication/v1.UserInfo", "extra", {"a": ["1", "2"]}, field(4, entry("a", field(1, "1") + field(1, "2")))),
    ],
)  # fmt: skip
def test_values(name: str, field_name: str, value: Any, expected: bytes) -> None:
    whole = marshaller(name)({field_name: value})
    assert expected in whole
    assert whole.replace(expected, b"", 1) == marshaller(name)({})


@pytest.mark.parametrize(
    ("port", "expected"), [("http", (1, 0, "http")), (80, (0, 80, "")), (None, (0, 0, ""))]
)
def test_an_int_or_string_has_all_its_fields(port: Any, expected: tuple[int, int, str]) -> None:
    kind, number, text = expected
    of_port = written((1, kind), (2, number), (3, text))
    assert marshaller("core/v1.TCPSocketAction")({"port": port}) == field(1, of_port) + field(2, "")


def test_fields_that_kubernetes_does_not_have_are_left_out() -> None:
    assert marshaller("core/v1.PodSpec")({"x": 1, "y": {}}) == marshaller("core/v1.PodSpec")({})


@pytest.mark.parametrize(
    ("name", "obj", "said"),
    [
        ("core/v1.PodSpec", {"priority": "5"}, "priority of a core/v1.PodSpec cannot be '5': it is no whole number"),
        ("core/v1.PodSpec", {"priority": True}, "it is no whole number"),
        ("core/v1.PodSpec", {"hostNetwork": 1}, "it is neither true nor false"),
        ("core/v1.PodSpec", {"nodeName": 1}, "nodeName of a core/v1.PodSpec cannot be 1"),
        ("core/v1.PodSpec", {"containers": {}}, "it is no list"),
        ("core/v1.PodSpec", {"containers": ["x"]}, "'x' is no core/v1.Container"),
        ("core/v1.PodSpec", {"nodeSelector": []}, "nodeSelector of a core/v1.PodSpec cannot be []"),
        ("core/v1.Secret", {"data": {"a": "x"}}, "data of a core/v1.Secret"),
        ("meta/v1.ObjectMeta", {"creationTimestamp": "now"}, "creationTimestamp of a meta/v1.ObjectMeta"),
        ("core/v1.Pod", {"spec": 1}, "1 is no core/v1.PodSpec"),
    ],
)  # fmt: skip
def test_values_of_the_wrong_type_are_refused(name: str, obj: dict[str, Any], said: str) -> None:
    with pytest.raises(MarshalError) as raised:
        marshaller(name)(obj)
    assert said in str(raised.value)


def test_kind_without_protobuf() -> None:
    with pytest.raises(MarshalError, match=r"no protobuf of the kind Cave of example.com/v1"):
        PROTOBUF.body({"apiVersion": "example.com/v1", "kind": "Cave"})
