"""LostLines: counts log lines that could not be written, such as to a full disk."""

from __future__ import annotations

from time import monotonic

RECENT = 60.0
"""Seconds for which a lost line counts as recent."""


class LostLines:
    """Counts log lines that could not be written.

    Attributes:
        count: Lost lines.
        reason: Why the last one was lost; ``""`` if none was.
    """

    def __init__(self) -> None:
        self.count = 0
        self.reason = ""
        self._lost_at = -RECENT

    def record(self, error: OSError) -> None:
        """Count a line."""
        self.count += 1
        self.reason = error.strerror or str(error)
        self._lost_at = monotonic()

    @property
    def is_losing(self) -> bool:
        """Whether a line was lost in the last minute."""
        return bool(self.count) and monotonic() - self._lost_at < RECENT


LOST_LINES = LostLines()
"""Of this process, whose standard error is one."""
