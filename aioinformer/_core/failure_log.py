"""FailureLog: limits the log lines of a function that may fail on thousands of objects."""

from __future__ import annotations

import asyncio
import logging

from .log_fields import FIELDS

FIRST = 10
"""Failures of each error type that get a log line of their own."""
MOST_TYPES = 16
"""Error types that are counted separately; failures of further types are only counted."""
INTERVAL = 10.0
"""Seconds between log lines that count further failures. After an interval without failures it starts again."""


class FailureLog:
    """Logs the first failures of a function, then one line with their count every ten seconds.

    At DEBUG each failure has a line. For use in the event loop.

    Args:
        name: The function's name in the log.
        logger: Writes the lines.
    """

    __slots__ = ("_count", "_last", "_level", "_logged", "_logger", "_name", "_timer")

    def __init__(self, name: str, logger: logging.Logger) -> None:
        self._name = name
        self._logger = logger
        self._logged: dict[type[BaseException], int] = {}
        self._count = self._level = 0
        self._last = ""
        self._timer: asyncio.TimerHandle | None = None

    def log(
        self,
        error: BaseException,
        line: str,
        *values: object,
        level: int = logging.ERROR,
        traceback: BaseException | None = None,
    ) -> None:
        """Log a failure, or count it.

        Args:
            error: The error.
            line: The log line with a ``%s`` for each value.
            *values: The values.
            level: The line's level.
            traceback: The error whose traceback is logged; None for none.
        """
        logged = self._logged.get(type(error), 0)
        if logged < FIRST and (logged or len(self._logged) < MOST_TYPES):
            self._logged[type(error)] = logged + 1
            fields = {FIELDS: {"error_type": type(error).__name__}}
            self._logger.log(level, line, *values, exc_info=traceback, stacklevel=2, extra=fields)
        else:
            self._count += 1
            self._level = max(level, self._level)
            self._last = f"{type(error).__name__}: {line % values}"
            self._logger.debug(line, *values, stacklevel=2)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._log_count)

    def _log_count(self) -> None:
        if not self._count:
            self._timer = None
            self._logged.clear()
            return
        self._logger.log(
            self._level, "%s: %d more failures in %g s; the last one, of a %s",
            self._name, self._count, INTERVAL, self._last,
        )  # fmt: skip
        self._count = self._level = 0
        self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._log_count)
