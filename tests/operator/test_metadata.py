"""operator/metadata.py: metadata of every type of object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import pytest

from aioinformer import Client, ConfigError, KubeObject, OwnerReference
from aioinformer.objects.keys import is_deleting, type_of
from aioinformer.operator import (
    AnnotationsChanged,
    Change,
    Controller,
    Deleting,
    FieldsChanged,
    FinalizersChanged,
    GenerationChanged,
    LabelsChanged,
    LabelsMatch,
    Manager,
    Owns,
    Request,
    Watch,
    When,
    controller_of,
    owner_reference,
)
from aioinformer.operator.metadata import owners_of

FIELDS: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Cave",
    "metadata": {
        "name": "blue",
        "uid": "1-2",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "3", "controller": True}
        ],
    },
}


class Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    owner_references: list[dict[str, Any]] = []


class Cave(msgspec.Struct, rename="camel"):
    metadata: Meta
    api_version: str = ""
    kind: str = ""


KINDS: list[Any] = [KubeObject.from_dict, dict, lambda fields: msgspec.convert(fields, Cave)]


@pytest.mark.parametrize("kind", KINDS)
def test_owner_is_read_from_every_type(kind: Any) -> None:
    obj = kind(FIELDS)
    assert type_of(obj) == ("example.com/v1", "Cave")
    assert owners_of(obj) == [OwnerReference("n", "Node", "3", "v1", controller=True)]
    assert is_deleting(obj)
    assert owner_reference(obj) == {
        "apiVersion": "example.com/v1",
        "kind": "Cave",
        "name": "blue",
        "uid": "1-2",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert owner_reference(obj, controller=False)["controller"] is False
    assert controller_of(obj) == OwnerReference("n", "Node", "3", "v1", controller=True)


@pytest.mark.parametrize("kind", KINDS)
def test_owner_without_kind_or_uid_is_refused(kind: Any) -> None:
    obj = kind({"metadata": {"name": "blue"}})
    assert type_of(obj) == ("", "")
    assert owners_of(obj) == []
    assert controller_of(obj) is None
    assert controller_of(kind({"metadata": {"name": "blue", "ownerReferences": [{"uid": "3"}]}})) is None
    assert not is_deleting(obj)
    with pytest.raises(ConfigError, match="an owner reference needs apiVersion, kind, uid, which "):
        owner_reference(obj)
    with pytest.raises(
        ConfigError, match=r"needs an owner, not None: request\.object is None once .* is gone"
    ):
        owner_reference(None)
    with pytest.raises(ConfigError, match="an owner reference needs uid, which "):
        owner_reference(kind({"apiVersion": "v1", "kind": "Cave", "metadata": {"name": "blue"}}))


@pytest.mark.parametrize("kind", KINDS)
def test_owner_from_metadata_only_needs_a_kind(kind: Any) -> None:
    obj = kind({**FIELDS, "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"})
    assert type_of(obj) == ("", "")
    with pytest.raises(
        ConfigError, match=r'needs apiVersion, kind, which .* lacks: .* metadata_only=True.* "kind"'
    ):
        owner_reference(obj)
    if isinstance(obj, (KubeObject, dict)):
        assert owner_reference({**obj, "apiVersion": "v1", "kind": "Node"})["uid"] == "1-2"


# -- what a Struct forgets ---------------------------------------------------------------------------------


class Scant(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""
    finalizers: list[str] = []


class ScantOwner(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    name: str


class Misnamed(Scant, rename={"stamp": "deletionTimestamp", "resource_version": "resourceVersion"}):
    stamp: str | None = None


class Bare(TypedDict):
    name: str
    resourceVersion: str


class OfScantOwners(Scant, rename="camel"):
    owner_references: list[ScantOwner] | None = None


M = TypeVar("M")


class Thing(msgspec.Struct, Generic[M]):
    metadata: M


async def reconcile(request: Request[Any]) -> None:
    return None


def anything(change: Change[Any]) -> bool:
    return True


def with_predicate(predicate: Any) -> Callable[[Manager, type[Any]], object]:
    return lambda manager, kind: Owns(manager.for_resource("v1", "configmaps", kind), predicate)


def add_watch(manager: Manager, kind: type[Any]) -> object:
    maps = manager.for_resource("v1", "configmaps", kind)
    return Watch(maps, lambda obj: None, LabelsChanged())


def add_owner(manager: Manager, kind: type[Any]) -> object:
    primary = manager.for_resource("v1", "configmaps")
    return Controller("x", reconcile, primary, owns=[manager.for_resource("v1", "secrets", kind)])


def add_filter(manager: Manager, kind: type[Any]) -> object:
    maps = manager.for_resource("v1", "configmaps", kind)
    return Controller("x", reconcile, maps, predicate=GenerationChanged())


def add_cleanup(manager: Manager, kind: type[Any]) -> object:
    maps = manager.resource("v1", "configmaps", kind)
    return Controller("x", reconcile, maps, finalizer="example.com/a", cleanup=reconcile)


@pytest.mark.parametrize("metadata", [Scant, Scant | None, Bare], ids=["Struct", "optional", "TypedDict"])
@pytest.mark.parametrize(
    ("use", "lacks"),
    [
        (add_filter, r"lacks generation, which the predicate GenerationChanged\(\) reads"),
        (
            add_cleanup,
            "lacks deletionTimestamp, which the finalizer example.com/a of x reads: declare `deletion_ti",
        ),
        (add_owner, "lacks ownerReferences, which Owns reads: declare `owner_references: list"),
        (add_watch, r"lacks labels, which the predicate LabelsChanged\(\) reads"),
        (with_predicate(LabelsMatch("a=b")), "lacks labels"),
        (with_predicate(AnnotationsChanged()), "lacks annotations"),
        (with_predicate(~Deleting()), "lacks deletionTimestamp"),
        (with_predicate(anything & GenerationChanged()), "lacks generation"),
        (with_predicate(LabelsChanged() | anything), "lacks labels"),
        (with_predicate(When(LabelsChanged())), "lacks labels"),
    ],
)
def test_struct_without_a_needed_field_is_refused(use: Any, lacks: str, metadata: Any) -> None:
    with pytest.raises(ConfigError, match=rf"Thing\.metadata {lacks}"):
        use(Manager(Client.from_url("http://127.0.0.1:1")), Thing[metadata])


def test_all_missing_fields_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        add_cleanup(Manager(Client.from_url("http://127.0.0.1:1")), Thing[Scant])
    for name in ("deletionTimestamp", "uid", "generation", "labels", "annotations", "ownerReferences"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    "predicate", [FieldsChanged("spec.nodeName"), anything & ~FieldsChanged("metadata.name", "spec.nodeName")]
)
def test_missing_field_of_a_path_is_named(predicate: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"'spec\.nodeName' is no field of a Thing: Thing has no spec, but metadata"
    ):
        with_predicate(predicate)(Manager(Client.from_url("http://127.0.0.1:1")), Thing[Meta])


@pytest.mark.parametrize(
    ("use", "metadata", "lacks"),
    [
        (add_cleanup, Misnamed, "lacks deletionTimestamp"),
        (with_predicate(FinalizersChanged()), Bare, "lacks finalizers"),
        (add_owner, OfScantOwners, "owner_references lacks controller, which Owns reads"),
    ],
)
def test_field_of_another_name_or_an_incomplete_reference_is_named(
    use: Any, metadata: Any, lacks: str
) -> None:
    with pytest.raises(ConfigError, match=lacks):
        use(Manager(Client.from_url("http://127.0.0.1:1")), Thing[metadata])


@pytest.mark.parametrize("metadata", [Meta, Meta | None, dict[str, Any], msgspec.Raw])
def test_types_that_keep_all_fields_and_unread_fields_are_accepted(metadata: Any) -> None:
    manager = Manager(Client.from_url("http://127.0.0.1:1"))
    filter_of = with_predicate(~Deleting() & anything)
    assert filter_of(manager, Thing[metadata])
    assert add_owner(manager, Thing[metadata])
    assert add_filter(manager, KubeObject)
    assert add_cleanup(manager, dict)
