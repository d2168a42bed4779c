"""Event handlers, which users write (client-go ``tools/cache/controller.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ._core.callables import callable_name, require_arguments, require_callback, require_plain
from .deltas import DeletedFinalStateUnknown
from .errors import ConfigError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

OnAdd = Callable[[T, bool], object]
OnUpdate = Callable[[T, T], object]
OnDelete = Callable[[T | DeletedFinalStateUnknown[T]], object]
OnDeleteObject = Callable[[T], object]
OnUndecodable = Callable[[Any], object]


class ResourceEventHandler(Protocol[T_contra]):
    """A handler for the changes of a collection, called once for each, in the order of the store's changes.

    The methods may be plain or async. Both run in the handler's own task, one call after the other, in a context
    (``contextvars``) of their own. A plain method blocks the event loop until it returns. A subclass may leave out the
    methods that it does not need. An error is logged and counted (``new_informer`` only logs it), and the next
    notification follows.

    A handler may have a fourth method, ``on_undecodable(obj)``. It is called in place of ``on_add`` and ``on_update``
    for a state that does not fit the object type: ``obj`` is an UndecodableObject. When the object fits again,
    ``on_update`` is called with its last state that fitted, or ``on_add`` if there is none. When it is deleted,
    ``on_delete`` gets a DeletedFinalStateUnknown with that last state, and the newest one in ``undecodable``. Without
    the method, a handler is not called for states that do not fit.
    """

    def on_add(self, obj: T_contra, is_in_initial_list: bool) -> object:
        """Handle a new object; ``is_in_initial_list`` says whether it existed before this handler was added."""
        return None

    def on_update(self, old: T_contra, new: T_contra) -> object:
        """Handle a changed object. With equal resourceVersions nothing changed: the call is a resync.

        An object that was deleted and created again between two lists arrives as one update, with different uids.
        """
        return None

    def on_delete(self, obj: T_contra | DeletedFinalStateUnknown[Any]) -> object:
        """Handle a deletion: ``obj`` is the last state, or a DeletedFinalStateUnknown.

        It is the latter if the event was missed, or if the last state does not fit the object type.
        """
        return None


class ResourceEventHandlerFuncs(ResourceEventHandler[T]):
    """A handler made of functions, plain or async. It ignores changes that it has no function for.

    Args:
        on_add: ``on_add(obj, is_in_initial_list)``.
        on_update: ``on_update(old, new)``.
        on_delete: ``on_delete(obj)``; ``obj`` is a DeletedFinalStateUnknown if the deletion itself was missed.
        on_delete_object: ``on_delete_object(obj)``, instead of ``on_delete``; ``obj`` is always the last known
            state, which may be stale if the deletion was missed. Not called if no state is known.
        on_undecodable: ``on_undecodable(obj)``, for a state that does not fit the object type; ``obj`` is an
            UndecodableObject.

    Raises:
        ConfigError: A function takes other arguments, or there are both functions for deletions.
    """

    def __init__(
        self,
        on_add: OnAdd[T] | None = None,
        on_update: OnUpdate[T] | None = None,
        on_delete: OnDelete[T] | None = None,
        on_delete_object: OnDeleteObject[T] | None = None,
        on_undecodable: OnUndecodable | None = None,
    ) -> None:
        if on_delete is not None and on_delete_object is not None:
            raise ConfigError("on_delete and on_delete_object exclude each other: pass the one that fits")
        given = {
            "on_add": on_add, "on_update": on_update, "on_delete": on_delete, "on_delete_object": on_delete_object,
            "on_undecodable": on_undecodable,
        }  # fmt: skip
        self._functions = {name: function for name, function in given.items() if function is not None}
        for name, function in self._functions.items():
            require_callback(name, function, ARGUMENTS.get(name, ("obj",)))
        self._on_add = on_add
        self._on_update = on_update
        self._on_delete = on_delete
        self._on_delete_object = on_delete_object
        if on_undecodable is not None:
            self.on_undecodable = on_undecodable

    def on_add(self, obj: T, is_in_initial_list: bool) -> object:
        return self._on_add(obj, is_in_initial_list) if self._on_add is not None else None

    def on_update(self, old: T, new: T) -> object:
        return self._on_update(old, new) if self._on_update is not None else None

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> object:
        if self._on_delete is not None:
            return self._on_delete(obj)
        if self._on_delete_object is None:
            return None
        last: Any = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        return self._on_delete_object(last) if last is not None else None

    def __repr__(self) -> str:
        functions = list(self._functions.values())
        homes = {getattr(function, "__qualname__", "").rpartition(".")[0] for function in functions}
        if len(functions) > 1 and len(homes) == 1 and (home := homes.pop()):
            return home.removesuffix(".<locals>")
        return ", ".join(map(callable_name, functions)) or "nothing"


class FilteringResourceEventHandler(ResourceEventHandler[T]):
    """A handler that passes only the objects of a filter on to another handler.

    An object that begins to pass is an add (not of the initial list); an object that stops passing is a deletion.
    A state that does not fit the object type is passed on without asking the filter, if the other handler has
    ``on_undecodable``.

    Args:
        filter_func: Returns whether an object passes. On deletions its argument may be a DeletedFinalStateUnknown,
            and an error loses the deletion. So annotate the argument ``Pod | DeletedFinalStateUnknown[Pod]``; both
            have key, name and namespace.
        handler: The other handler.

    Raises:
        ConfigError: The handler is not valid, or the filter is not a plain function of one argument.
    """

    def __init__(
        self,
        filter_func: Callable[[T | DeletedFinalStateUnknown[Any]], bool],
        handler: ResourceEventHandler[T],
    ) -> None:
        require_arguments("filter_func", filter_func, ("obj",))
        require_plain("filter_func", filter_func)
        require_handler(handler)
        self._passes = filter_func
        self._handler = handler
        if (on_undecodable := on_undecodable_of(handler)) is not None:
            self.on_undecodable = on_undecodable

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


ARGUMENTS = {"on_add": ("obj", "is_in_initial_list"), "on_update": ("old", "new"), "on_delete": ("obj",)}
"""The arguments of a handler's methods."""

