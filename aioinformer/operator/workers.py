"""Workers: who reconciles, one object each at a time, and what becomes of each reconcile (controller-runtime
``pkg/internal/controller``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

from .._core.cancellation import forget_own_cancellation
from .._core.coop import Budget
from .._core.failure_log import FailureLog
from .._core.slow_calls import SLOW_CALL, SlowCalls, StepTimer
from .._core.tasks import finish
from ..errors import (
    ApiError,
    InvalidResultError,
    ReconcileTimeout,
    StoppedError,
    TerminalError,
    VersionTimeout,
    said,
    shortened,
    traceback_of,
)
from ..workqueue import WorkQueue
from .requests import Result
from .runs import CANCEL_GRACE, Run, Runs
from .state import Counts

logger = logging.getLogger(__name__)

CACHE_DELAY = 1.0
"""Seconds after which an object is tried again for which the cache was too old: nothing to back off from."""
LEADERLESS = 1.0
"""Seconds after which to look again whether one may work: who leads no more is about to be cancelled."""
LIMITERLESS = 10.0
"""Seconds after which an object is tried again whose rate limiter has failed."""


class Workers:
    """The workers of a controller.

    Args:
        name: The controller's.
        queue: The keys to reconcile.
        reconcile: Reconciles the object of a key: gives a Result, None, or what is awaited for one.
        concurrency: How many workers there are.
        timeout: Seconds that a reconcile may take; None for any length.
        is_gone: Whether no object has a key any more: what is not tried again of it is forgotten.

    Attributes:
        concurrency: How many there should be.
        counts: What became of reconciles.
        failing: Keys that failed when they were reconciled last, and of what.
        last_error: What a reconcile has raised last.
        last_error_key: Which one.
        failure: What a worker, or a source, has died of.
        is_working: Whether they work.
        runs: The reconciles that are running.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue[str],
        reconcile: Callable[[str], object],
        concurrency: int,
        timeout: float | None,
        is_gone: Callable[[str], bool] = lambda key: False,
    ) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._timeout = timeout
        self._is_gone = is_gone
        self._may_work: Callable[[], bool] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._slow = SlowCalls(f"{name}: a reconcile", logger)
        self._log = FailureLog(name, logger)
        self._news = asyncio.Event()
        self._death = asyncio.Event()
        self._is_stopping = False
        self.concurrency = concurrency
        self.counts = Counts()
        self.failing: dict[str, type[BaseException]] = {}
        self.last_error: BaseException | None = None
        self.last_error_key: str | None = None
        self._failed_at = 0.0  # loop time
        self._loop: asyncio.AbstractEventLoop | None = None  # of that
        self.failure: BaseException | None = None
        self.is_working = False
        self.runs = Runs(timeout, self._replace)

    @property
    def last_error_seconds(self) -> float | None:
        """Seconds since the last error, in any thread; None if there was none."""
        return None if self._loop is None else self._loop.time() - self._failed_at

    def __len__(self) -> int:
        """How many there are, those that are stuck not counted."""
        return len(self._tasks.difference(run.task for run in self.runs.stuck))

    async def run(self, may_work: Callable[[], bool] | None = None) -> None:
        """Work until cancelled, or until ``stop``. May be called again after it has ended.

        Args:
            may_work: Asked before each reconcile, whether it may begin; None for always.

        Cancellation: running reconciles are cancelled, and come again with the next call.
        """
        self.is_working = True
        self._may_work = may_work
        try:
            for _ in range(self.concurrency):
                self._start()
            while self._tasks and self.failure is None:
                self._news.clear()
                await self._news.wait()
            if self.failure is not None:
                raise self.failure
        finally:
            self.is_working = False
            await self._end_all()

    async def stop(self, grace_period: float) -> None:
        """Begin no reconcile any more, and let those that run end.

        Args:
            grace_period: Seconds after which they are cancelled. Those that are stuck get none.

        Cancellation: they are cancelled at once.
        """
        self._is_stopping = True
        for worker in list(self._idle):
            worker.cancel()
        try:
            if busy := self._tasks - self._idle - {run.task for run in self.runs.stuck}:
                await asyncio.wait(busy, timeout=grace_period)
        finally:
            await self._end_all()

    def fail(self, error: BaseException) -> None:
        """Something has died that no reconciler is to blame for: ``run`` ends with it, or ``raise_death``."""
        self.failure = error
        if self.is_working:
            self._news.set()
        elif not self._is_stopping:  # what ends anyway may end in peace
            self._death.set()

    async def raise_death(self) -> None:
        """Wait until something has died while nobody worked, and raise what of."""
        await self._death.wait()
        assert self.failure is not None
        raise self.failure

    async def _end_all(self) -> None:
        """Cancel all workers, and wait until they have ended; but for those that ignore it, not for ever."""
        workers = list(self._tasks)
        self._ending.update(workers)
        try:
            await finish(*workers, grace=CANCEL_GRACE)
        finally:
            if running := [worker for worker in workers if not worker.done()]:
                keys = ", ".join(run.key for run in self.runs.give_up(running))
                logger.error("%s: left behind, since they ignore being cancelled: %s", self._name, keys)
                for worker in running:
                    worker.cancel()  # once more: wait_for may have swallowed the first
                self._tasks.difference_update(running)
                self._news.set()

    def _start(self) -> None:
        worker = asyncio.create_task(self._work_on(), name=f"<Controller {self._name}> worker")
        self._tasks.add(worker)
        worker.add_done_callback(self._record_end)

    def _record_end(self, worker: asyncio.Task[None]) -> None:
        self._tasks.discard(worker)
        is_told = self._is_stopping or worker in self._ending
        self._ending.discard(worker)
        if worker.cancelled() and not is_told:
            self.fail(StoppedError(f"{self._name}: a worker was cancelled by somebody else"))
        elif not worker.cancelled() and (failure := worker.exception()) is not None:
            self.fail(failure)
        self._news.set()

    def _replace(self, run: Run) -> None:
        is_missed = run.task in self._tasks and run.task not in self._ending and not self._is_stopping
        logger.error(
            "%s: the reconcile of %s was cancelled after %g s, and goes on%s",
            self._name, run.key, self._timeout, "; another worker takes over" if is_missed else "",
        )  # fmt: skip
        if is_missed:
            self._start()

    async def _work_on(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        queue, idle = self._queue, self._idle
        loop = asyncio.get_running_loop()
        budget = Budget()
        while not self._is_stopping:
            idle.add(task)
            try:
                key = await queue.get()
            finally:
                idle.discard(task)
            if self._may_work is not None and not self._may_work():
                queue.add(key, queue.priority_of(key))
                queue.done(key)
                await asyncio.sleep(LEADERLESS)
                continue
            run = Run(key, task, loop.time())
            self.runs.begin(run)
            try:
                await self._go_through(run)
            except Exception as error:
                self._record_failure(key, error)
                line = "%s: the rate limiter failed on %s; again in %g s"
                self._log.log(error, line, self._name, key, LIMITERLESS, traceback=error)
                queue.add_after(key, LIMITERLESS, queue.priority_of(key))
            finally:
                self.runs.end(run)
                queue.done(key)
            if task.cancelling():
                await forget_own_cancellation(task, lambda: task in self._ending)
            if run.is_stuck or task in self._ending:
                return  # another one has taken over, or nobody is to work any more
            if len(queue) and budget.is_spent():
                await budget.pause()

    async def _go_through(self, run: Run) -> None:
        """Reconcile one object, and see to what becomes of it."""
        key = run.key
        began = perf_counter()
        call: object = None
        self._queue.cancel_delayed(key)  # what comes of this time counts
        try:
            result = call = self._reconcile(key)
            if isinstance(call, Awaitable):
                if self._slow.times_steps:
                    call = StepTimer(call)
                result = await call
                if run.is_overdue or run.task in self._ending:
                    raise asyncio.CancelledError  # which it has swallowed
            self._heed(key, result)
        except (Exception, asyncio.CancelledError) as error:
            if run.is_overdue:
                self._time_out(key, error)
            elif run.task in self._ending:
                self._interrupt(key, error)
            else:  # also where the cancellation is the reconciler's own making
                self._fail(key, error)
        finally:
            took = perf_counter() - began
            self.counts.seconds.observe(took)
            if took > SLOW_CALL:
                self._slow.record(key, took, call, len(self._queue))

    def _heed(self, key: str, result: object) -> None:
        if result is not None and not isinstance(result, Result):
            raise InvalidResultError(
                f"{self._name}: reconciling {key} returned {shortened(result)}, which is neither a Result nor None"
            )
        self.failing.pop(key, None)
        if result is None or result.is_final:
            self._queue.forget(key)
            self.counts.success += 1
        elif result.requeue_after:
            self._queue.forget(key)
            self.counts.requeue_after += 1
            self._queue.add_after(key, result.requeue_after, self._queue.priority_of(key))
        else:
            self._queue.add_rate_limited(key, self._queue.priority_of(key))
            self.counts.requeue += 1

    def _time_out(self, key: str, raised: BaseException) -> None:
        """It was cancelled for taking too long: it has failed, whatever it made of that."""
        text = f"{self._name}: {key} took longer than {self._timeout:g} s"
        if isinstance(raised, Exception):
            text += f"; cancelled, it raised {said(raised)}"
        self.counts.timeout += 1
        timeout = ReconcileTimeout(text)
        timeout.__cause__ = raised
        self._retry(key, timeout)

    def _interrupt(self, key: str, raised: BaseException) -> None:
        """It was cancelled because the workers end: it comes again, whatever it made of that."""
        if isinstance(raised, Exception):
            logger.warning("%s: %s was cancelled, and raised %s", self._name, key, said(raised))
        self.counts.interrupted += 1
        self._queue.add(key, self._queue.priority_of(key))

    def _fail(self, key: str, raised: BaseException) -> None:
        """Find out whether, and when, to try again; a group of errors is what all in it are."""
        causes = list(_leaves(raised))
        error = causes[0] if len(causes) == 1 else raised
        if all(isinstance(cause, TerminalError) for cause in causes):
            self._record_failure(key, error)
            self.counts.terminal += 1
            line = "%s: %s failed and is not tried again before it changes: %s"
            self._log.log(error, line, self._name, key, said(error))
            if self._is_gone(key):  # nothing comes that would end this
                self.failing.pop(key, None)
                self._queue.forget(key)
        elif all(isinstance(cause, VersionTimeout) for cause in causes):
            self._record_failure(key, error)
            self._queue.add_after(key, CACHE_DELAY, self._queue.priority_of(key))
            line = "%s: %s waits for the cache; again in %g s: %s"
            values = (self._name, key, CACHE_DELAY, said(error))
            self._log.log(error, line, *values, level=logging.WARNING)
        else:
            asked = [cause.retry_after or 0.0 for cause in causes if isinstance(cause, ApiError)]
            self._retry(key, error, max(asked, default=0.0))

    def _record_failure(self, key: str, error: BaseException) -> None:
        self.counts.error += 1
        self.last_error, self.last_error_key = error, key
        self._loop = asyncio.get_running_loop()
        self._failed_at = self._loop.time()
        self.failing[key] = type(error)

    def _retry(self, key: str, error: BaseException, asked: float = 0.0) -> None:
        """Try again later, the later the more often it has failed in a row; not before the server asks for it.

        Where the same fails again and again, the log has its traceback once; of many that fail, those of the first.
        """
        delay = self._queue.add_rate_limited(key, self._queue.priority_of(key), at_least=asked)
        is_news = self.failing.get(key) is not type(error)
        self._record_failure(key, error)
        times = self._queue.num_requeues(key)
        self._log.log(
            error,
            "%s: %s failed%s; again in %.3g s: %s",
            self._name, key, f", {times} times in a row" if times > 1 else "", delay, said(error),
            level=logging.WARNING if asked else logging.ERROR,
            traceback=traceback_of(error) if is_news else None,
        )  # fmt: skip


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """What is in a group of errors, and in the groups in it; or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
