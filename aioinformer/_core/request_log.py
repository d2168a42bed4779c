"""RequestLog: the logger of an HTTP server, in which requests of strangers cannot write without a limit."""

from __future__ import annotations

import logging
from typing import Any

from aiohttp.http import HttpProcessingError

from ..errors import message_of
from .failure_log import FailureLog


class RequestLog(logging.LoggerAdapter[logging.Logger]):
    """Logs the first requests that fail, then counts them. Malformed ones have no traceback.

    Args:
        name: The server's name in the log.
        logger: Writes the lines.
    """

    def __init__(self, name: str, logger: logging.Logger) -> None:
        super().__init__(logger, {})
        self._name = name
        self._failures = FailureLog(name, logger)

    def exception(self, msg: object, *args: object, exc_info: Any = None, **options: Any) -> None:
        """Log or count a failure, as aiohttp reports it."""
        error = exc_info if isinstance(exc_info, BaseException) else RuntimeError("it has no error")
        is_malformed = isinstance(error, HttpProcessingError)
        self._failures.log(
            error, "%s: %s: %s", self._name, str(msg) % args, " ".join(message_of(error).split()),
            level=logging.WARNING if is_malformed else logging.ERROR, traceback=None if is_malformed else error,
        )  # fmt: skip
