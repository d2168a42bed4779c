"""Messages as dicts of what JSON says: by Kubernetes' own examples, and rule by rule."""

from __future__ import annotations

import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.objects.kube_object import on_path
from aioinformer.objects.protobuf import PROTOBUF_ERRORS, read_envelope
from aioinformer.objects.protobuf.messages import _warn_of_unknown_field, message
from aioinformer.objects.protobuf.schema import message_of, schema

from . import samples
from .samples import WHOLE, WHOLE_JSON, entry, field

POD = "core/v1.Pod"

_GONE = {
    "workloadRef": "of pods, in 1.35 alone",
    "deviceClassName": "of DeviceTaintRules, until 1.34",
    "selectors": "likewise",
}
"""Alpha fields that there were."""


def read(name: str, data: bytes, *path: str) -> dict[str, Any]:
    return message(name, on_path(*path)).read(data, 0, len(data))


def examples(folder: Path) -> list[tuple[str, str, bytes, dict[str, Any]]]:
    """Of each known kind its name, its message, its protobuf and its JSON."""
    messages: list[tuple[str, str, bytes, dict[str, Any]]] = []
    for file in sorted(folder.glob("*.json")):
        fields = json.loads(file.read_text())
        name = message_of(fields.pop("apiVersion", ""), fields.pop("kind", ""))
        raw = file.with_suffix(".pb")
        if name is not None and raw.exists():
            body = raw.read_bytes()
            _, begin, end = read_envelope(body, 0, len(body))
            messages.append((file.stem, name, body[begin:end], fields))
    return messages


def without(value: Any, names: set[str]) -> Any:
    """A value of JSON without some fields, wherever they are."""
    if isinstance(value, dict):
        return {name: without(member, names) for name, member in value.items() if name not in names}
    return [without(element, names) for element in value] if isinstance(value, list) else value


@pytest.mark.parametrize("version", ["HEAD", "v1.35.0", "v1.34.0", "v1.33.0"])
def test_kubernetes_own_examples_read_as_their_json(kubernetes_testdata: Path, version: str) -> None:
    """With every field set that there is: what Go's encoding/json and its protobuf make of the same object."""
    messages = examples(kubernetes_testdata / version)
    assert len(messages) > 80
    for name, its_message, raw, expected in messages:
        fields = read(its_message, raw)
        if "StatefulSet" in name:  # API servers fill in what the examples do not say
            for template in fields["spec"]["volumeClaimTemplates"]:
                assert (template.pop("apiVersion"), template.pop("kind")) == ("v1", "PersistentVolumeClaim")
        if version != "HEAD":
            fields, expected = (without(content, set(_GONE)) for content in (fields, expected))
            if "DeviceTaintRule" in name or "PodCertificateRequest" in name:
                continue  # changed altogether while they were alpha, and beta
        assert fields == expected, name


def test_every_path_of_an_example_reads_as_in_the_whole(kubernetes_testdata: Path) -> None:
    for name, its_message, raw, _ in examples(kubernetes_testdata / "HEAD"):
        for field_name, value in read(its_message, raw).items():
            assert read(its_message, raw, field_name) == {field_name: value}, (name, field_name)
            for inner, its_value in value.items() if isinstance(value, dict) else ():
                fields = read(its_message, raw, field_name, inner)
                assert fields[field_name][inner] == its_value, (name, field_name, inner)


def test_pod_equals_its_json() -> None:
    assert read(POD, WHOLE) == WHOLE_JSON


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("metadata", "labels"), {"metadata": {"labels": {"app": "web", "tier": ""}}}),
        (("spec", "nodeName"), {"spec": {"nodeName": "node-1"}}),
        (("spec", "nodeSelector", "disk"), {"spec": {"nodeSelector": {"disk": "ssd"}}}),
        (("spec", "containers", "image"), {"spec": {"containers": [{"image": "example.com/app:1"}]}}),
        (
            ("spec", "volumes", "emptyDir"),
            {"spec": {"volumes": [{"emptyDir": {}}]}},
        ),  # embedded: a VolumeSource's
        (("spec", "hostIPC"), {"spec": {}}),
        (("spec", "nodename"), {"spec": {}}),
        (("specs",), {}),
        (
            ("status", "containerStatuses", "lastState"),
            {"status": {"containerStatuses": [{"lastState": {}}]}},
        ),
    ],
)
def test_path_reads_no_other_fields(path: tuple[str, ...], expected: dict[str, Any]) -> None:
    assert read(POD, WHOLE, *path) == expected


