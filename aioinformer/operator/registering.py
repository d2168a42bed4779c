"""Registering: the base of an Operator's decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Registering:
    """A decorator that registers a function and returns it unchanged. Subclasses say which functions it takes."""

    def __init__(self, register: Callable[[Callable[..., Any]], object]) -> None:
        self._register = register

    def registered(self, function: Any) -> Any:
        """Register a function, and return it."""
        self._register(function)
        return function
