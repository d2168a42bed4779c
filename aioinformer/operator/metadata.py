"""Metadata of every kind of object: KubeObjects, dicts, Structs, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import ConfigError, shortened
from ..keys import metadata_field
from ..objects import KubeObject


class Owner(NamedTuple):
    """What of an owner reference matters here."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


def read_metadata(obj: Any, attribute: str, field: str) -> Any:
    """One field of an object's metadata; None where there is none.

    Args:
        obj: The object.
        attribute: What the field is called in Python: ``"deletion_timestamp"``.
        field: What it is called on the wire: ``"deletionTimestamp"``.
    """
    return (
        getattr(obj.metadata, attribute)
        if isinstance(obj, KubeObject)
        else metadata_field(obj, attribute, field)
    )


def is_deleting(obj: Any) -> bool:
    """Whether an object is marked for deletion."""
    return read_metadata(obj, "deletion_timestamp", "deletionTimestamp") is not None


def owners_of(obj: Any) -> list[Owner]:
    """The owners that an object refers to."""
    references = read_metadata(obj, "owner_references", "ownerReferences") or ()
    return [
        Owner(
            _read(each, "api_version", "apiVersion") or "",
            _read(each, "kind", "kind") or "",
            _read(each, "name", "name") or "",
            _read(each, "uid", "uid") or "",
            bool(_read(each, "controller", "controller")),
        )
        for each in references
    ]


def owner_reference(owner: Any, *, controller: bool = True) -> dict[str, Any]:
    """What an object's ``metadata.ownerReferences`` says of its owner (controllerutil ``SetControllerReference``).

    What has it goes when the owner does, and no owner goes in the foreground before it.

    Args:
        owner: An object as the server gave it, of a type that has apiVersion, kind and uid.
        controller: Whether the owner is the one that manages the object, of which there is one at most.

    Raises:
        ConfigError: The owner does not say who it is.
    """
    api_version, kind = type_of(owner)
    name, uid = read_metadata(owner, "name", "name"), read_metadata(owner, "uid", "uid")
    if not (api_version and kind and name and uid):
        raise ConfigError(f"an owner has apiVersion, kind, name and uid, which {shortened(owner)} lacks")
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def type_of(obj: Any) -> tuple[str, str]:
    """``(apiVersion, kind)`` of an object; ``""`` for what it does not say."""
    if isinstance(obj, KubeObject):
        return obj.api_version, obj.kind
    return _read(obj, "api_version", "apiVersion") or "", _read(obj, "kind", "kind") or ""


def read_path(obj: Any, path: Sequence[str]) -> Any:
    """What is at a path of field names; None where there is nothing."""
    value = obj
    for part in path:
        if value is None:
            return None
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        else:
            value = _read(value, part, part)
    return value


def _read(value: Any, attribute: str, field: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(field)
    found = getattr(value, attribute, None)
    return getattr(value, field, None) if found is None else found
