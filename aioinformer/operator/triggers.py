"""Base of all triggers: what puts keys into a controller's work queue, and its snapshot."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from .._core.failure_log import FailureLog
from ..errors import message_of, shorten, traceback_of
from ..workqueue import WorkQueue
from .requests import Request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerState:
    """A snapshot of a trigger.

    Attributes:
        name: The trigger's name.
        seen: Changes, or requests of a source.
        passed: Changes that passed the predicate; for a source, valid requests.
        failed: Errors of predicates, map functions and sources.
        last_error: The last of them.
        running: Whether more changes or requests can come.
        synced: Whether it has processed its first list; always True for a source.
    """

    name: str
    seen: int
    passed: int
    failed: int
    last_error: BaseException | None
    running: bool
    synced: bool

    def __str__(self) -> str:
        text = f"{self.name}: {self.seen} seen, {self.passed} passed"
        if self.failed:
            text += f", {self.failed} failed, last: {self.last_error!r}"
        return text if self.running else f"{text}; ended"


class Trigger(ABC):
    """Puts keys into a controller's work queue."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen = 0
        self.passed = 0
        self.failed = 0
        self.last_error: BaseException | None = None
        self._failures = FailureLog(name, logger)
        self.queue: WorkQueue[str]

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether more changes or requests can come."""

    @property
    def is_synced(self) -> bool:
        """Whether it has processed its first list."""
        return True

    @property
    def state(self) -> TriggerState:
        """Counts and the last error."""
        return TriggerState(
            name=self.name,
            seen=self.seen,
            passed=self.passed,
            failed=self.failed,
            last_error=self.last_error,
            running=self.is_running,
            synced=self.is_synced,
        )

    def record_failure(self, what: str, error: BaseException) -> None:
        """Log and count an error of user code; the controller continues."""
        self.failed += 1
        self.last_error = error
        self._failures.log(
            error, "%s: %s failed: %s", self.name, what, message_of(error), traceback=traceback_of(error)
        )


def require_request(request: object) -> Request[Any]:
    """Check that something is a request.

    Raises:
        TypeError: It is not.
    """
    if isinstance(request, Request):
        return request
    raise TypeError(
        f"{shorten(request)} is not a Request; create one from an object or key by Request.of(...)"
    )
