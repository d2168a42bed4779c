"""Requests from anywhere: timers, message queues, webhooks (controller-runtime ``source.Channel``, ``source.Func``)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterable, Callable
from typing import Any

from .._core.coop import Budget
from .._core.tasks import is_cancelled, raise_if_cancelled
from ..errors import ConfigError
from ..handlers import callable_name, is_of_kind, require_arguments
from ..workqueue import WorkQueue
from .requests import Request
from .triggers import Trigger, checked

logger = logging.getLogger(__name__)

RESTART_DELAY = 1.0
"""Seconds before a source that failed is begun anew; doubled each time, up to LONGEST_RESTART_DELAY."""

LONGEST_RESTART_DELAY = 60.0

Source = AsyncIterable[Request[Any]] | Callable[[], AsyncIterable[Request[Any]]]
"""Requests; or a function that begins them, so that they can be begun anew after a failure."""


class SourceTrigger(Trigger):
    """Requests from anywhere.

    Args:
        source: An async iterable of requests; or a function that gives one, so that it is begun anew after a failure.
    """

    def __init__(self, source: Source) -> None:
        is_iterable = isinstance(source, AsyncIterable)
        if not is_iterable and not callable(source):
            raise ConfigError(f"a source is an async iterable, or a function that gives one, not {source!r}")
        if not is_iterable:
            require_arguments("a source", source, ())
            if is_of_kind(source, inspect.iscoroutinefunction, inspect.isgeneratorfunction):
                raise ConfigError(
                    f"a source is taken by `async for`: {callable_name(source)} has to be an async function with a "
                    "yield, or a plain one that gives an async iterable"
                )
        super().__init__(f"source {callable_name(source)}")
        self._source = source
        self._is_running = False

    @property
    def is_running(self) -> bool:
        return self._is_running

    async def run(self, queue: WorkQueue[str]) -> None:
        """Take requests until there are no more."""
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
        """Take requests until there are no more; whether they came to an end by themselves."""
        try:
            iterable = self._source if isinstance(self._source, AsyncIterable) else self._source()
            iterator, budget = aiter(iterable), Budget()
            try:
                async for request in iterator:
                    self._take(request)
                    raise_if_cancelled()  # the source has gone on
                    if budget.is_spent():
                        await budget.pause()
            finally:
                close = getattr(iterator, "aclose", None)
                if close is not None:
                    await close()
        except Exception as error:
            self.record_failure("iterating", error)
            if is_cancelled():  # the source has made a failure of it
                raise asyncio.CancelledError from error
            return False
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            self.record_failure("iterating", error)
            return False
        except BaseException as error:
            self.record_failure("iterating", error)
            raise
        logger.info("%s has ended: no more requests come of it", self.name)
        return True

    def _take(self, request: object) -> None:
        self.seen += 1
        try:
            self.queue.add(checked(request).key)
            self.passed += 1
        except TypeError as error:
            self.record_failure("a request", error)
