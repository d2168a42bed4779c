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
from .models import content_of, encode_hook, is_model, model_fields

_WITH_PARTS = frozenset([dict, list, tuple])


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
    built = msgspec.to_builtins(value, str_keys=True, enc_hook=encode_hook)
    return _tidy(value, built) if type(built) in _WITH_PARTS else built


def _tidy(value: Any, built: Any) -> Any:
    """Omit fields that are None, and sort items of sets.

    Args:
        value: The value.
        built: What msgspec made of it, with parts in the same order: a dict, list or tuple. Its dicts are changed.
    """
    value = content_of(value)
    if isinstance(built, dict):
        if isinstance(value, Mapping):
            if len(value) != len(built):  # a serializer of a model made it
                return built
            for name, part in zip(built, value.values(), strict=True):
                if type(built[name]) in _WITH_PARTS:
                    built[name] = _tidy(part, built[name])
            return built
        attributes, omitted = _fields(type(value))  # type: ignore[arg-type]  # classes are hashable
        for name, made in [*built.items()]:
            if made is None:
                if name in omitted:
                    del built[name]
            elif type(made) in _WITH_PARTS and name in attributes:
                built[name] = _tidy(getattr(value, attributes[name]), made)
        return built
    if isinstance(value, (set, frozenset)):
        return _in_order(built)
    if not isinstance(value, (list, tuple)) or len(value) != len(built):
        return built  # a Struct that is a list, or what a serializer of a model made
    return [
        _tidy(item, made) if type(made) in _WITH_PARTS else made
        for item, made in zip(value, built, strict=True)
    ]


@lru_cache(maxsize=1024)
def _fields(cls: type) -> tuple[dict[str, str], frozenset[str]]:
    """Return the attributes of a class by their names in JSON, and the names of those that are None by default."""
    if is_model(cls):
        return model_fields(cls)
    if issubclass(cls, msgspec.Struct):
        # Not msgspec.structs.fields, which evaluates annotations: those of a class in a function may fail.
        names, encoded, defaults = (
            cls.__struct_fields__,
            cls.__struct_encode_fields__,
            cls.__struct_defaults__,
        )
        with_default = encoded[len(encoded) - len(defaults) :]
        omitted = (name for name, default in zip(with_default, defaults, strict=True) if default is None)
        return dict(zip(encoded, names, strict=True)), frozenset(omitted)
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return {field.name: field.name for field in fields}, frozenset(
        field.name for field in fields if field.default is None
    )


def _in_order(items: list[Any]) -> list[Any]:
    """Sort the items of a set, whose order differs from process to process."""
    try:
        return sorted(items)
    except TypeError:  # of several types, or objects
        return sorted(items, key=msgspec.json.Encoder(order="deterministic").encode)
