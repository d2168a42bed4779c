"""How the queues call the user's code (key function, transformer, known objects), and handle its errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .._core.cancellation import CALL_ERRORS
from .._core.checks import require_methods
from ..deltas import DeletedFinalStateUnknown
from ..errors import KeyFuncError, TransformError
from ..objects.keys import KeyFunc, resource_version_of
from ..objects.undecodable import UndecodableObject
from ..protocols import KnownObjects, Transformer, may_batch

logger = logging.getLogger(__name__)


def key_of_newest(key_func: KeyFunc, obj: Any) -> str:
    """Return the key of an object, a tombstone, or the newest of a list of deltas.

    Raises:
        KeyFuncError: There is none.
    """
    if isinstance(obj, list):
        if not obj:
            raise KeyFuncError(obj, ValueError("there are no deltas"))
        obj = obj[-1].object
    return key_func(obj)


def transform(transformer: Transformer[Any] | None, key: str, obj: Any) -> Any:
    """Return a transformed object. The object of a tombstone was transformed before; an undecodable one cannot be.

    Raises:
        TransformError: It raised, or returned None.
    """
    if transformer is None or isinstance(obj, (DeletedFinalStateUnknown, UndecodableObject)):
        return obj
    try:
        changed = transformer(obj)
        if changed is None:
            raise TypeError("it returned None; it must return the object")
        return changed
    except CALL_ERRORS as error:
        raise TransformError(key, resource_version_of(obj), error) from error


class Known:
    """The consumer's known objects; none if there are none given.

    Raises:
        ConfigError: ``known_objects`` lacks a method.
    """

    def __init__(self, objects: KnownObjects[Any] | None) -> None:
        if objects is not None:
            require_methods("known_objects", objects, ("list_keys", "get_by_key"), "Store()")
        self._objects = objects
        # A Store's get_by_key raises for an object that does not fit its type.
        reader = "find_any" if may_batch(objects, "find_any", "get_by_key") else "get_by_key"
        self._get: Callable[[str], Any] = getattr(objects, reader, lambda key: None)

    def list_keys(self) -> Sequence[str]:
        """Return all known keys."""
        return () if self._objects is None else self._objects.list_keys()

    def has(self, key: str) -> bool:
        """Return whether an object is known; True if that fails: better a spurious deletion than a lost one."""
        try:
            return self._get(key) is not None
        except CALL_ERRORS:
            logger.exception("known_objects.get_by_key(%r) raised; the object counts as known", key)
            return True

    def state(self, key: str) -> Any:
        """Return the known state of a listed key, or None."""
        try:
            return self._get(key)
        except CALL_ERRORS:
            logger.exception("known_objects.get_by_key(%r) raised; the object counts as unknown", key)
            return None
