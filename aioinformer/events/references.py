"""References to the objects that an event is about (client-go ``tools/reference``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import require_namespace
from ..errors import ConfigError, KeyFuncError, outline
from ..objects.keys import (
    kind_hint,
    meta_namespace_key_func,
    namespace_of,
    resource_version_of,
    type_of,
    uid_of,
)

Reference = dict[str, str]

FIELDS = ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath")


def describe(obj: Any, key: str, type_: tuple[str, str]) -> Reference:
    """Return the fields of an object's reference, unchecked.

    Args:
        obj: The object.
        key: Its key.
        type_: Its apiVersion and kind.
    """
    api_version, kind = type_
    return {
        "apiVersion": api_version,
        "kind": kind,
        "namespace": namespace_of(obj),
        "name": key.rpartition("/")[2],
        "uid": uid_of(obj),
        "resourceVersion": resource_version_of(obj),
    }


def reference_of(obj: Any) -> Reference:
    """Return an object as a ``v1.ObjectReference``.

    Args:
        obj: A KubeObject, dict, Struct or model with its kind; or a reference, as a dict without metadata.

    Raises:
        ConfigError: The kind or name is missing, or the namespace or a value is invalid.
    """
    if isinstance(obj, Mapping) and "metadata" not in obj:
        fields = {field: str(obj[field]) for field in FIELDS if obj.get(field)}
    else:
        try:
            key = meta_namespace_key_func(obj)
        except KeyFuncError as error:
            raise ConfigError(f"an event needs an object: {error}") from error
        fields = describe(obj, key, type_of(obj))
    if not fields.get("kind") or not fields.get("name"):
        raise ConfigError(
            f"an event needs an object with a kind and a name, not {outline(obj)}{kind_hint(obj)}"
        )
    if namespace := fields.get("namespace"):
        require_namespace("the namespace of an event's object", namespace)
    try:
        "".join(fields.values()).encode()
    except UnicodeEncodeError as error:  # a lone surrogate
        raise ConfigError(f"an event's object must be valid in JSON, unlike {outline(obj)}") from error
    return {field: value for field, value in fields.items() if value}
