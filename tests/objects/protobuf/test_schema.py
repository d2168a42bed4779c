from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aioinformer.objects.protobuf import is_known
from aioinformer.objects.protobuf import schema as module
from aioinformer.objects.protobuf.schema import kind_inside, message_of, schema


def test_schema_equals_kubernetes_types(kubernetes_binaries: Path) -> None:
    said = subprocess.check_output([kubernetes_binaries / "protobuf-schema"])
    assert Path(module.__file__).with_name("schema.json").read_bytes() == said, (
        "run `make schema`: schema.json is of other types than those that go.mod names"
    )


@pytest.mark.parametrize(
    ("api_version", "plural", "known"),
    [
        ("v1", "pods", True),
        ("v1", "endpoints", True),
        ("apps/v1", "deployments", True),
        ("networking.k8s.io/v1", "networkpolicies", True),
        ("networking.k8s.io/v1", "ingresses", True),
        ("v1", "pod", False),
        ("apps/v2", "deployments", False),
        ("extensions/v1beta1", "ingresses", False),  # gone since 1.22
        ("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
        ("example.com/v1", "caves", False),
        ("meta.k8s.io/v1", "pods", False),
    ],
)
def test_which_collections_can_be_read(api_version: str, plural: str, known: bool) -> None:
    assert is_known(api_version, plural) is known


def test_messages_of_kinds() -> None:
    assert message_of("v1", "Pod") == "core/v1.Pod"
    assert message_of("meta.k8s.io/v1", "PartialObjectMetadata") == "meta/v1.PartialObjectMetadata"
    assert message_of("v1", "Status") == "meta/v1.Status"
    assert message_of("v1", "Cave") is message_of("v9", "Pod") is None


def test_every_object_begins_with_its_metadata() -> None:
    """What is read of it without the schema relies on that."""
    for api_version, kinds in schema().resources.items():
        for kind in kinds.values():
            name = message_of(api_version, kind)
            assert name is not None
            first = schema().fields(name)[0]
            assert (first.number, first.name, first.type) == (1, "metadata", "meta/v1.ObjectMeta")


def test_kinds_inside_of_others() -> None:
    assert kind_inside("core/v1.PersistentVolumeClaim") == {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
    }
    assert kind_inside("core/v1.PodSpec") is None
