"""Read the metadata of objects of every type: KubeObjects, dicts, Structs, models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from ..errors import ConfigError, outline
from ..objects.class_types import type_info
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
        name: Its name on the wire.
        attribute: Its name in Python.
        declared: How a Struct may declare it.
    """

    name: str
    attribute: str
    declared: str


NAME = MetadataField("name", "name", "str")
LABELS = MetadataField("labels", "labels", "dict[str, str] = {}")
ANNOTATIONS = MetadataField("annotations", "annotations", "dict[str, str] = {}")
FINALIZERS = MetadataField("finalizers", "finalizers", "list[str] = []")
GENERATION = MetadataField("generation", "generation", "int = 0")
CREATION_TIMESTAMP = MetadataField("creationTimestamp", "creation_timestamp", "datetime | None = None")
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
"""The fields that are read of each owner reference."""


def require_fields(object_type: Any, fields: Collection[MetadataField | Field], reader: str) -> None:
    """Check that objects of a type keep the fields that are read from them.

    A Struct drops fields that it does not declare; the reader would take them for unset.

    Args:
        object_type: The type of the objects. Types other than Structs keep all fields.
        fields: The fields: of the metadata, or by path. For owner references, their own fields are checked, too.
        reader: What reads them, for the message.

    Raises:
        ConfigError: The type lacks some; the message names them.
    """
    kind = class_of(object_type)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    metadata = _inner(type_info(object_type), "metadata")
    where = f"{kind.__name__}.metadata"
    wanted = [field for field in fields if isinstance(field, MetadataField)]
    lacks = [*_lacks(metadata, wanted, where, reader)]
    if OWNER_REFERENCES in fields and isinstance(
        references := _inner(metadata, OWNER_REFERENCES.name), inspect.CollectionType
    ):
        lacks += _lacks(references.item_type, _OF_OWNERS, f"{where}.{OWNER_REFERENCES.attribute}", reader)
    if lacks:
        others = ", ".join(
            field.name
            for field in _ALL
            if field not in wanted and [*_lacks(metadata, [field], where, reader)]
        )
        hint = f". Other readers may need {others}, which it lacks as well" if others else ""
        raise ConfigError(f"{'; '.join(lacks)}{hint}")
    for field in fields:
        if isinstance(field, Field):
            field.require_known(object_type)


def _lacks(
    kind: inspect.Type | None, fields: Iterable[MetadataField], where: str, reader: str
) -> Iterator[str]:
    """Yield, for each field that a type lacks, a text that says so and how to declare it."""
    known = _fields_of(kind)
    if known is None:
        return
    for field in fields:
        if field.name not in known or known[field.name].name not in (field.attribute, field.name):
            yield f"{where} lacks {field.name}, which {reader} reads: declare `{field.attribute}: {field.declared}`"


def _fields_of(kind: inspect.Type | None) -> dict[str, inspect.Field] | None:
    """The fields of a type that drops all others, by their names on the wire; None for a type that keeps everything."""
    for part in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if isinstance(part, (inspect.StructType, inspect.TypedDictType, inspect.DataclassType)):
            return {field.encode_name: field for field in part.fields}
    return None


def _inner(kind: inspect.Type | None, name: str) -> inspect.Type | None:
    """The type of a field, without None."""
    known = _fields_of(kind)
    if known is None or name not in known:
        return None
    inner = known[name].type
    if not isinstance(inner, inspect.UnionType):
        return inner
    return next((part for part in inner.types if not isinstance(part, inspect.NoneType)), None)


def read_metadata(obj: Any, field: MetadataField) -> Any:
    """Return one field of an object's metadata; None if it is not set."""
    return metadata_field(obj, field.attribute, field.name)


def owners_of(obj: Any) -> list[OwnerReference]:
    """Return the owners of an object, without ``blockOwnerDeletion``."""
    references = read_metadata(obj, OWNER_REFERENCES) or ()
    return [
        OwnerReference(
            read_field(reference, "name", "name") or "",
            read_field(reference, "kind", "kind") or "",
            read_field(reference, "uid", "uid") or "",
            read_field(reference, "api_version", "apiVersion") or "",
            bool(read_field(reference, "controller", "controller")),
        )
        for reference in references
    ]


def controller_of(obj: Any) -> OwnerReference | None:
    """Return the owner that manages an object; None if it has no controller (``GetControllerOf``)."""
    return next((owner for owner in owners_of(obj) if owner.controller), None)


def owner_reference(owner: Any, *, controller: bool = True) -> dict[str, Any]:
    """Return an owner as an entry of ``metadata.ownerReferences`` (controllerutil ``SetControllerReference``).

    An object with this entry is deleted with its owner. Foreground deletion of the owner waits for the object.

    Args:
        owner: An object as the server returned it, of a type with apiVersion, kind and uid. Metadata alone lacks the
            kind; add it: ``owner_reference({**obj, "apiVersion": "apps/v1", "kind": "Deployment"})``.
        controller: Whether the owner is the object's controller. An object has at most one.

    Raises:
        ConfigError: The owner lacks its apiVersion, kind, name or uid.
    """
    if owner is None:
        raise ConfigError(
            "an owner reference needs an owner, not None: request.object is None once the object is gone, so check "
            "for that first"
        )
    api_version, kind = type_of(owner)
    name, uid = read_metadata(owner, NAME), uid_of(owner)
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    if missing := [field for field, value in reference.items() if not value]:
        raise ConfigError(
            f"an owner reference needs {', '.join(missing)}, which {outline(owner)} lacks{kind_hint(owner)}"
        )
    return {**reference, "controller": controller, "blockOwnerDeletion": True}
