"""Encode objects of any type as dicts; the counterpart of ``codec.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError
from .decoders import api_client_of
from .kube_object import KubeObject


def fields_of(obj: Any) -> dict[str, Any]:
    """Return an object as a dict. The caller may change its top level.

    Fields of a Struct or model that are None are omitted. The members of a set are sorted.

    Raises:
        ConfigError: The object's type is not supported.
    """
    if isinstance(obj, KubeObject):
        return obj.to_dict()
    if isinstance(obj, Mapping):
        return dict(obj)
    if isinstance(obj, DeletedFinalStateUnknown):
        fields = None
    elif isinstance(obj, msgspec.Struct):
        fields = without_none(msgspec.to_builtins(obj, str_keys=True, order="deterministic"))
    elif hasattr(obj, "model_dump"):  # first, since models of kubernetes.aio have openapi_types, too
        fields = obj.model_dump(mode="json", by_alias=True, exclude_none=True)
    elif hasattr(obj, "openapi_types"):
        fields = api_client_of(type(obj)).sanitize_for_serialization(obj)
    else:
        fields = None
    if not isinstance(fields, dict):
        raise ConfigError(
            f"{type(obj).__name__} is not an object: use KubeObject, dict, a msgspec.Struct or a model"
        )
    return fields


def without_none(value: Any) -> Any:
    """Return a JSON value without fields that are null. Tuples become lists."""
    if isinstance(value, dict):
        return {name: without_none(part) for name, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [without_none(part) for part in value]
    return value
