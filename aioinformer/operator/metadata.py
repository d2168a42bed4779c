"""Metadata of every kind of object: KubeObjects, dicts, Structs, models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from ..errors import ConfigError, shortened
from ..objects.decoders import class_of
from ..objects.fields import Field
from ..objects.keys import (
    kind_hint,
    metadata_field,
    read_field,
    type_of,
    uid_of,
)
from ..objects.kube_object import OwnerReference


class MetadataField(NamedTuple):
    """A field of the metadata.

    Attributes:
        name: What it is called on the wire.
        attribute: What it is called in Python.
        declared: What a Struct may say of it.
    """

    name: str
    attribute: str
    declared: str


NAME = MetadataField("name", "name", "str")
LABELS = MetadataField("labels", "labels", "dict[str, str] = {}")
ANNOTATIONS = MetadataField("annotations", "annotations", "dict[str, str] = {}")
FINALIZERS = MetadataField("finalizers", "finalizers", "list[str] = []")
GENERATION = MetadataField("generation", "generation", "int = 0")
DELETION_TIMESTAMP = MetadataField("deletionTimestamp", "deletion_timestamp", "str | None = None")
OWNER_REFERENCES = MetadataField("ownerReferences", "owner_references", "list[dict[str, Any]] = []")

UID = MetadataField("uid", "uid", 'str = ""')
RESOURCE_VERSION = MetadataField("resourceVersion", "resource_version", 'str = ""')

_ALL = (
    UID, RESOURCE_VERSION, GENERATION, LABELS, ANNOTATIONS, FINALIZERS, DELETION_TIMESTAMP, OWNER_REFERENCES,
)  # fmt: skip

_OF_OWNERS = (
    MetadataField("apiVersion", "api_version", "str"),
    MetadataField("kind", "kind", "str"),
    MetadataField("name", "name", "str"),
    MetadataField("controller", "controller", "bool = False"),
)
"""What is read of each owner reference."""


def require_fields(object_type: Any, fields: Collection[MetadataField | Field], reader: str) -> None:
    """Find out that objects of a type forget what somebody reads, who would take it for never set.

    Args:
        object_type: A Struct may; all other types have everything.
        fields: What is read, of the metadata or by a path; of owner references, also what is read of each.
        reader: Who reads it.

    Raises:
        ConfigError: It lacks one, which the message names.
    """
    kind = class_of(object_type)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    metadata = _inner(inspect.type_info(object_type), "metadata")
    where = f"{kind.__name__}.metadata"
    wanted = [each for each in fields if isinstance(each, MetadataField)]
    lacks = [*_lacks(metadata, wanted, where, reader)]
    if OWNER_REFERENCES in fields and isinstance(
        references := _inner(metadata, OWNER_REFERENCES.name), inspect.CollectionType
    ):
        lacks += _lacks(references.item_type, _OF_OWNERS, f"{where}.{OWNER_REFERENCES.attribute}", reader)
    if lacks:
        others = ", ".join(
            each.name for each in _ALL if each not in wanted and [*_lacks(metadata, [each], where, reader)]
        )
        hint = f". What else reads objects may want {others}, which it lacks, too" if others else ""
        raise ConfigError(f"{'; '.join(lacks)}{hint}")
    for each in fields:
        if isinstance(each, Field):
            each.require_known(object_type)


def _lacks(
    kind: inspect.Type | None, fields: Iterable[MetadataField], where: str, reader: str
) -> Iterator[str]:
    """Of each field that a type has not, that it lacks it and how it is declared."""
    known = _known(kind)
    if known is None:
        return
    for field in fields:
        if field.name not in known or known[field.name].name not in (field.attribute, field.name):
            yield f"{where} lacks {field.name}, which {reader} reads: give it `{field.attribute}: {field.declared}`"


def _known(kind: inspect.Type | None) -> dict[str, inspect.Field] | None:
    """The fields of a type that forgets all others, by their names on the wire; None of one that may be anything."""
    for each in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if isinstance(each, (inspect.StructType, inspect.TypedDictType, inspect.DataclassType)):
            return {field.encode_name: field for field in each.fields}
    return None


def _inner(kind: inspect.Type | None, name: str) -> inspect.Type | None:
    """What a field of a type is, but for None."""
    known = _known(kind)
    if known is None or name not in known:
        return None
    inner = known[name].type
    if not isinstance(inner, inspect.UnionType):
        return inner
    return next((each for each in inner.types if not isinstance(each, inspect.NoneType)), None)


def read_metadata(obj: Any, field: MetadataField) -> Any:
    """One field of an object's metadata; None where there is none."""
    return metadata_field(obj, field.attribute, field.name)


def owners_of(obj: Any) -> list[OwnerReference]:
    """The owners that an object refers to, whether they wait for its deletion left aside."""
    references = read_metadata(obj, OWNER_REFERENCES) or ()
    return [
        OwnerReference(
            read_field(each, "name", "name") or "",
            read_field(each, "kind", "kind") or "",
            read_field(each, "uid", "uid") or "",
            read_field(each, "api_version", "apiVersion") or "",
            bool(read_field(each, "controller", "controller")),
        )
        for each in references
    ]


def controller_of(obj: Any) -> OwnerReference | None:
    """The owner that manages an object, which others leave alone; None if none does (``GetControllerOf``)."""
    return next((owner for owner in owners_of(obj) if owner.controller), None)


def owner_reference(owner: Any, *, controller: bool = True) -> dict[str, Any]:
    """What an object's ``metadata.ownerReferences`` says of its owner (controllerutil ``SetControllerReference``).

    What has it goes when the owner does, and no owner goes in the foreground before it.

    Args:
        owner: An object as the server gave it, of a type that has apiVersion, kind and uid. Metadata alone does not
            say its kind: ``owner_reference({**obj, "apiVersion": "apps/v1", "kind": "Deployment"})``.
        controller: Whether the owner is the one that manages the object, of which there is one at most.

    Raises:
        ConfigError: The owner does not say who it is.
    """
    api_version, kind = type_of(owner)
    name, uid = read_metadata(owner, NAME), uid_of(owner)
    who = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    if missing := [field for field, value in who.items() if not value]:
        raise ConfigError(
            f"an owner is referred to by {', '.join(missing)}, which {shortened(owner)} lacks{kind_hint(owner)}"
        )
    return {**who, "controller": controller, "blockOwnerDeletion": True}
