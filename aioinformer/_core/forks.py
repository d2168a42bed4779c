"""Objects that a fork leaves behind: their tasks, timers and connections run only in the process that started them."""

from __future__ import annotations

import os

from ..errors import ForkedError

FORKED = "was started before this process was forked, and runs in the parent process only"
"""What is wrong with such an object, for states and probes."""

ADVICE = (
    "start it after the fork, in each process: in the lifespan of the web application, or in gunicorn's post_fork; or "
    "run gunicorn without --preload"
)


class Process:
    """A process. A fork makes another one in the child.

    Attributes:
        was_forked: Whether this code runs in a child, forked after that process was recorded.
    """

    was_forked = False


_current = Process()


def current_process() -> Process:
    """Return the process that calls."""
    return _current


def _begin_child() -> None:
    global _current  # noqa: PLW0603
    _current.was_forked = True
    _current = Process()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin_child)


def require_same_process(process: Process | None, what: object) -> None:
    """Check that no fork has happened since a process was recorded.

    Args:
        process: The process that started it; None if it was not started.
        what: What was started, for the error.

    Raises:
        ForkedError: This is a child of that process.
    """
    if process is not None and process.was_forked:
        raise forked_error(what)


def forked_error(what: object) -> ForkedError:
    """Return the error for an object that a parent process started."""
    return ForkedError(f"{what} {FORKED}: {ADVICE}")
