"""Controller: runs a reflector and the process loop (client-go ``tools/cache/controller.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sized
from dataclasses import dataclass, field
from typing import Any

import anyio

from .._core.callables import require_callback
from .._core.cancellation import CALL_ERRORS, maybe_await
from .._core.checks import require_methods, require_timeout
from .._core.coop import Budget
from .._core.failure_log import FailureLog
from .._core.tasks import Running, run_until_first
from ..deltas import Delta
from ..errors import FIFOClosedError, RejectedObjectError, RequeueError, StoppedError, SyncTimeout
from ..objects.keys import key_and_version
from ..protocols import ListerWatcher, Process, Queue, may_batch
from ..reflector import Reflector, ReflectorOptions, ReflectorState
from ..reflector.options import WatchErrorHandler

logger = logging.getLogger(__name__)

RETRY_DELAY = 0.005
RETRY_DELAY_CAP = 1.0

SYNCED_POLL = 0.1
"""Seconds between checks of whether a queue without ``wait_synced`` has synced."""


@dataclass(slots=True)
class Config:
    """The parts and options of a Controller.

    Attributes:
        queue: The queue between reading and processing. A queue with only client-go's verbs is enough.
        list_watch: The source.
        process: ``process(deltas, is_in_initial_list)``, plain or async, for each popped item.
        object_type: The type of the objects.
        full_resync_period: Seconds between resyncs of the queue; 0 for none.
        should_resync: As a Reflector's.
        retry_on_error: Put an item back if its processing raised, instead of dropping it.
        watch_error_handler: Called for every error of a list or watch; None logs.
        pack: As a Reflector's.
        reflector_options: The Reflector's other options.
        process_batch: As ``process``, for the deltas of two or more items; None calls ``process`` for each item.
    """

    queue: Queue
    list_watch: ListerWatcher
    process: Process
    object_type: type[Any] | None
    full_resync_period: float = 0.0
    should_resync: Callable[[], bool] | None = None
    retry_on_error: bool = False
    watch_error_handler: WatchErrorHandler | None = None
    pack: Callable[[Any], Any] | None = None
    reflector_options: ReflectorOptions = field(default_factory=ReflectorOptions)
    process_batch: Process | None = None


class Controller(Running):
    """Runs a Reflector that fills a queue, and processes the queue with ``config.process``.

    Errors of ``process`` are logged and counted, and the loop goes on. An async context manager.

    Raises:
        ConfigError: A process function does not take ``(deltas, is_in_initial_list)`` or is a generator, or the queue
            lacks a method.
    """

    def __init__(self, config: Config) -> None:
        options = config.reflector_options.copy()
        if config.watch_error_handler is not None:
            options["watch_error_handler"] = config.watch_error_handler
        self._config = config
        self._reflector: Reflector[Any] = Reflector(
            config.list_watch,
            config.object_type,
            config.queue,
            config.full_resync_period,
            should_resync=config.should_resync,
            pack=config.pack,
            **options,
        )
        require_methods("queue", config.queue, ("pop", "has_synced", "close"), "DeltaFIFO()")
        self._process = self._guard("process", config.process)
        self._process_batch: Process | None = None
        if config.process_batch is not None:
            self._process_batch = self._guard("process_batch", config.process_batch)
        self._failed = 0
        self._failures = FailureLog(self.name, logger)
        self._requeued = 0  # since the last wait; if as many as are queued, nothing else is queued
        self._retry_delay = 0.0
        self._on_progress: Callable[[], None] | None = None
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Controller {self.name}>"

    @property
    def name(self) -> str:
        """The name in logs: the reflector's."""
        return self._reflector.name

    async def run(self) -> None:
        """Read and process until cancelled, or until its queue is closed and empty. It runs once: the queue is closed
        at the end.

        Raises:
            AlreadyStartedError: It was started before.
        """
        self.record_begin()
        try:
            await run_until_first(self._reflector.run, self.process_loop)
        finally:
            self._config.queue.close()
            self._record_end()

    def _record_end(self, task: object = None) -> None:
        self._ended.set()

    async def process_loop(self) -> None:
        """Process the queue until it is closed and empty."""
        queue = self._config.queue
        in_batches = may_batch(queue, "pop_batch", "pop")
        keeps_order = getattr(queue, "keeps_order", False)
        depth_of: Callable[[], int] = getattr(
            queue, "__len__", lambda: 1
        )  # without a length there may be more
        budget = Budget()
        try:
            while True:
                if in_batches:
                    await queue.pop_batch(self._process, self._process_batch)
                else:
                    await queue.pop(self._process)
                if self._on_progress is not None:
                    self._on_progress()
                # With remaining items the next pop would not wait: let other tasks run.
                if depth := depth_of():
                    if self._requeued >= (1 if keeps_order else depth):  # nothing else is queued: back off
                        await asyncio.sleep(self._retry_delay)
                        self._requeued = 0
                    elif budget.is_spent():
                        await budget.pause()
        except FIFOClosedError:
            return

    def has_synced(self) -> bool:
        """Return whether the whole first list was processed; False in a process that was forked since the start."""
        return not self.is_forked and self._config.queue.has_synced()

    async def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``.

        Args:
            timeout: Seconds; None waits without limit.
            fail_fast: Whether to raise if the first list is refused: see ``wait_refused``.

        Returns:
            True, as ``asyncio.Event.wait`` does.

        Raises:
            SyncTimeout: The timeout passed; the message says what the reflector is doing.
            StoppedError: It stopped first.
            ApiError, ConfigError: With ``fail_fast``, the first list was refused.
            ConfigError: ``timeout`` is not a duration.
            WrongEventLoopError: The controller runs in another event loop.
        """
        require_timeout(timeout)
        self.require_own_loop()
        with anyio.move_on_after(timeout) as scope:
            refused = [self.wait_refused] if fail_fast else []
            await run_until_first(self._wait_queue, self._ended.wait, *refused)
        if not self.has_synced():
            if scope.cancelled_caught:
                raise SyncTimeout(
                    f"{self.name}: not synced after {timeout:g} s: {self.state}", informer=self.name
                )
            raise StoppedError(f"{self.name} stopped before it had synced: {self.state}")
        return True

    async def wait_refused(self) -> None:
        """Wait until the first list fails with an error that a retry cannot fix, and raise that error.

        Raises:
            ApiError: The answer was 400, 401, 403, 404 or 405.
            ConfigError: The client's configuration cannot work.
        """
        await self._reflector.wait_refused()

    def watch_progress(self, on_progress: Callable[[], None] | None) -> None:
        """Set the function that is called after each progress in reading or processing; None removes it."""
        self._on_progress = self._reflector.on_progress = on_progress

    @property
    def processed(self) -> int:
        """How many items were processed so far, counting each put back one again; 0 if the queue does not count."""
        return int(getattr(self._config.queue, "processed", 0))

    worked_off = processed  # its former name

    @property
    def unfinished(self) -> int:
        """How many items are not processed yet. 0 if the queue does not count."""
        return int(getattr(self._config.queue, "unfinished", 0))

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which every event was queued; ``""`` before the first list."""
        return self._reflector.last_sync_resource_version

    @property
    def restores(self) -> int:
        """How many lists had a lower version than before, as after a restore of etcd."""
        return self._reflector.restores

    @property
    def state(self) -> ReflectorState:
        """What its reflector is doing."""
        return self._reflector.state

    @property
    def failed(self) -> int:
        """How many times processing raised; an error about several objects counts once for each."""
        return self._failed

    @property
    def queue_depth(self) -> int:
        """How many items wait; 0 if the queue has no length."""
        queue = self._config.queue
        return len(queue) if isinstance(queue, Sized) else 0

    async def _wait_queue(self) -> None:
        queue = self._config.queue
        if hasattr(queue, "wait_synced"):
            await queue.wait_synced()
        while not queue.has_synced():  # noqa: ASYNC110 - nothing signals it; upstream polls too
            await asyncio.sleep(SYNCED_POLL)

    def _guard(self, name: str, process: Process) -> Process:
        """Check a process function, and wrap it so that its errors are handled; it stays plain if ``process`` is."""
        require_callback(name, process, ("deltas", "is_in_initial_list"))

        def process_guarded(deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
            try:
                result = process(deltas, is_in_initial_list)
            except CALL_ERRORS as error:
                self._record_failure(deltas, error)
                return None
            if result is None:
                if self._retry_delay:
                    self._record_success()
                return None
            return self._finish(result, deltas)

        return process_guarded

    async def _finish(self, result: object, deltas: list[Delta]) -> None:
        try:
            await maybe_await(result)
        except Exception as error:
            self._record_failure(deltas, error)
        else:
            self._record_success()

    def _record_success(self) -> None:
        self._requeued = 0
        self._retry_delay = 0.0

    def _record_failure(self, deltas: list[Delta], error: BaseException) -> None:
        """Log and count an error of processing. A RequeueError without a cause is not a failure."""
        requeue = isinstance(error, RequeueError)
        cause = error.cause if isinstance(error, RequeueError) else error
        if cause is not None:
            if isinstance(cause, RejectedObjectError):
                self._failed += len(cause.all())
                self._reflector.record_unprocessed(cause)
            else:
                self._failed += 1
                key, version = key_and_version(deltas[-1].object)
                line = "%s: processing %s at %s failed: %s"
                self._failures.log(cause, line, self.name, key, version, cause, traceback=cause)
        if requeue or self._config.retry_on_error:
            self._retry_delay = min(max(self._retry_delay * 2, RETRY_DELAY), RETRY_DELAY_CAP)
            self._requeued += len({key_and_version(delta.object)[0] for delta in deltas})
            raise RequeueError from error
