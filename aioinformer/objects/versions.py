"""resourceVersions in their order: whole numbers of any length (KEP-5504, apimachinery ``resourceversion``)."""

from __future__ import annotations

from ..errors import ConfigError

NONE = -1
"""The number of what is no version: before all others."""


def number_of(version: str) -> int:
    """A resourceVersion as a number to compare; NONE for ``""`` and for what a server made up otherwise.

    The digits are read as hexadecimal ones: in the same order, and without Python's limit of 4300 decimal ones.
    """
    return int(version, 16) if version.isascii() and version.isdecimal() else NONE


def is_opaque(version: str) -> bool:
    """Whether a resourceVersion is a text that only the server can order, such as Karmada's; ``""`` is none."""
    return bool(version) and number_of(version) == NONE


def require_watchable(what: str, version: object) -> None:
    """See that a resourceVersion may be watched from: a number above 0, or what a server uses instead of numbers.

    Raises:
        ConfigError: It is ``""``, ``"0"``, no string, or a text that no server gives.
    """
    if not isinstance(version, str) or not is_opaque(version) or not version.isprintable():
        require_version(what, version)


def require_version(what: str, version: object) -> int:
    """As ``number_of``, of a resourceVersion that is to be waited for, or watched from.

    Raises:
        ConfigError: It is none that an object or a list could have: ``""``, ``"0"``, no string, no number.
    """
    if not isinstance(version, str) or number_of(version) <= 0 or version[0] == "0":
        raise ConfigError(
            f"{what} must be a resourceVersion that the server gave with an object or a list, which is a number "
            f"above 0, not {version!r}"
        )
    return number_of(version)
