"""Checks of arguments at the public boundary: they raise ConfigError with the argument's name and value."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from inspect import signature
from typing import TypeGuard, TypeVar

from ..errors import ConfigError

T = TypeVar("T")

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""A name of a namespace or resource, and a part of most objects' names (RFC 1123 label)."""

LONGEST_NAME = 63
"""Most characters of a label's value, of a namespace's name, and of a qualified name after its ``/``."""

SHORT_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
"""A qualified name after its ``/``, and a label's value that is not empty. LONGEST_NAME limits both."""

_MOST = sys.float_info.max
_SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")


def require_seconds(name: str, value: object) -> None:
    """Check that a duration is a number of seconds.

    Raises:
        ConfigError: It is negative, infinite or NaN, or no number.
    """
    if not is_finite(value) or value < 0:
        raise ConfigError(f"{name} must be a number of seconds, 0 or more, not {value!r}")


def require_timeout(value: object) -> None:
    """Check that a ``timeout`` is a number of seconds, or None. It may be negative: the time until a deadline can be.

    Raises:
        ConfigError: It is infinite or NaN, or no number.
    """
    if value is not None and not is_finite(value):
        raise ConfigError(f"timeout must be a number of seconds, or None for no end, not {value!r}")


def is_finite(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number. Ints that no float can hold are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST <= value <= _MOST


def require_count(name: str, value: object, *, least: int = 0) -> None:
    """Check that a count is a whole number.

    Raises:
        ConfigError: It is less than ``least``, or no whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} must be a whole number, {least} or more, not {value!r}")


def require_flag(name: str, value: object) -> None:
    """Check that a flag is a bool.

    Raises:
        ConfigError: It is not. The string ``"false"`` would count as true.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r}")


def require_text(name: str, value: object, like: str = "") -> None:
    """Check that a value is a string.

    Args:
        name: The argument's name.
        value: The value.
        like: An example for the message.

    Raises:
        ConfigError: It is not.
    """
    if not isinstance(value, str):
        example = f", like {like!r}" if like else ""
        raise ConfigError(f"{name} must be a string{example}, not {value!r}")


def require_namespace(name: str, value: object) -> None:
    """Check that a string can be a namespace's name.

    Raises:
        ConfigError: No namespace can have this name.
    """
    require_text(name, value)
    if len(str(value)) > LONGEST_NAME or not LABEL.fullmatch(str(value)):
        raise ConfigError(f"{name} must be a namespace's name, like 'default', not {value!r}")


def require_object_name(name: str, value: object) -> None:
    """Check that a string is a DNS subdomain, as the names of most kinds' objects have to be.

    Raises:
        ConfigError: It is not.
    """
    require_text(name, value)
    if not is_subdomain(str(value)):
        raise ConfigError(f"{name} must be a name that an object may have, like 'my-app', not {value!r}")


def require_qualified_name(name: str, value: object) -> None:
    """Check that a string is a qualified name: a name, or a domain, ``/`` and a name.

    Raises:
        ConfigError: It is not.
    """
    require_text(name, value)
    domain, slash, short = str(value).rpartition("/")
    is_short = len(short) <= LONGEST_NAME and SHORT_NAME.fullmatch(short)
    if not is_short or (slash and not is_subdomain(domain)):
        raise ConfigError(f"{name} must be a name like 'my-app' or 'example.com/my-app', not {value!r}")


def is_subdomain(value: str) -> bool:
    """Return whether a string is a DNS subdomain (RFC 1123)."""
    return len(value) <= 253 and _SUBDOMAIN.fullmatch(value) is not None


def require_methods(name: str, value: object, methods: Iterable[str], like: str) -> None:
    """Check that an object has the methods of its protocol.

    Args:
        name: The argument's name.
        value: The object.
        methods: The methods' names.
        like: An example for the message.

    Raises:
        ConfigError: A method is missing, or the object is a class.
    """
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing or isinstance(value, type):
        lacks = f", which has no {', '.join(missing)}" if missing else ", a class"
        raise ConfigError(f"{name} must be one such as {like}, not {value!r:.200}{lacks}")


def require_list(name: str, value: Iterable[T]) -> list[T]:
    """Return an iterable as a list.

    Raises:
        ConfigError: It is a string, or not iterable.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{name} must be a list, not {value!r}: put it in brackets")
    return list(value)


def require_options(
    given: Iterable[str], known: Iterable[str], taker: Callable[..., object] | None = None
) -> None:
    """Check the names of keyword arguments.

    Args:
        given: The names.
        known: The names of the options.
        taker: The function or class that takes them; None if it has no others in its signature.

    Raises:
        TypeError: There is no such option.
    """
    known = list(known)
    if unknown := sorted(set(given).difference(known)):
        own = () if taker is None else signature(taker).parameters.values()
        names = [
            *(parameter.name for parameter in own if parameter.kind is not parameter.VAR_KEYWORD),
            *known,
        ]
        raise TypeError(f"no option named {', '.join(unknown)}; there are: {', '.join(names)}")
