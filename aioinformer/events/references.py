"""What an event is about, as it is written into it (client-go ``tools/reference``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import require_namespace
from ..errors import ConfigError, KeyFuncError, shortened
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


def reference_of(obj: Any) -> Reference:
    """A ``v1.ObjectReference``.

    Args:
        obj: A KubeObject, dict, Struct or model that says its kind; or a reference, as a dict without metadata.

    Raises:
        ConfigError: It does not say its kind or its name, or what it says can be written nowhere.
    """
    if isinstance(obj, Mapping) and "metadata" not in obj:
        found = {field: str(obj[field]) for field in FIELDS if obj.get(field)}
    else:
        try:
            key = meta_namespace_key_func(obj)
        except KeyFuncError as error:
            raise ConfigError(f"an event is about an object: {error}") from error
        api_version, kind = type_of(obj)
        found = {
            "apiVersion": api_version,
            "kind": kind,
            "namespace": namespace_of(obj),
            "name": key.rpartition("/")[2],
            "uid": uid_of(obj),
            "resourceVersion": resource_version_of(obj),
        }
    if not found.get("kind") or not found.get("name"):
        raise ConfigError(
            f"an event is about something with a kind and a name, not {shortened(obj)}{kind_hint(obj)}"
        )
    if namespace := found.get("namespace"):
        require_namespace("the namespace of what an event is about", namespace)
    try:
        "".join(found.values()).encode()
    except UnicodeEncodeError as error:  # half a character
        raise ConfigError(f"an event is about something that JSON can name, not {shortened(obj)}") from error
    return {field: value for field, value in found.items() if value}
