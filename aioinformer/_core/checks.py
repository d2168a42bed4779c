"""Values that cannot work, found out where they were given."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TypeGuard, TypeVar

from ..errors import ConfigError

T = TypeVar("T")

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""What the names of namespaces and resources are, and the parts of most objects' names."""

LONGEST_NAME = 63
"""Characters of a label's value, of a namespace's name, and of what is behind the ``/`` of a qualified one."""

SHORT_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
"""What is behind the ``/`` of a qualified name, of that length at most; a label's value is such a one too, or empty."""

_MOST = sys.float_info.max
_SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")


def require_seconds(name: str, value: object) -> None:
    """See that a duration is one.

    Raises:
        ConfigError: It is negative, endless, not a number, or no number at all.
    """
    if not is_finite(value) or value < 0:
        raise ConfigError(f"{name} must be a number of seconds, 0 or more, not {value!r}")


def require_timeout(value: object) -> None:
    """See that a ``timeout`` is a number of seconds, or None for no end. What is left until a deadline may be negative.

    Raises:
        ConfigError: It is neither, or endless, or not a number.
    """
    if value is not None and not is_finite(value):
        raise ConfigError(f"timeout must be a number of seconds, or None for no end, not {value!r}")


def is_finite(value: object) -> TypeGuard[float]:
    """Whether something is a number that a float can be: an int may be too large."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST <= value <= _MOST


def require_count(name: str, value: object, *, least: int = 0) -> None:
    """See that a number of things is one.

    Raises:
        ConfigError: It is less than ``least``, or no whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} must be a whole number, {least} or more, not {value!r}")


def require_flag(name: str, value: object) -> None:
    """See that what is on or off is either.

    Raises:
        ConfigError: It is neither true nor false; a text is true whatever it says.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r}")


def require_text(name: str, value: object, like: str = "") -> None:
    """See that a text is one.

    Args:
        name: What it is.
        value: The text.
        like: An example.

    Raises:
        ConfigError: It is no string.
    """
    if not isinstance(value, str):
        example = f", like {like!r}" if like else ""
        raise ConfigError(f"{name} must be a string{example}, not {value!r}")


def require_namespace(name: str, value: object) -> None:
    """See that a text can be a namespace's name.

    Raises:
        ConfigError: No namespace may have it.
    """
    require_text(name, value)
    if len(str(value)) > LONGEST_NAME or not LABEL.fullmatch(str(value)):
        raise ConfigError(f"{name} must be a namespace's name, like 'default', not {value!r}")


def require_object_name(name: str, value: object) -> None:
    """See that a text can be the name of an object, of a kind that is named as most are.

    Raises:
        ConfigError: No object may have it.
    """
    require_text(name, value)
    if not is_subdomain(str(value)):
        raise ConfigError(f"{name} must be a name that an object may have, like 'my-app', not {value!r}")


def require_qualified_name(name: str, value: object) -> None:
    """See that a text is a name, with or without a domain before it.

    Raises:
        ConfigError: It is none.
    """
    require_text(name, value)
    domain, slash, short = str(value).rpartition("/")
    is_short = len(short) <= LONGEST_NAME and SHORT_NAME.fullmatch(short)
    if not is_short or (slash and not is_subdomain(domain)):
        raise ConfigError(f"{name} must be a name like 'my-app' or 'example.com/my-app', not {value!r}")


def is_subdomain(value: str) -> bool:
    """Whether a text is a name as in DNS, which most objects have."""
    return len(value) <= 253 and _SUBDOMAIN.fullmatch(value) is not None


def require_callable(name: str, value: object) -> None:
    """See that a function is one.

    Raises:
        ConfigError: It cannot be called.
    """
    if not callable(value):
        raise ConfigError(f"{name} must be a function, not {value!r}")


def require_methods(name: str, value: object, methods: Iterable[str], like: str) -> None:
    """See that an object can do what it is for.

    Args:
        name: What it is.
        value: The object.
        methods: Which it must have.
        like: One that has them.

    Raises:
        ConfigError: It lacks some, or is a class.
    """
    missing = [each for each in methods if not callable(getattr(value, each, None))]
    if missing or isinstance(value, type):
        lacks = f", which has no {', '.join(missing)}" if missing else ", a class"
        raise ConfigError(f"{name} must be one such as {like}, not {value!r:.200}{lacks}")


def require_list(name: str, value: Iterable[T]) -> list[T]:
    """See that several things are several; they are given back as a list.

    Raises:
        ConfigError: It is one thing alone; a string is, too.
    """
    if isinstance(value, str):
        raise ConfigError(f"{name} must be a list, not {value!r}")
    if not isinstance(value, Iterable):
        raise ConfigError(f"{name} must be a list, also of one alone: [{value!r}]")
    return list(value)
