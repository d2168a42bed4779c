"""Workers: tasks that take keys from the queue and reconcile them, and what happens after each reconcile
(controller-runtime ``pkg/internal/controller``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import nullcontext
from time import perf_counter
from types import CoroutineType
from typing import Any

import anyio

from .._core.cancellation import CALL_ERRORS, ends_when, forget_own_cancellation
from .._core.coop import Budget
from .._core.failure_log import FailureLog
from .._core.log_fields import log_source
from .._core.slow_calls import SLOW_CALL, SlowCalls, StepTimer
from .._core.spans import ATTEMPT, CONTROLLER, KIND, NAMESPACE, OBJECT, fail_span, find_tracer, span
from .._core.tasks import wait_ended
from ..errors import (
    ApiError,
    ForbiddenError,
    InvalidResultError,
    ReconcileTimeout,
    StoppedError,
    TerminalError,
    VersionTimeout,
    message_of,
    shorten,
    traceback_of,
)
from ..sharding import Claim
from ..workqueue import WorkQueue
from .controller_options import TIMEOUT, ControllerOptions
from .failure_events import FailureEvents
from .failures import Failure, after_failure
from .ready_condition import ReadyCondition
from .requests import Result
from .runs import CANCEL_GRACE, Run, Runs
from .state import Counts, FailingKey

logger = logging.getLogger(__name__)

CACHE_DELAY = 1.0
"""Seconds until a retry when the cache was too old for a reconcile; no back-off, since nothing failed."""
NOT_LEADING_DELAY = 1.0
"""Seconds until a worker checks again whether it may work; after lost leadership it is cancelled soon."""
FORBIDDEN = (
    ". If a right is missing, grant it to the service account: an Operator declares it by owns, uses or "
    "status_verbs, and aioinformer manifests prints the rules"
)
"""What the log adds to the first refused request."""
TRIES_WITHOUT_OBJECT = 20
"""Failures in a row of a key whose object is gone, after which it is given up: an hour with the default limiter."""
CONDITION_DELAY = 30.0
"""Seconds until an object is reconciled again whose condition could not be written."""
RATE_LIMITER_FAILED_DELAY = 10.0
"""Seconds until a retry when the rate limiter itself raised."""


class Workers:
    """The workers of a controller.

    Args:
        name: The controller's name.
        queue: The keys to reconcile.
        reconcile: Reconciles the object of a key. Returns a Result, None, or an awaitable of either.
        options: The controller's, of which it reads ``concurrency`` and ``timeout``.
        is_gone: Returns whether a key's object is gone: terminal failures of such keys are forgotten, and others after
            ``TRIES_WITHOUT_OBJECT``.
        uid_of: Returns the uid of a key's object, for log messages; ``""`` if it is not known.
        kind: The kind of the objects, for spans; ``""`` if it is not known.
        events: Records Events about failing objects; None for none.
        condition: Keeps a condition of each object; None for none.

    Attributes:
        concurrency: The configured number of workers; None for no limit.
        counts: Results of reconciles.
        failing: Keys whose last reconcile failed, with the error, the oldest failure first.
        last_error: The last error of a reconcile.
        last_error_key: The key of that reconcile.
        failure: The error that ended a worker or source.
        is_working: Whether the workers run.
        claim: With sharding: claims the object of a key before its reconcile; None if it is not this replica's.
        runs: The running reconciles.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue[str],
        reconcile: Callable[[str], object],
        options: ControllerOptions[Any],
        is_gone: Callable[[str], bool] = lambda key: False,
        *,
        uid_of: Callable[[str], str] = lambda key: "",
        kind: str = "",
        events: FailureEvents | None = None,
        condition: ReadyCondition | None = None,
    ) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._timeout = options.get("timeout", TIMEOUT)
        self._is_gone = is_gone
        self._uid_of = uid_of
        self._kind = kind
        self._has_advised = False
        self._process: Callable[[Run], Coroutine[Any, Any, None]] = self._reconcile_key
        self._events = events
        self._condition = condition
        self._may_work: Callable[[], bool] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._slow = SlowCalls(f"{name}: a reconcile", logger)
        self._log = FailureLog(name, logger)
        self._changed = asyncio.Event()  # a worker ended, or ``failure`` was set
        self._failed_on_standby = asyncio.Event()
        self._is_stopping = False
        self._spare = 0  # workers without a key
        self.concurrency: int | None = options.get("concurrency", 1)
        self.counts = Counts()
        self.failing: dict[str, Failure] = {}
        self.last_error: BaseException | None = None
        self.last_error_key: str | None = None
        self._failed_at = 0.0  # time of self._loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self.failure: BaseException | None = None
        self.is_working = False
        self.claim: Callable[[str], Claim | None] | None = None
        self.runs = Runs(self._timeout, self._replace)

    @property
    def last_error_seconds(self) -> float | None:
        """Seconds since the last error, None if there was none. May be read in any thread."""
        return None if self._loop is None else self._loop.time() - self._failed_at

    @property
    def failing_seconds(self) -> float:
        """Seconds that the longest failing key fails; 0 if none does. May be read in any thread."""
        oldest = next(iter(self.failing.copy().values()), None)
        return 0.0 if oldest is None or self._loop is None else self._loop.time() - oldest.since

    def failures(self) -> Iterator[FailingKey]:
        """Yield the keys whose last reconcile failed, the longest known first. Call it in the event loop."""
        now = 0.0 if self._loop is None else self._loop.time()
        for key, failure in self.failing.items():
            yield FailingKey(
                key=key,
                error=failure.text,
                where=failure.where,
                seconds=now - failure.at,
                tries=self._queue.num_requeues(key),
            )

    def __len__(self) -> int:
        """The number of workers, without those that are stuck."""
        return len(self._tasks.difference(run.task for run in self.runs.stuck))

    async def run(self, may_work: Callable[[], bool] | None = None) -> None:
        """Work until cancelled, or until ``stop``. It may be called again after it has ended.

        Args:
            may_work: Called before each reconcile; returns whether it may start. None for always.

        Cancellation: running reconciles are cancelled and their keys queued again, for the next call.
        """
        self.is_working = True
        self._may_work = may_work
        has_spans = find_tracer() is not None and self.concurrency is not None  # a task may run for days
        self._process = self._reconcile_in_span if has_spans else self._reconcile_key
        try:
            self._spare = 0
            with nullcontext() if self._events is None else self._events.repeating():
                for _ in range(self.concurrency or 1):
                    self._start()
                while self._tasks and self.failure is None:
                    self._changed.clear()
                    await self._changed.wait()
            if self.failure is not None:
                raise self.failure
        except asyncio.CancelledError:
            self.is_working = False
            if self.failure is not None:  # it comes too late for this call
                self.fail(self.failure)
            raise
        finally:
            self.is_working = False
            await self._end_all()

    async def stop(self, grace_period: float) -> None:
        """Start no more reconciles, and wait until the running ones have ended.

        Args:
            grace_period: Seconds after which they are cancelled. Stuck reconciles get no grace period.

        Cancellation: they are cancelled at once.
        """
        self._is_stopping = True
        reconciling = self._tasks & self.runs.workers
        for worker in self._tasks - reconciling:
            worker.cancel()
        try:
            if busy := reconciling.difference(run.task for run in self.runs.stuck):
                with anyio.move_on_after(grace_period):
                    await asyncio.wait(busy)
        finally:
            await self._end_all()

    def fail(self, error: BaseException) -> None:
        """Record the error that ended a worker or source. ``run`` raises it, or ``raise_failure`` on standby."""
        self.failure = error
        if self.is_working:
            self._changed.set()
        elif not self._is_stopping:  # an error while stopping no longer matters
            self._failed_on_standby.set()

    def withdraw(self, key: str) -> None:
        """Cancel the reconcile of a key, if there is one. It has not failed then, whatever it raises."""
        self.runs.withdraw(key)

    def recover(self, key: str) -> None:
        """Forget the failures of a key, as a reconcile that succeeds does."""
        self._recover(key)
        self._queue.forget(key)

    async def raise_failure(self) -> None:
        """Wait until a source fails while no worker runs, and raise its error."""
        await self._failed_on_standby.wait()
        assert self.failure is not None
        raise self.failure

    async def _end_all(self) -> None:
        """Cancel all workers and wait until they have ended, at most ten seconds for those that ignore it.

        Reconciles that were cancelled before are not cancelled again: that would interrupt their clean-up.
        """
        workers = list(self._tasks)
        self._ending.update(workers)
        for worker in self._tasks - self.runs.workers:
            worker.cancel()
        self.runs.interrupt()
        try:
            await wait_ended(*workers, grace=CANCEL_GRACE)
        finally:
            if running := [worker for worker in workers if not worker.done()]:
                keys = ", ".join(run.key for run in self.runs.mark_stuck(running))
                logger.error(
                    "%s: reconciles ignored their cancellation for %g s, not waiting for them any longer: %s",
                    self._name, CANCEL_GRACE, keys,
                )  # fmt: skip
                for worker in running:
                    worker.cancel()  # again: wait_for may have swallowed the first one
                self._tasks.difference_update(running)
                self._changed.set()

    def _start(self) -> None:
        worker = asyncio.create_task(self._work_on(), name=f"<Controller {self._name}> worker")
        self._tasks.add(worker)
        self._spare += 1
        worker.add_done_callback(self._record_end)

    def _record_end(self, worker: asyncio.Task[None]) -> None:
        self._tasks.discard(worker)
        is_expected = self._is_stopping or worker in self._ending
        self._ending.discard(worker)
        if worker.cancelled() and not is_expected:
            self.fail(StoppedError(f"{self._name}: a worker was cancelled from outside"))
        elif not worker.cancelled() and (failure := worker.exception()) is not None:
            self.fail(failure)
        self._changed.set()

    def _replace(self, run: Run) -> None:
        is_replaced = run.task in self._tasks and run.task not in self._ending and not self._is_stopping
        logger.error(
            "%s: the reconcile of %s ignores its cancellation for %g s%s",
            self._name, run.key, CANCEL_GRACE, "; another worker takes its place" if is_replaced else "",
        )  # fmt: skip
        if is_replaced:
            self._start()

    async def _work_on(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        queue = self._queue
        loop = asyncio.get_running_loop()
        budget = Budget()
        run: Run | None = None
        ends_when(task, lambda: run is None or self._is_ending(run))
        while not self._is_stopping:
            try:
                key = await queue.get()
            finally:
                self._spare -= 1
            if self.concurrency is None and not self._spare:
                self._start()
            if self._may_work is not None and not self._may_work():
                queue.add(key, queue.priority_of(key))
                queue.done(key)
                self._spare += 1
                await asyncio.sleep(NOT_LEADING_DELAY)
                continue
            claim = None
            if self.claim is not None and (claim := self.claim(key)) is None:
                self._forget(key)  # the replica that has it queues it itself
                queue.done(key)
                self._spare += 1
                if budget.is_spent():
                    await budget.pause()
                continue
            run = Run(key, task, loop.time(), describe=self._describe)
            log_source.set(run)
            self.runs.begin(run)
            try:
                try:
                    await self._process(run)
                except Exception as error:
                    self._record_failure(key, error)
                    line = "%s: the rate limiter failed for %s; retrying in %g s"
                    self._log.log(error, line, self._name, key, RATE_LIMITER_FAILED_DELAY, traceback=error)
                    queue.add_after(key, RATE_LIMITER_FAILED_DELAY, queue.priority_of(key))
                finally:
                    self.runs.end(run)
                if task.cancelling():
                    await forget_own_cancellation(task, lambda: task in self._ending)
                if run.is_stuck or task in self._ending:
                    return  # a new worker has replaced this one, or the workers end
                if self._condition is not None and not run.is_withdrawn:
                    await self._keep_condition(self._condition, run)
            finally:
                if claim is not None:
                    claim.end()
                queue.done(key)
            if self.concurrency is None and self._spare:
                return
            self._spare += 1
            if queue.waiting and budget.is_spent():
                await budget.pause()

    def _is_ending(self, run: Run) -> bool:
        """Whether a reconcile was cancelled, and not only its task by the reconciler itself."""
        return run.is_overdue or run.is_withdrawn or run.task in self._ending

    def _describe(self, run: Run) -> dict[str, object]:
        """Return what log messages of a reconcile say of it. May be called in any thread."""
        namespace, _, name = run.key.rpartition("/")
        return {
            "controller": self._name,
            "namespace": namespace,
            "name": name,
            "uid": self._uid_of(run.key),
            "attempt": run.attempt or self._queue.num_requeues(run.key) + 1,
            "duration": round(run.task.get_loop().time() - run.started, 6),
        }

    async def _reconcile_in_span(self, run: Run) -> None:
        namespace, _, name = run.key.rpartition("/")
        attributes: dict[str, str | int] = {
            CONTROLLER: self._name, KIND: self._kind, NAMESPACE: namespace, OBJECT: name,
            ATTEMPT: self._queue.num_requeues(run.key) + 1,
        }  # fmt: skip
        before = self.failing.get(run.key)
        with span(f"reconcile {self._name}", attributes, kind="INTERNAL") as opened:
            await self._reconcile_key(run)
            failure = self.failing.get(run.key)
            if opened is not None and failure is not None and failure is not before:
                fail_span(opened, failure.type.__name__, failure.text)

    async def _reconcile_key(self, run: Run) -> None:
        """Reconcile one object, then requeue or forget its key as the result says."""
        key = run.key
        began = perf_counter()
        call: object = None
        self._queue.cancel_delayed(key)  # this run decides when the next one is due
        try:
            result = call = self._reconcile(key)
            if type(call) is CoroutineType or isinstance(call, Awaitable):
                if self._slow.times_steps:
                    call = StepTimer(call)
                result = await call
                if self._is_ending(run):
                    raise asyncio.CancelledError  # the reconcile swallowed it
            run.result = self._handle_result(key, result)
            self.counts.succeeded_at = began
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("%s: reconciled %s in %.3g s", self._name, key, perf_counter() - began)
        except CALL_ERRORS as error:
            run.attempt = self._queue.num_requeues(key) + 1
            if run.is_overdue:
                self._time_out(key, error)
            elif run.is_withdrawn:
                self._end_withdrawn(key, error)
            elif run.task in self._ending:
                self._interrupt(run, error)
            else:  # including a CancelledError that the reconciler raised itself
                self._fail(key, error)
        finally:
            took = perf_counter() - began
            self.counts.seconds.observe(took)
            if took > SLOW_CALL:
                self._slow.record(key, took, call, len(self._queue))

    def _handle_result(self, key: str, result: object) -> Result | None:
        """Requeue or forget a key as the result says, and return the result."""
        if result is not None and not isinstance(result, Result):
            advice = f": to be called again in {result} s, return Result(requeue_after={result})"
            raise InvalidResultError(
                f"{self._name}: reconciling {key} returned {shorten(result)}, which is neither a Result nor None"
                f"{advice if type(result) in (int, float) else ''}"
            )
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
        if self.failing:
            self._recover(key)
        return result

    def _recover(self, key: str) -> None:
        if self.failing.pop(key, None) is not None and self._events is not None:
            self._events.recovered(key)

    def _time_out(self, key: str, raised: BaseException) -> None:
        """Retry after a timeout, whatever the reconcile raised or returned when it was cancelled."""
        text = f"{self._name}: {key} took longer than {self._timeout:g} s"
        if isinstance(raised, Exception):
            text += f"; when cancelled, it raised {message_of(raised)}"
        self.counts.timeout += 1
        timeout = ReconcileTimeout(text)
        timeout.__cause__ = raised
        self._retry(key, timeout)

    def _interrupt(self, run: Run, raised: BaseException) -> None:
        """Queue the key again, since the reconcile was cancelled because the workers end."""
        key = run.key
        if isinstance(raised, Exception):
            logger.warning(
                "%s: %s was cancelled because the workers stop, and raised %s; it is queued again",
                self._name,
                key,
                message_of(raised),
            )
        self.counts.interrupted += 1
        self._queue.add(key, self._queue.priority_of(key))

    def _end_withdrawn(self, key: str, raised: BaseException) -> None:
        if isinstance(raised, Exception):
            line = "%s: %s was cancelled because its object does not need it any more, and raised %s"
            self._log.log(raised, line, self._name, key, message_of(raised), level=logging.WARNING)
        self.counts.withdrawn += 1
        self._forget(key)

    def _fail(self, key: str, raised: BaseException) -> None:
        """Decide whether and when to retry. A group of errors is terminal if all errors in it are."""
        causes = list(_leaves(raised))
        error = causes[0] if len(causes) == 1 else raised
        if all(isinstance(cause, TerminalError) for cause in causes):
            self._record_failure(key, error)
            self.counts.terminal += 1
            line = "%s: %s failed and is not retried until it changes: %s"
            self._log.log(error, line, self._name, key, message_of(error))
            if self._is_gone(key):  # no later event would remove the key
                self._forget(key)
        elif all(isinstance(cause, VersionTimeout) for cause in causes):
            self._record_failure(key, error)
            self._queue.add_after(key, CACHE_DELAY, self._queue.priority_of(key))
            line = "%s: %s waits for the cache; retrying in %g s: %s"
            values = (self._name, key, CACHE_DELAY, message_of(error))
            self._log.log(error, line, *values, level=logging.WARNING)
        else:
            delays = [cause.retry_after or 0.0 for cause in causes if isinstance(cause, ApiError)]
            self._retry(key, error, max(delays, default=0.0))

    def _record_failure(self, key: str, error: BaseException) -> None:
        self.counts.error += 1
        self.last_error, self.last_error_key = error, key
        self._loop = asyncio.get_running_loop()
        self._failed_at = self._loop.time()
        failure = after_failure(self.failing.get(key), error, self._failed_at, is_gone=self._is_gone(key))
        self.failing[key] = failure
        if self._events is not None:
            self._events.failed(key, failure)

    def _retry(self, key: str, error: BaseException, at_least: float = 0.0) -> None:
        """Retry with a back-off that grows with each failure in a row, and not before the server's Retry-After.

        A repeated error is logged with its traceback only the first time. A key whose object is gone is given up after
        ``TRIES_WITHOUT_OBJECT``: nothing but another request would end its retries.
        """
        known = self.failing.get(key)
        if known is not None and known.without_object >= TRIES_WITHOUT_OBJECT - 1 and self._is_gone(key):
            self._record_failure(key, error)
            self._give_up(key, error)
            return
        delay = self._queue.add_rate_limited(key, self._queue.priority_of(key), at_least=at_least)
        is_new_error = known is None or known.type is not type(error)
        self._record_failure(key, error)
        times = self._queue.num_requeues(key)
        self._log.log(
            error,
            "%s: %s failed%s; retrying in %.3g s: %s%s",
            self._name, key, f", {times} times in a row" if times > 1 else "", delay, message_of(error),
            self._advice(error),
            level=logging.WARNING if at_least else logging.ERROR,
            traceback=traceback_of(error) if is_new_error else None,
        )  # fmt: skip

    def _advice(self, error: BaseException) -> str:
        """Return what to do about an error, the first time."""
        if self._has_advised or not isinstance(error, ForbiddenError):
            return ""
        self._has_advised = True
        return FORBIDDEN

    def _give_up(self, key: str, error: BaseException) -> None:
        self.counts.given_up += 1
        line = "%s: %s is given up: its object is gone, and it has failed %d times since then: %s"
        self._log.log(error, line, self._name, key, TRIES_WITHOUT_OBJECT, message_of(error))
        self._forget(key)

    def _forget(self, key: str) -> None:
        self.forget_failure(key)
        self._queue.forget(key)

    def forget_failure(self, key: str) -> None:
        """Forget that a key fails, since its object is gone."""
        if self.failing.pop(key, None) is not None and self._events is not None:
            self._events.forget(key)

    async def _keep_condition(self, condition: ReadyCondition, run: Run) -> None:
        """Write the condition of an object that was reconciled, before it may be reconciled again.

        Cancellation: the object is queued again, so that its condition is written later.
        """
        key = run.key
        try:
            is_kept = await condition.keep(key, self.failing.get(key), run.result)
        except asyncio.CancelledError:
            self._queue.add(key, self._queue.priority_of(key))
            raise
        if not is_kept:
            self._queue.add_after(key, CONDITION_DELAY, self._queue.priority_of(key))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in nested groups; or the error itself if it is not a group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
