"""UndecodableObject: what can be read of an object that does not fit its type."""

from __future__ import annotations

import copy
import pickle

import pytest

from aioinformer import DecodeError, UndecodableObject
from aioinformer.objects.keys import (
    is_deleting,
    key_and_version,
    labels_of,
    meta_namespace_key_func,
    namespace_of,
    resource_version_of,
    same_version,
    uid_of,
)
from aioinformer.objects.undecodable import undecodable
from aioinformer.operator.metadata import owners_of

from ..narrow import fit, raw, unfit
from .protobuf.samples import kube_object, pod_protobuf


def test_metadata_and_fields_of_an_undecodable_object_can_be_read() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    obj = unfit(
        "a",
        5,
        labels={"app": "web"},
        finalizers=["example.com/f"],
        deletionTimestamp="2024-01-01T00:00:00Z",
        ownerReferences=[owner],
    )
    assert meta_namespace_key_func(obj) == obj.key == "default/a"
    assert (namespace_of(obj), uid_of(obj), resource_version_of(obj)) == ("default", "uid-a", "5")
    assert (labels_of(obj), obj.metadata.finalizers, is_deleting(obj)) == (
        {"app": "web"},
        ["example.com/f"],
        True,
    )
    assert [(reference.name, reference.controller) for reference in owners_of(obj)] == [("n", True)]
    assert (obj["spec"], obj.kind) == ({"node": 7}, "Pod")
    assert key_and_version(obj) == ("default/a", "5")
    assert same_version(obj, unfit("a", 5))
    assert not same_version(obj, unfit("a", 6))


def test_each_error_of_an_undecodable_object_is_new() -> None:
    obj = unfit("a", 5)
    for _ in range(3):
        with pytest.raises(DecodeError, match="a does not fit, version 5") as caught:
            raise obj.error
        assert len(caught.traceback) == 1


def test_reading_a_typed_field_says_that_the_object_does_not_fit() -> None:
    with pytest.raises(AttributeError, match=r"does not fit its type; read it as obj\['spec'\]"):
        unfit("a", 5).spec  # type: ignore[attr-defined]  # noqa: B018


def test_undecodable_object_keeps_the_last_state_that_fitted() -> None:
    first = fit("a", 1)
    second = unfit("a", 2).after(first)
    third = unfit("a", 3).after(second)
    assert third.last is second.last is first
    assert unfit("a", 2).after(None).last is None
    assert third.last_before(fit("a", 4)) is first
    assert third.last_before(fit("a", 1)) is None


@pytest.mark.parametrize("copied", [lambda obj: pickle.loads(pickle.dumps(obj)), copy.deepcopy, copy.copy])
def test_copies_of_an_undecodable_object_have_its_error(copied: object) -> None:
    assert callable(copied)
    obj = copied(unfit("a", 5))
    assert isinstance(obj, UndecodableObject)
    assert (obj.key, str(obj.error)) == ("default/a", "a does not fit, version 5")


def test_undecodable_object_keeps_the_form_of_its_bytes() -> None:
    whole = kube_object(pod_protobuf("a", "ns", "5"))
    obj = undecodable(whole, None, "it does not fit")
    assert (obj.key, obj.uid, obj.resource_version) == (whole.key, whole.uid, whole.resource_version)
    assert obj["metadata"] == whole["metadata"]


def test_undecodable_object_without_a_namespace_in_its_type_has_the_name_for_a_key() -> None:
    assert undecodable(raw("a", 1), None, "", has_namespace=False).key == "a"


@pytest.mark.parametrize("value", [b"{", b"[]", b'{"spec": {}}', DecodeError("unread"), 7])
def test_value_without_a_readable_name_is_no_undecodable_object(value: object) -> None:
    with pytest.raises(DecodeError):
        undecodable(value, None, "")
