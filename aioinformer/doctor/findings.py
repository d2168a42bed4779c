"""What the checks find: a level, what is the matter, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from .. import __version__

LONGEST_LINE = 400
"""Characters of a finding that quotes others."""


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    NOTE = "note"
    """Good to know, or not checked."""
    WARNING = "warning"
    """Works now, and will not always, or not for all."""
    FAULT = "fault"
    """Does not work."""


class Finding(msgspec.Struct, frozen=True):
    """The result of a check.

    Attributes:
        check: The check's name, such as ``"rights"``.
        level: How bad it is.
        what: What was found.
        do: What to do; ``""`` if there is nothing to do.
    """

    check: str
    level: Level
    what: str
    do: str = ""


class Report(msgspec.Struct, frozen=True):
    """All findings about one server.

    Attributes:
        server: Its URL; ``""`` if the configuration does not say.
        user: The name that it has for this client's user; ``""`` if it does not say.
        findings: In the order of the checks.
        version: aioinformer's.
    """

    server: str
    user: str
    findings: list[Finding]
    version: str = __version__

    @property
    def level(self) -> Level:
        """The worst level of its findings."""
        return worst_of(finding.level for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 if all is well, 1 if there are warnings, 2 if there are faults."""
        return {Level.WARNING: 1, Level.FAULT: 2}.get(self.level, 0)


def worst_of(levels: Iterable[Level]) -> Level:
    """Return the worst of these levels; OK if there are none."""
    return max(levels, key=[*Level].index, default=Level.OK)


def shorten_line(text: str, limit: int = LONGEST_LINE) -> str:
    """Return a text of others as one line of at most ``limit`` characters, and an ellipsis if that is not all."""
    line = " ".join(text[: 2 * limit].split())  # it may have megabytes
    is_all = len(line) <= limit and len(text) <= 2 * limit
    return line if is_all else f"{line[:limit]}…"
