"""Checks of the functions that users pass: how they can be called, and whether they are async."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ConfigError, shorten

T = TypeVar("T")

_ASYNC = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def require_callable(name: str, value: object) -> None:
    """Check that a value can be called.

    Raises:
        ConfigError: It cannot.
    """
    if not callable(value):
        raise ConfigError(f"{name} must be a function, not {value!r}")


def require_callback(name: str, function: object, arguments: Sequence[str]) -> None:
    """Check that a function, plain or async, can be called with these arguments.

    Raises:
        ConfigError: It cannot, or it is a generator, which a call does not run.
    """
    require_arguments(name, function, arguments)
    if is_of_kind(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        raise ConfigError(
            f"{name} is called, not iterated over: {callable_name(function)} contains a yield, so it would never run"
        )


def require_arguments(name: str, function: object, arguments: Sequence[str]) -> None:
    """Check that a function can be called with these arguments.

    Raises:
        ConfigError: It cannot.
    """
    wanted = ", ".join(arguments)
    if not callable(function):
        raise ConfigError(f"{name} must be a function of ({wanted}), not {function!r}")
    try:
        # A decorator, such as mock.patch, may pass additional arguments.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # some builtins have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ConfigError(
            f"{name} is called with ({wanted}); {callable_name(function)} takes {signature}"
        ) from error


def require_plain(name: str, function: object, *, may_yield: bool = False) -> None:
    """Check that something is a plain function: not async, and not a generator.

    Args:
        name: The parameter's name, for the error.
        function: What to check.
        may_yield: Whether a plain generator is allowed.

    Raises:
        ConfigError: It is not a plain function.
    """
    require_callable(name, function)
    kinds = _ASYNC if may_yield else (*_ASYNC, inspect.isgeneratorfunction)
    if is_of_kind(function, *kinds):
        without = "async" if may_yield else "async or yield"
        raise ConfigError(f"{name} must be a plain function, without {without}: {callable_name(function)}")


def require_sync_function(name: str, result: T) -> T:
    """Check that a plain function did not return an awaitable, which would count as true.

    Raises:
        ConfigError: It did.
    """
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()  # or Python warns that it was never awaited
        raise ConfigError(f"{name} must return its result, not an awaitable: {shorten(result)}")
    return result


def is_of_kind(function: Any, *kinds: Callable[[Any], bool]) -> bool:
    """Return whether a function, or the ``__call__`` of an object, is of one of these kinds."""
    return any(kind(function) or kind(type(function).__call__) for kind in kinds)


def callable_name(function: object) -> str:
    """Return the name of a function for logs."""
    return getattr(function, "__qualname__", None) or repr(function)
