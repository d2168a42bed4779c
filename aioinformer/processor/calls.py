"""HandlerCalls: calls one handler, counts and times the calls, and logs those that fail or are slow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from inspect import isawaitable
from time import perf_counter
from typing import Any

from .._core.cancellation import CALL_ERRORS, failure_of, forget_own_cancellation
from .._core.failure_log import FailureLog
from .._core.slow_calls import SLOW_CALL, SlowCalls, StepTimer
from ..handlers import ResourceEventHandler
from ..notifications import Notification
from ..objects.keys import key_and_version
from .backlog import PendingNotifications

logger = logging.getLogger(__name__)

DEEP_BACKLOG = 1024
"""Notifications that may wait for a slow handler before the log warns, where ever more might."""

_current_call: ContextVar[object] = ContextVar("the handler call that runs now")
"""A token of the handler call that runs now. Tasks that the handler creates inherit it."""


class HandlerCalls:
    """The calls of one handler: ``start``, ``wait`` if the handler is async, ``end``.

    All of them happen in the listener's run task, one notification after the other.

    Args:
        handler: The handler.
        name: Its name in logs.
        pending: Where its notifications wait.
        is_ending: Whether a cancellation is the listener's, which ends the call. Any other is the handler's own.

    Attributes:
        handling: The notification that is being delivered, or None.
        started: When its call started, by ``perf_counter``.
        delivered: Calls that have returned or raised.
        failed: Calls that raised.
    """

    def __init__(
        self,
        handler: ResourceEventHandler[Any],
        name: str,
        pending: PendingNotifications,
        is_ending: Callable[[], bool],
    ) -> None:
        self._handler = handler
        self._name = name
        self._pending = pending
        self._is_ending = is_ending
        self._token: object = None
        self._awaitable: Awaitable[object] | None = None
        self._slow = SlowCalls(name, logger)
        self._failures = FailureLog(name, logger)
        self._depth_before = 0
        self._has_failed = False
        self.handling: Notification | None = None
        self.started = 0.0
        self.delivered = 0
        self.failed = 0

    def start(self, notification: Notification) -> bool:
        """Call the handler; return whether it is async and must be awaited by ``wait``."""
        self.handling, self.started, self._has_failed = notification, perf_counter(), False
        self._token = object()
        _current_call.set(self._token)
        try:
            result = notification.deliver(self._handler)
            if result is not None and isawaitable(result):
                self._awaitable = StepTimer(result) if self._slow.times_steps else result
                return True
        except CALL_ERRORS as error:
            self._record_failure(error)
        return False

    async def wait(self) -> None:
        """Wait until the async call has ended.

        Raises:
            asyncio.CancelledError: The listener is cancelled. A handler that cancels its own task has failed.
        """
        assert self._awaitable is not None
        try:
            await self._awaitable
        except CALL_ERRORS as error:
            self._record_failure(failure_of(error, self._is_ending))

    async def undo_cancellation(self, task: asyncio.Task[Any]) -> None:
        """Undo a cancellation that the call has left in the run task: the handler cancelled its own task.

        Raises:
            asyncio.CancelledError: The listener is cancelled, and the handler swallowed that.
        """
        await forget_own_cancellation(task, self._is_ending)
        if not self._has_failed:
            self._record_failure(asyncio.CancelledError("the handler cancelled its own task"))

    def end(self) -> float:
        """Count the call; return the time by ``perf_counter``."""
        notification, call = self.handling, self._awaitable
        assert notification is not None
        self.handling = self._awaitable = self._token = None
        self.delivered += 1
        self._pending.record_delivered(notification)
        now = perf_counter()
        if (took := now - self.started) > SLOW_CALL:
            self._warn_of_slow_call(notification, took, call)
        return now

    def abandon(self) -> None:
        """Forget the call that a cancellation has ended."""
        self.handling = self._awaitable = self._token = None

    @property
    def is_current(self) -> bool:
        """Whether the running code was started by an async call that has not ended, in whatever task."""
        return self._awaitable is not None and _current_call.get(None) is self._token

    def _record_failure(self, error: BaseException) -> None:
        """Count and log what the handler raised."""
        assert self.handling is not None
        self._has_failed = True
        self.failed += 1
        key, version = key_and_version(self.handling.obj)
        self._failures.log(
            error,
            "%s failed on %s of %s at %s",
            self._name,
            self.handling.kind,
            key,
            version,
            traceback=error,
        )

    def _warn_of_slow_call(self, notification: Notification, took: float, call: object) -> None:
        """Warn if nothing else could run meanwhile, or if many notifications wait."""
        key, _ = key_and_version(notification.obj)
        depth = self._pending.depth
        if not self._slow.record(key, took, call, depth) and self._is_behind(depth):
            self._slow.warn(f"took {took * 1000:.0f} ms on {key}, with {depth} waiting")

    def warn_if_behind(self) -> None:
        """Warn if many notifications wait for one call, or ever more of them. Call this at intervals."""
        depth, before = self._pending.depth, self._depth_before
        self._depth_before = depth
        if not self._is_behind(depth):
            return
        if self.handling is not None and (took := perf_counter() - self.started) > SLOW_CALL:
            key, _ = key_and_version(self.handling.obj)
            self._slow.warn(f"has been at {key} for {took:.1f} s, with {depth} waiting")
        elif depth > before and self._is_behind(before):
            self._slow.warn(f"falls behind: {depth} waiting, {before} at the last look")

    def _is_behind(self, depth: int) -> bool:
        return depth > DEEP_BACKLOG and self._pending.warns_when_behind
