"""Compares resourceVersions as whole numbers of any length (KEP-5504, apimachinery ``resourceversion``)."""

from __future__ import annotations

from ..errors import ConfigError

NONE = -1
"""The number of a string that is not a version; less than all versions."""


def number_of(version: str) -> int:
    """Return a resourceVersion as a number to compare; NONE for ``""`` and for versions that are not numbers.

    The digits are read as hexadecimal: the order is the same, and Python limits only decimal numbers (to 4300 digits).
    """
    return int(version, 16) if version.isascii() and version.isdecimal() else NONE


def is_opaque(version: str) -> bool:
    """Return whether only the server can order a resourceVersion, because it is not a number, such as Karmada's."""
    return bool(version) and number_of(version) == NONE


def require_watchable(what: str, version: object) -> None:
    """Check that a watch can start from a resourceVersion: a number above 0, or an opaque version.

    Raises:
        ConfigError: It is ``""``, ``"0"``, not a string, or not printable.
    """
    if not isinstance(version, str) or not is_opaque(version) or not version.isprintable():
        require_version(what, version)


def require_version(what: str, version: object) -> int:
    """Return ``number_of`` a resourceVersion that an object or a list can have.

    Raises:
        ConfigError: It is ``""``, ``"0"``, not a string or not a number.
    """
    if not isinstance(version, str) or number_of(version) <= 0 or version[0] == "0":
        raise ConfigError(
            f"{what} must be a resourceVersion that the server gave with an object or a list, which is a number "
            f"above 0, not {version!r}"
        )
    return number_of(version)
