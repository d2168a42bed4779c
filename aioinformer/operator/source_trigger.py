"""Triggers from elsewhere: timers, message queues, webhooks (controller-runtime ``source.Channel`` and ``Func``)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterable, Callable
from typing import Any

from .._core.callables import callable_name, is_of_kind, require_arguments
from .._core.cancellation import CALL_ERRORS, failure_of, maybe_await
from .._core.coop import Budget
from ..errors import ConfigError
from ..workqueue import WorkQueue
from .requests import Request
from .triggers import Trigger, require_request

logger = logging.getLogger(__name__)

RESTART_DELAY = 1.0
"""Seconds before a failed source is restarted; doubled each time, up to LONGEST_RESTART_DELAY."""

LONGEST_RESTART_DELAY = 60.0

Source = AsyncIterable[Request[Any]] | Callable[[], AsyncIterable[Request[Any]]]
"""Requests; or a function that returns them, which allows a restart after a failure."""


class SourceTrigger(Trigger):
    """Queues the requests of an async iterable.

    Args:
        source: An async iterable of requests; or a function that returns one, which is called again after a failure.
    """

    def __init__(self, source: Source) -> None:
        is_iterable = isinstance(source, AsyncIterable)
        if not is_iterable and not callable(source):
            raise ConfigError(
                f"a source must be an async iterable or a function that returns one, not {source!r}"
            )
        if not is_iterable:
            require_arguments("a source", source, ())
            if is_of_kind(source, inspect.iscoroutinefunction, inspect.isgeneratorfunction):
                raise ConfigError(
                    f"a source is read with `async for`: {callable_name(source)} must be an async function with a "
                    "yield, or a plain function that returns an async iterable"
                )
        super().__init__(f"source {callable_name(source)}")
        self._source = source
        self._is_running = False

    @property
    def is_running(self) -> bool:
        return self._is_running

    async def run(self, queue: WorkQueue[str]) -> None:
        """Queue requests until the source is exhausted."""
        self.queue = queue
        self._is_running = True
        now = asyncio.get_running_loop().time
        delay = RESTART_DELAY
        began = now()
        try:
            while not await self._take_all() and not isinstance(self._source, AsyncIterable):
                if now() - began > LONGEST_RESTART_DELAY:
                    delay = RESTART_DELAY
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_RESTART_DELAY)
                began = now()
        finally:
            self._is_running = False

    async def _take_all(self) -> bool:
        """Queue requests until there are no more. Returns whether the source ended without an error."""
        try:
            iterable = self._source if isinstance(self._source, AsyncIterable) else self._source()
            iterator, budget = aiter(iterable), Budget()
            try:
                while (request := await maybe_await(anext(iterator, self))) is not self:
                    self._take(request)
                    if budget.is_spent():
                        await budget.pause()
            finally:
                if close := getattr(iterator, "aclose", None):
                    await maybe_await(close())
        except CALL_ERRORS as error:
            self.record_failure("iterating", failure_of(error))
            return False
        except BaseException as error:
            self.record_failure("iterating", error)
            raise
        logger.info("%s is exhausted: it triggers no more reconciles", self.name)
        return True

    def _take(self, request: object) -> None:
        self.seen += 1
        try:
            self.queue.add(require_request(request).key)
            self.passed += 1
        except TypeError as error:
            self.record_failure("a request", error)
