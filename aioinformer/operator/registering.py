"""Registering: the base of an Operator's decorators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isroutine
from typing import Any

from .._core.checks import require_options
from ..errors import ConfigError


class Registering:
    """A decorator that registers a function and returns it unchanged. Subclasses say which functions it takes."""

    def __init__(self, register: Callable[[Callable[..., Any]], object]) -> None:
        self._register = register

    def registered(self, function: Any) -> Any:
        """Register a function, and return it."""
        self._register(function)
        return function


def require_declared(
    operator: str, decorator: str, resource: object, given: Iterable[str], known: type
) -> None:
    """Check that a decorator was called with a resource, and the names of its options.

    Args:
        operator: The operator's name, for the message.
        decorator: The decorator's name.
        resource: Its first argument.
        given: Its keyword arguments.
        known: The TypedDict of its options.

    Raises:
        ConfigError: It got a function, so it decorates nothing.
        TypeError: There is no such option.
    """
    if isroutine(resource):
        raise ConfigError(
            f"{operator}: {decorator} takes a resource, not {resource.__name__}: write a class or a name, as in "
            f'@operator.{decorator}("pods")'
        )
    require_options(given, known.__annotations__)