OPTIONAL_ARGUMENTS = {"on_undecodable": ("obj",)}
"""The arguments of methods that a handler may have."""


def on_undecodable_of(handler: object) -> OnUndecodable | None:
    """Return a handler's ``on_undecodable``, or None if it has none."""
    function: OnUndecodable | None = getattr(handler, "on_undecodable", None)
    return function


def require_handler(handler: object) -> None:
    """Check at registration, not at the first event, that an object is a handler.

    Raises:
        ConfigError: It is a class, lacks a method, has a method with other arguments or a generator, or overrides no
            method and has an ``on_`` method with another name.
    """
    if isinstance(handler, type):
        raise ConfigError(f"{handler.__qualname__} is a class; register an instance of it")
    methods = {name: getattr(handler, name, None) for name in ARGUMENTS}
    missing = [name for name, method in methods.items() if not callable(method)]
    if missing:
        raise ConfigError(
            f"{handler!r} is not an event handler: it has no {', '.join(missing)}; pass "
            "functions as add_event_handler(on_add=...) or ResourceEventHandlerFuncs(on_add=...), or subclass "
            "ResourceEventHandler"
        )
    known = {**ARGUMENTS, **OPTIONAL_ARGUMENTS}
    optional = {name: getattr(handler, name) for name in OPTIONAL_ARGUMENTS if hasattr(handler, name)}
    others = [name for name in dir(handler) if name.startswith("on_") and name not in known]
    if (
        others
        and not optional
        and all(
            getattr(method, "__func__", None) is getattr(ResourceEventHandler, name)
            for name, method in methods.items()
        )
    ):
        raise ConfigError(
            f"{handler_name(handler)} has {', '.join(others)}, and overrides none of {', '.join(ARGUMENTS)}"
        )
    for name, method in (methods | optional).items():
        require_callback(name, method, known[name])


def handler_name(handler: object) -> str:
    """Return the name of a handler for logs and errors."""
    kind = type(handler)
    return repr(handler) if kind.__repr__ is not object.__repr__ else kind.__qualname__
