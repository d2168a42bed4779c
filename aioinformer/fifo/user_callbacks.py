"""What the queues ask their user's code, and what becomes of a failure there."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Sequence
from typing import Any

from .._core.checks import require_methods
from ..deltas import DeletedFinalStateUnknown
from ..errors import KeyFuncError, TransformError
from ..objects.keys import KeyFunc, resource_version_of
from ..protocols import KnownObjects, Transformer

logger = logging.getLogger(__name__)


def key_of_newest(key_func: KeyFunc, obj: Any) -> str:
    """The key of an object, a tombstone, or (that of the newest of) a list of deltas.

    Raises:
        KeyFuncError: There is none.
    """
    if isinstance(obj, list):
        if not obj:
            raise KeyFuncError(obj, ValueError("there are no deltas"))
        obj = obj[-1].object
    return key_func(obj)


def transformed(transformer: Transformer[Any] | None, key: str, obj: Any) -> Any:
    """What a transformer makes of an object; a tombstone's has been through it before.

    Raises:
        TransformError: It raised, or returned None.
    """
    if transformer is None or isinstance(obj, DeletedFinalStateUnknown):
        return obj
    try:
        changed = transformer(obj)
        if changed is None:
            raise TypeError("it returned None; it must return the object")
        return changed
    except (Exception, CancelledError) as error:  # a plain function: nobody cancels us in it
        raise TransformError(key, resource_version_of(obj), error) from error


class Known:
    """The consumer's objects, where it tells of them.

    Raises:
        ConfigError: They cannot be asked.
    """

    def __init__(self, objects: KnownObjects[Any] | None) -> None:
        if objects is not None:
            require_methods("known_objects", objects, ("list_keys", "get_by_key"), "Store()")
        self._objects = objects

    def list_keys(self) -> Sequence[str]:
        """The keys of all."""
        return () if self._objects is None else self._objects.list_keys()

    def has(self, key: str) -> bool:
        """Whether an object is known; where that cannot be said, a deletion too many is better than one lost."""
        try:
            return self._objects is not None and self._objects.get_by_key(key) is not None
        except Exception:
            logger.exception("known objects failed on %s, which is taken for one of them", key)
            return True

    def state(self, key: str) -> Any:
        """The state of an object that was listed, or None."""
        assert self._objects is not None
        try:
            return self._objects.get_by_key(key)
        except Exception:
            logger.exception("known objects failed on %s", key)
            return None
