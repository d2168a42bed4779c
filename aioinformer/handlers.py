"""Event handlers: what users write (client-go ``tools/cache/controller.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .deltas import DeletedFinalStateUnknown
from .errors import ConfigError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

OnAdd = Callable[[T, bool], object]
OnUpdate = Callable[[T, T], object]
OnDelete = Callable[[T | DeletedFinalStateUnknown[T]], object]


class ResourceEventHandler(Protocol[T_contra]):
    """Told of every change of a collection, one call after the other, in the order of the store's changes.

    The methods may be plain or async. A subclass may leave out what it does not need. What a method raises is
    logged and counted; the next notification follows.
    """

    def on_add(self, obj: T_contra, is_in_initial_list: bool) -> object:
        """An object is new here; ``is_in_initial_list`` says whether it was there before this handler."""
        return None

    def on_update(self, old: T_contra, new: T_contra) -> object:
        """An object changed. With equal resourceVersions it did not: the call is a resync.

        An object deleted and created again between two lists arrives as one update, with different uids.
        """
        return None

    def on_delete(self, obj: T_contra | DeletedFinalStateUnknown[Any]) -> object:
        """An object is gone: its last state, or a DeletedFinalStateUnknown if the deletion itself was missed."""
        return None


class ResourceEventHandlerFuncs(ResourceEventHandler[T]):
    """A handler of functions, plain or async; those left out are not called.

    Args:
        on_add: ``on_add(obj, is_in_initial_list)``.
        on_update: ``on_update(old, new)``.
        on_delete: ``on_delete(obj)``.
    """

    def __init__(
        self,
        on_add: OnAdd[T] | None = None,
        on_update: OnUpdate[T] | None = None,
        on_delete: OnDelete[T] | None = None,
    ) -> None:
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete

    def on_add(self, obj: T, is_in_initial_list: bool) -> object:
        return self._on_add(obj, is_in_initial_list) if self._on_add is not None else None

    def on_update(self, old: T, new: T) -> object:
        return self._on_update(old, new) if self._on_update is not None else None

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> object:
        return self._on_delete(obj) if self._on_delete is not None else None

    def __repr__(self) -> str:
        functions = (self._on_add, self._on_update, self._on_delete)
        return (
            ", ".join(callable_name(function) for function in functions if function is not None) or "nothing"
        )


class FilteringResourceEventHandler(ResourceEventHandler[T]):
    """Lets a handler see only the objects that a filter passes.

    An object that begins to pass is an add (not of the initial list), one that ceases to is a deletion.

    Args:
        filter_func: Whether an object passes. On deletions it may be given a DeletedFinalStateUnknown.
        handler: The handler behind it.
    """

    def __init__(self, filter_func: Callable[[Any], bool], handler: ResourceEventHandler[T]) -> None:
        self._passes = filter_func
        self._handler = handler

    def on_add(self, obj: T, is_in_initial_list: bool) -> object:
        return self._handler.on_add(obj, is_in_initial_list) if self._passes(obj) else None

    def on_update(self, old: T, new: T) -> object:
        passes, passed = self._passes(new), self._passes(old)
        if passes and passed:
            return self._handler.on_update(old, new)
        if passes:
            return self._handler.on_add(new, False)
        return self._handler.on_delete(old) if passed else None

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> object:
        return self._handler.on_delete(obj) if self._passes(obj) else None

    def __repr__(self) -> str:
        return f"filtered {handler_name(self._handler)}"


def require_handler(handler: object) -> None:
    """Find out at registration, not at the first event, that something is no handler.

    Raises:
        ConfigError: It lacks a method, or is a class where an instance is wanted.
    """
    missing = [
        name for name in ("on_add", "on_update", "on_delete") if not callable(getattr(handler, name, None))
    ]
    if isinstance(handler, type):
        raise ConfigError(f"{handler.__qualname__} is a class; register an instance of it")
    if missing:
        raise ConfigError(f"{handler!r} is no event handler: it has no {', '.join(missing)}")


def callable_name(function: object) -> str:
    """What logs call a function."""
    return getattr(function, "__qualname__", None) or repr(function)


def handler_name(handler: object) -> str:
    """What logs and errors call a handler."""
    kind = type(handler)
    return repr(handler) if kind.__repr__ is not object.__repr__ else kind.__qualname__
