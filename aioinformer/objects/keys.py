"""Keys, and readers of fields that every object has, for all object types (client-go ``tools/cache/store.go``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeGuard

import msgspec

from .._core.cancellation import CALL_ERRORS
from ..deltas import DeletedFinalStateUnknown
from ..errors import DecodeError, KeyFuncError, outline
from .kube_object import KubeObject, read_labels
from .meta import PARTIAL_KIND

KeyFunc = Callable[[Any], str]


class ExplicitKey(str):
    """A key in place of an object."""

    __slots__ = ()


def meta_namespace_key_func(obj: Any) -> str:
    """Return ``"namespace/name"``, or ``"name"`` for a cluster-scoped object (``MetaNamespaceKeyFunc``).

    Args:
        obj: A KubeObject, dict, Struct or model, or an ExplicitKey, which is its own key.

    Raises:
        KeyFuncError: The object has no metadata.name, or is a DeletedFinalStateUnknown.
    """
    if isinstance(obj, KubeObject):
        key = obj.key
        if not key or key[-1] == "/":
            raise KeyFuncError(obj, ValueError("metadata.name is empty"))
        return key
    if isinstance(obj, ExplicitKey):
        return str(obj)
    if isinstance(obj, DeletedFinalStateUnknown):
        raise KeyFuncError(obj, ValueError("a tombstone has no metadata: deletion_handling_… knows its key"))
    metadata = read_field(obj, "metadata", "metadata")
    name, namespace = read_field(metadata, "name", "name"), read_field(metadata, "namespace", "namespace")
    if not isinstance(name, str) or not name:
        raise KeyFuncError(obj, ValueError("it has no metadata.name"))
    return f"{namespace}/{name}" if namespace else name


def deletion_handling_meta_namespace_key_func(obj: Any) -> str:
    """Return the key as ``meta_namespace_key_func`` does, also of a DeletedFinalStateUnknown.

    Raises:
        KeyFuncError: The object has no metadata.name.
    """
    kind = type(obj)  # common cases first: this runs for each event
    if kind is KubeObject and (key := obj.key) and key[-1] != "/":
        return key  # type: ignore[no-any-return]
    if (read := _names_reader(kind)) is not None:  # type: ignore[arg-type]  # classes are hashable
        name, namespace = read(obj)
        if type(name) is str and name:
            return f"{namespace}/{name}" if namespace else name
    return obj.key if isinstance(obj, DeletedFinalStateUnknown) else meta_namespace_key_func(obj)


def split_meta_namespace_key(key: str) -> tuple[str, str]:
    """Split a key into ``(namespace, name)``. The namespace is ``""`` for a cluster-scoped object.

    Raises:
        KeyFuncError: The key has more than one slash.
    """
    namespace, _, name = key.rpartition("/")
    if "/" in namespace:
        raise KeyFuncError(key, ValueError(f"unexpected key format: {key!r}"))
    return namespace, name


def wrap_key_func(key_func: KeyFunc) -> KeyFunc:
    """Wrap a user's key function: the result accepts tombstones and explicit keys, and raises only KeyFuncError."""
    if key_func in (meta_namespace_key_func, deletion_handling_meta_namespace_key_func):
        return deletion_handling_meta_namespace_key_func

    def key_of(obj: Any) -> str:
        if isinstance(obj, (DeletedFinalStateUnknown, ExplicitKey)):
            return deletion_handling_meta_namespace_key_func(obj)
        try:
            key = key_func(obj)
        except KeyFuncError:
            raise
        except CALL_ERRORS as error:
            raise KeyFuncError(obj, error) from error
        if not isinstance(key, str):
            raise KeyFuncError(obj, TypeError(f"the key function returned {key!r}, not a string"))
        return key

    return key_of


def resource_version_of(obj: Any) -> str:
    """Return metadata.resourceVersion of an object or of a tombstone's last state; ``""`` if there is none."""
    kind = type(obj)
    if kind is KubeObject:
        return obj._version or obj.resource_version  # type: ignore[no-any-return]
    if (read := _version_reader(kind)) is not None:  # type: ignore[arg-type]
        return str(read(obj) or "")
    if isinstance(obj, KubeObject):
        return obj.resource_version
    return str(metadata_field(obj, "resource_version", "resourceVersion") or "")


def same_version(old: Any, new: Any) -> bool:
    """Return whether two states of an object are identical or have the same resourceVersion.

    Structs without a resourceVersion are compared by ``==``; states whose comparison raises are different. This never
    raises, so that one object cannot stop the notifications of others.
    """
    if old is new:
        return True
    if type(old) is KubeObject and type(new) is KubeObject and (version := new._version):
        return (old._version or old.resource_version) == version
    kind = type(new)
    try:
        if kind is type(old) and (read := _version_reader(kind)) is not None:  # type: ignore[arg-type]
            if version := read(new):
                return bool(read(old) == version)
            return read is _no_version and bool(old == new)
        version = resource_version_of(old)
        return bool(version == resource_version_of(new) != "")
    except Exception:
        return False


def key_and_version(obj: Any) -> tuple[str, str]:
    """Return key and resourceVersion of an object or tombstone for logs. Never raises for a missing name."""
    try:
        key = deletion_handling_meta_namespace_key_func(obj)
    except KeyFuncError:
        key = outline(obj)
    return key, resource_version_of(obj) or "no version"


