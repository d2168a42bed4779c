"""What is known of an object whose reconcile fails."""

from __future__ import annotations

from typing import NamedTuple

from .._core.own_code import own_frame, shown_path
from ..errors import (
    ConflictError,
    ReconcileTimeout,
    TerminalError,
    UndecodableError,
    VersionTimeout,
    message_of,
)

LONGEST_KEPT = 1000
"""Characters of an error's message that are kept for each failing key."""
NOTE_KEPT = 60.0
"""Seconds in which a repeated error is reported with its first text, though the text may change each time."""

FAILED, TIMED_OUT, DOES_NOT_FIT = "ReconcileFailed", "ReconcileTimedOut", "ObjectDoesNotFit"
"""Why a reconcile failed, for programs."""


class Failure(NamedTuple):
    """A failed reconcile, without the exception, which would keep its frames alive.

    Attributes:
        type: The error's type.
        text: The error's message.
        file: The user's file that raised it; ``""`` if it was raised elsewhere.
        line: The line in that file.
        at: Loop time of the failure.
        since: Loop time of the first failure in a row.
        note: The message in Events and conditions: the text of one of the last failures of this type.
        noted: Loop time of that failure.
        without_object: How often in a row it has failed since the object is gone.
    """

    type: type[BaseException]
    text: str
    file: str
    line: int
    at: float
    since: float
    note: str
    noted: float
    without_object: int = 0

    @property
    def where(self) -> str:
        """The file and line that raised it; ``""`` if it was raised elsewhere."""
        return f"{shown_path(self.file)}:{self.line}" if self.file else ""

    @property
    def reason(self) -> str:
        """Why it failed, for programs: one word."""
        if issubclass(self.type, UndecodableError):
            return DOES_NOT_FIT
        return TIMED_OUT if issubclass(self.type, ReconcileTimeout) else FAILED

    @property
    def may_pass(self) -> bool:
        """Whether it is the first failure in a row, and one that the next try repairs: a conflict, or an old cache."""
        return self.since == self.at and issubclass(self.type, (ConflictError, VersionTimeout))


def after_failure(before: Failure | None, error: BaseException, now: float, *, is_gone: bool) -> Failure:
    """Return what is known of a key after a failure.

    Args:
        before: What was known before; None if the last reconcile succeeded.
        error: The error.
        now: Loop time.
        is_gone: Whether the object is gone.
    """
    text = message_of(error)[:LONGEST_KEPT]
    since, note, noted, tries = now, text, now, 0
    if before is not None:
        since, tries = before.since, before.without_object
        is_retried = before.type is type(error) and not isinstance(error, TerminalError)
        if is_retried and now - before.noted < NOTE_KEPT:
            note, noted = before.note, before.noted
    frame = own_frame(error)
    file, line = ("", 0) if frame is None else (frame.filename, frame.lineno or 0)
    return Failure(type(error), text, file, line, now, since, note, noted, tries + 1 if is_gone else 0)
