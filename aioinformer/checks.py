"""Values that cannot work, found out where they were given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from .errors import ConfigError

T = TypeVar("T")


def require_seconds(name: str, value: object) -> None:
    """See that a duration is one.

    Raises:
        ConfigError: It is negative, endless, not a number, or no number at all.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ConfigError(f"{name} must be a number of seconds, 0 or more, not {value!r}")


def require_count(name: str, value: object) -> None:
    """See that a number of things is one.

    Raises:
        ConfigError: It is negative, or no whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"{name} must be a whole number, 0 or more, not {value!r}")


def require_text(name: str, value: object) -> None:
    """See that a text is one.

    Raises:
        ConfigError: It is no string.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be a string, not {value!r}")


def require_callable(name: str, value: object) -> None:
    """See that a function is one.

    Raises:
        ConfigError: It cannot be called.
    """
    if not callable(value):
        raise ConfigError(f"{name} must be a function, not {value!r}")


def require_list(name: str, value: Iterable[T]) -> list[T]:
    """See that several things are several; they are given back as a list.

    Raises:
        ConfigError: It is one thing alone.
    """
    if not isinstance(value, Iterable):
        raise ConfigError(f"{name} must be a list, also of one alone: [{value!r}]")
    return list(value)