def test_missing_path_reads_as_in_the_whole_object() -> None:
    data = samples.field(1, samples.metadata()) + samples.field(3, field(1, "Running"))  # without a spec
    assert read(POD, data, "spec") == {"spec": {"containers": None}}
    assert read(POD, data, "spec", "nodeName") == {"spec": {}}
    assert read(POD, data, "spec", "containers", "image") == {"spec": {"containers": None}}


def test_several_fields_can_be_wanted() -> None:
    wanted = (("metadata", (("name", ()), ("uid", ()))), ("kind", ()), ("status", (("phase", ()),)))
    fields = message(POD, wanted).read(WHOLE, 0, len(WHOLE))
    assert fields == {"metadata": {"name": "web-1", "uid": "uid-web-1"}, "status": {"phase": "Running"}}


def test_missing_fields_follow_encoding_json() -> None:
    assert read("rbac/v1.Role", b"") == {"metadata": {}, "rules": None}  # a nil slice, without omitempty
    assert read("core/v1.Secret", field(2, entry("a", b""))) == {"metadata": {}, "data": {"a": ""}}
    assert read("apps/v1.DeploymentSpec", b"") == {
        "selector": None,  # a nil pointer, without omitempty
        "template": {"metadata": {}, "spec": {"containers": None}},
        "strategy": {},
    }
    assert read("core/v1.Pod", b"") == {"metadata": {}, "spec": {"containers": None}, "status": {}}


def test_empty_values_follow_encoding_json() -> None:
    # omitempty drops what is empty, but not where a pointer points to it
    assert read("core/v1.PodSpec", field(3, "") + field(4, 0) + field(11, 0)) == {
        "containers": None,
        "terminationGracePeriodSeconds": 0,
    }
    assert read("core/v1.Container", field(1, "") + field(7, b"")) == {
        "name": "",
        "env": [{"name": ""}],
        "resources": {},
    }


@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**31 - 1, -1, -(2**31), 2**63 - 1, -(2**63)])
def test_numbers_are_signed(number: int) -> None:
    assert read("core/v1.PodSpec", field(4, number), "terminationGracePeriodSeconds") == {
        "terminationGracePeriodSeconds": number
    }


def test_lists_of_numbers() -> None:
    data = field(4, 1000) + field(4, 0) + field(4, -5)
    assert read("core/v1.PodSecurityContext", data) == {"supplementalGroups": [1000, 0, -5]}


def test_object_inside_another_has_its_kind() -> None:
    """As API servers make it do in JSON; protobuf leaves it out."""
    data = field(2, field(4, field(1, samples.metadata("data", ""))))
    [template] = read("apps/v1.StatefulSet", data)["spec"]["volumeClaimTemplates"]
    assert (template["apiVersion"], template["kind"]) == ("v1", "PersistentVolumeClaim")
    assert template["metadata"]["name"] == "data"


def test_unknown_fields_are_skipped_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    _warn_of_unknown_field.cache_clear()
    data = field(1, "n") + field(98, "new") + field(99, 7) + field(99, 8)
    for _ in range(3):
        assert read("core/v1.Container", data) == {"name": "n", "resources": {}}
    assert read("core/v1.Container", data, "name") == {"name": "n"}
    with_other_wires = (
        field(1, "n") + b"\xf9\x06" + bytes(8) + b"\xfd\x06" + bytes(4)
    )  # of 64 and 32 bits, number 111
    assert read("core/v1.Container", with_other_wires) == {"name": "n", "resources": {}}
    said = [record.getMessage() for record in caplog.records]
    assert [warning.partition("number ")[2].partition(":")[0] for warning in said] == [
        f"{number} of core/v1.Container" for number in (98, 99, 111)
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\xff",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80",
        b"\x12\x03\x0a\x05a",  # ends behind the message that it is in
        field(1, field(17, field(7, field(1, "{")))),  # JSON that is none
        b"\x0b\x0c",  # a group
    ],
)
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(PROTOBUF_ERRORS):
        read(POD, data)


@given(st.data())
def test_damaged_bytes_raise_only_protobuf_errors(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    for path in ((), ("metadata",), ("spec", "containers")):
        with contextlib.suppress(*PROTOBUF_ERRORS):
            assert isinstance(read(POD, cut, *path), dict)


@given(st.binary(max_size=60))
def test_noise_raises_only_protobuf_errors(data: bytes) -> None:
    for name in (POD, "core/v1.Secret", "meta/v1.ObjectMeta", "apps/v1.StatefulSetSpec"):
        with contextlib.suppress(*PROTOBUF_ERRORS):
            assert isinstance(read(name, data), dict)


def test_all_messages_of_the_schema_can_be_read() -> None:
    for name in schema().messages:
        assert isinstance(message(name).zero(), dict)
