"""Reads and edits finalizers of all object types (controller-runtime ``controllerutil``). Never changes in place."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from .._core.checks import require_qualified_name
from ..errors import ConfigError
from .kube_object import KubeObject


class _HasMetadata(Protocol):
    @property
    def metadata(self) -> Any: ...


T = TypeVar("T", bound=Mapping[str, Any] | _HasMetadata)  # excludes None: type checkers keep a narrowed type


def contains_finalizer(obj: Any, name: str) -> bool:
    """Return whether an object has a finalizer."""
    return name in finalizers_of(obj)


def add_finalizer(obj: T, name: str) -> tuple[T, bool]:
    """Return ``(obj, changed)``: the object with a finalizer, a new object if it had to be added.

    Raises:
        ConfigError: The object's type has no finalizers, or the name is not a qualified name.
    """
    finalizers = finalizers_of(obj)
    if name in finalizers:
        return obj, False
    require_qualified_name("the finalizer", name)
    return _with_finalizers(obj, [*finalizers, name]), True


def remove_finalizer(obj: T, name: str) -> tuple[T, bool]:
    """Return ``(obj, changed)``: the object without a finalizer, a new object if it had to be removed.

    Raises:
        ConfigError: The object's type has no finalizers.
    """
    finalizers = finalizers_of(obj)
    if name not in finalizers:
        return obj, False
    return _with_finalizers(obj, [finalizer for finalizer in finalizers if finalizer != name]), True


def finalizers_of(obj: Any) -> list[str]:
    """Return the finalizers in an object's metadata, as a new list.

    Raises:
        ConfigError: The object's type has no finalizers.
    """
    if isinstance(obj, KubeObject):
        return obj.metadata.finalizers
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else getattr(obj, "metadata", None)
    if isinstance(metadata, Mapping):
        return list(metadata.get("finalizers") or [])
    if metadata is None:
        raise ConfigError(f"{type(obj).__name__} has no finalizers: it has no metadata")
    if not hasattr(metadata, "finalizers"):
        raise ConfigError(
            f"{type(obj).__name__}.metadata has no finalizers: give it `finalizers: list[str] = []`"
        )
    return list(metadata.finalizers or [])


def _with_finalizers(obj: Any, finalizers: list[str]) -> Any:
    if isinstance(obj, KubeObject):
        return type(obj).from_dict(_edit(obj.to_dict(), finalizers))
    if isinstance(obj, Mapping):
        return _edit(obj, finalizers)
    if isinstance(obj.metadata, Mapping):
        return _replace(obj, "metadata", _edit({"metadata": obj.metadata}, finalizers)["metadata"])
    old = obj.metadata.finalizers
    new = (
        finalizers if old is None or old is msgspec.UNSET else type(old)(finalizers)
    )  # a frozen Struct has a tuple
    return _replace(obj, "metadata", _replace(obj.metadata, "finalizers", new))


def _replace(obj: Any, field: str, value: Any) -> Any:
    """Return a shallow copy with one attribute replaced."""
    if isinstance(obj, msgspec.Struct):
        return msgspec.structs.replace(obj, **{field: value})
    changed = copy.copy(obj)
    setattr(changed, field, value)
    return changed


def _edit(obj: Mapping[str, Any], finalizers: list[str]) -> dict[str, Any]:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "finalizers"}
    if finalizers:
        metadata["finalizers"] = finalizers
    return {**obj, "metadata": metadata}
