"""Encode objects of any type as dicts; the counterpart of ``codec.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError
from .decoders import api_client_of
from .kube_object import KubeObject

_SCALARS = frozenset([str, int, float, bool, type(None)])


def fields_of(obj: Any) -> dict[str, Any]:
    """Return an object as a dict. The caller may change its top level.

    Fields of a model that are None are omitted; for Structs see ``plain``.

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
        fields = plain(obj)
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


def plain(value: Any) -> Any:
    """Return a value that msgspec can encode as JSON in Python's types.

    A field of a Struct or dataclass that is None is omitted if None is its default; otherwise it is null, since a
    server would put the default there. None in a dict or list is null. Items of sets are in a fixed order.
    """
    return _tidy(value, msgspec.to_builtins(value, str_keys=True))


def _tidy(value: Any, built: Any) -> Any:
    """Omit fields that are None, and sort items of sets.

    Args:
        value: The value.
        built: What msgspec made of it, in the same order. It is changed.
    """
    if isinstance(value, (set, frozenset)):
        return _in_order(built)
    if isinstance(built, list):
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                if type(item) not in _SCALARS:
                    built[index] = _tidy(item, built[index])
        return built
    if not isinstance(built, dict):
        return built
    if isinstance(value, Mapping):
        for name, part in zip(built, value.values(), strict=True):
            if type(part) not in _SCALARS:
                built[name] = _tidy(part, built[name])
        return built
    for attribute, name, is_omitted in _fields(type(value)):  # type: ignore[arg-type]  # classes are hashable
        part = getattr(value, attribute, None)
        if part is None:
            if is_omitted:
                built.pop(name, None)
        elif type(part) not in _SCALARS and name in built:
            built[name] = _tidy(part, built[name])
    return built


@lru_cache(maxsize=1024)
def _fields(cls: type) -> list[tuple[str, str, bool]]:
    """Return a class's fields: their names, those in JSON, and whether None is the default."""
    if issubclass(cls, msgspec.Struct):
        # Not msgspec.structs.fields, which evaluates annotations: those of a class in a function may fail.
        names, defaults = (
            cls.__struct_fields__,
            cls.__struct_defaults__,
        )  # defaults are those of the last fields
        required = [False] * (len(names) - len(defaults))
        omitted = [*required, *(default is None for default in defaults)]
        return [*zip(names, cls.__struct_encode_fields__, omitted, strict=True)]
    if dataclasses.is_dataclass(cls):
        return [(field.name, field.name, field.default is None) for field in dataclasses.fields(cls)]
    return []


def _in_order(items: list[Any]) -> list[Any]:
    """Sort the items of a set, whose order differs from process to process."""
    try:
        return sorted(items)
    except TypeError:  # of several types, or objects
        return sorted(items, key=msgspec.json.Encoder(order="deterministic").encode)