def namespace_of(obj: Any) -> str:
    """Return metadata.namespace of an object or of a tombstone's last state; ``""`` if there is none."""
    return (
        obj.namespace
        if isinstance(obj, KubeObject)
        else str(metadata_field(obj, "namespace", "namespace") or "")
    )


def uid_of(obj: Any) -> str:
    """Return metadata.uid of an object or of a tombstone's last state; ``""`` if there is none."""
    return obj.uid if isinstance(obj, KubeObject) else str(metadata_field(obj, "uid", "uid") or "")


def type_of(obj: Any) -> tuple[str, str]:
    """Return ``(apiVersion, kind)`` of an object; ``""`` if unknown, as for objects read with metadata only."""
    if isinstance(obj, KubeObject):
        type_meta = obj.api_version, obj.kind
    else:
        api_version, kind = read_field(obj, "api_version", "apiVersion"), read_field(obj, "kind", "kind")
        type_meta = str(api_version or ""), str(kind or "")
    return ("", "") if type_meta[1] == PARTIAL_KIND else type_meta


def kind_hint(obj: Any) -> str:
    """Return a hint for messages about an object without a kind that was read with metadata only; else ``""``."""
    if read_field(obj, "kind", "kind") != PARTIAL_KIND:
        return ""
    return (
        ": read with metadata_only=True, it does not say its kind; "
        'give {**obj, "apiVersion": "apps/v1", "kind": "Deployment"}, or what it is'
    )


def is_deleting(obj: Any) -> bool:
    """Return whether an object is marked for deletion."""
    return metadata_field(obj, "deletion_timestamp", "deletionTimestamp") is not None


def labels_of(obj: Any) -> Mapping[str, str]:
    """Return metadata.labels of an object or of a tombstone's last state; empty if they cannot be read."""
    if isinstance(obj, KubeObject):
        try:
            labels = read_labels(obj)
        except DecodeError:
            return {}
    else:
        labels = metadata_field(obj, "labels", "labels")
    return labels if isinstance(labels, Mapping) else {}


def metadata_field(obj: Any, attribute: str, field: str) -> Any:
    """Return a field of the metadata of an object, or of a tombstone's last state; None or empty if there is none.

    Args:
        obj: The object.
        attribute: The field's name in Python: ``"deletion_timestamp"``.
        field: The field's name in JSON: ``"deletionTimestamp"``.
    """
    if isinstance(obj, DeletedFinalStateUnknown):
        obj = obj.obj if obj.undecodable is None else obj.undecodable
    if type(obj) is KubeObject:  # faster than read_field
        return getattr(obj.metadata, attribute)
    return read_field(read_field(obj, "metadata", "metadata"), attribute, field)


def read_field(value: Any, attribute: str, field: str) -> Any:
    """Return a field of a mapping, or of a Struct or model by either of its names; None if there is none."""
    if _is_mapping(value):
        return value.get(field)
    if isinstance(value, msgspec.Struct):
        attribute = _attributes(type(value)).get(field, attribute)
    return getattr(value, attribute, None) or getattr(value, field, None)


def lacks_version(kind: type[Any]) -> bool:
    """Return whether objects of a class have no resourceVersion: Structs whose metadata has no such field."""
    return _version_reader(kind) is _no_version  # type: ignore[arg-type]  # classes are hashable


def lacks_uid(kind: type[Any]) -> bool:
    """Return whether objects of a class have no uid: Structs whose metadata has no such field."""
    names = _metadata_attributes(kind)
    return bool(names) and "uid" not in names


@lru_cache(maxsize=256)
def _names_reader(kind: type[Any]) -> Callable[[Any], tuple[Any, Any]] | None:
    """Return a fast reader of a Struct's metadata.name and namespace; None if the type may lack them."""
    names = _metadata_attributes(kind)
    if not names.keys() >= {"name", "namespace"}:
        return None
    return attrgetter(f"metadata.{names['name']}", f"metadata.{names['namespace']}")


@lru_cache(maxsize=256)
def _version_reader(kind: type[Any]) -> Callable[[Any], Any] | None:
    """Return a fast reader of a Struct's metadata.resourceVersion; None for other types."""
    names = _metadata_attributes(kind)
    attribute = names.get("resourceVersion") or names.get("resource_version")
    if attribute is None:
        return _no_version if names else None
    return attrgetter(f"metadata.{attribute}")


def _no_version(obj: Any) -> str:
    """Read the version of a Struct that has no field for it."""
    return ""


def _metadata_attributes(kind: type[Any]) -> Mapping[str, str]:
    """Return the attributes of the metadata's Struct; empty if metadata may be of another type."""
    if not issubclass(kind, msgspec.Struct):
        return {}
    for field in msgspec.structs.fields(kind):
        if (
            field.name == "metadata"
            and isinstance(field.type, type)
            and issubclass(field.type, msgspec.Struct)
        ):
            return _attributes(field.type)
    return {}


@lru_cache(maxsize=256)
def _attributes(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return a Struct's attributes by their names in JSON and in Python."""
    fields = msgspec.structs.fields(kind)
    return {field.name: field.name for field in fields} | {field.encode_name: field.name for field in fields}


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a mapping. Dicts and Structs avoid the slow check of the abstract class."""
    return isinstance(value, dict) or (not isinstance(value, msgspec.Struct) and isinstance(value, Mapping))
