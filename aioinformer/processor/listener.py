"""ProcessorListener: one handler's notifications (client-go ``shared_informer.go``).

    add ─► pending deque ─► run task ─► handler

The deque takes whatever comes at once, so a slow handler delays neither the store nor other handlers, and all that
waits waits in it, where it is counted. (Upstream has a goroutine more, which pops what another one runs, since a Go
channel has a bound; here it would only make every change later.) Where the user chose another policy than to keep
everything, the deque is one of ``backlog.py``.

A plain handler for which nothing waits is told where its news comes up (``tell``): whatever it does it holds the event
loop, be it in a task of its own, and until that had woken up everything else that is ready would have its turn.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context, ContextVar
from inspect import isawaitable, iscoroutine
from time import perf_counter
from typing import Generic, TypeVar

from ..checks import require_seconds
from ..errors import StoppedError
from ..failure_log import FailureLog
from ..handlers import ResourceEventHandler, handler_name, require_handler
from ..keys import KeyFunc, deletion_handling_meta_namespace_key_func, key_and_version
from ..notifications import Notification
from ..slow_calls import SLOW_CALL, SlowCalls, StepTimer
from ..tasks import run_as, shake_off, wait_ended
from ..turns import Turn
from .backlog import BACKLOG_LIMIT, Backlog, NewestOnly, NewestPerKey, Pending, check_backlog
from .state import ListenerState

logger = logging.getLogger(__name__)

T = TypeVar("T")

TIMER_SLACK = 0.01
"""Seconds: what a timer may ring early (uvloop's by 1 ms) must not cost a whole resync period."""

SLOW_CALL_DEPTH = 1024
"""Notifications that may wait for a slow call without a warning, where ever more might."""

_inside: ContextVar[object] = ContextVar("inside a handler's call", default=None)
"""The call that began what runs now. Tasks inherit it, such as those that ``asyncio.wait_for`` and ``gather`` make."""


async def _give_up(call: Awaitable[object]) -> None:
    """Leave nothing behind of a call that nobody awaits any more."""
    if iscoroutine(call):
        call.close()
    elif isinstance(call, asyncio.Future):
        call.cancel()
        await wait_ended(call)


class ProcessorListener(Generic[T]):
    """Delivers notifications to one handler, one call after the other, in order.

    Args:
        handler: Who is told.
        requested_resync_period: Seconds between resyncs that the handler asked for; 0 for none.
        resync_period: Seconds between resyncs that it gets.
        upstream_synced: Whether everything of the initial list has been added here.
        name: What logs call the handler.
        backlog: What to do with notifications that the handler is too slow for.
        backlog_limit: Notifications that wait before "block" and "drop_oldest" do what they are named for.
        key_func: Tells objects apart, for "coalesce".

    Raises:
        ConfigError: It is no handler, a period cannot be one, or there is no such backlog.

    Attributes:
        context: That in which ``run`` runs; None for one that is not known, in which nobody else can call the handler.
        is_ending: Whether a cancellation of ``run`` is of who runs it. Any other is that of the call that goes on;
            where none does, it is an error.
    """

    def __init__(
        self,
        handler: ResourceEventHandler[T],
        requested_resync_period: float = 0.0,
        resync_period: float = 0.0,
        *,
        upstream_synced: Callable[[], bool] = lambda: True,
        name: str = "",
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        key_func: KeyFunc = deletion_handling_meta_namespace_key_func,
    ) -> None:
        require_handler(handler)
        require_seconds("requested_resync_period", requested_resync_period)
        require_seconds("resync_period", resync_period)
        check_backlog(backlog, backlog_limit)
        self.handler = handler
        self.context: Context | None = None
        self.is_ending: Callable[[], bool] = lambda: True
        self.name = name or handler_name(handler)
        self.requested_resync_period = requested_resync_period
        self.resync_period = resync_period
        self._upstream_synced = upstream_synced
        self._next_resync: float | None = None
        self.backlog: Backlog = backlog
        self._limit = backlog_limit if backlog == "block" else None
        self._pending: Pending = deque()
        if backlog == "coalesce":
            self._pending = NewestPerKey(key_func, self._note_lost)
        elif backlog == "drop_oldest":
            self._pending = NewestOnly(backlog_limit, self._note_lost)
        # A handler with one of these is known to be slow.
        self._slow_call_depth = math.inf if backlog in ("coalesce", "drop_oldest") else SLOW_CALL_DEPTH
        self._room = asyncio.Event()
        self._wake = asyncio.Event()
        self._initial_delivered = asyncio.Event()
        self._initial_delivered.set()
        self._initial_pending = 0
        self._stopping = False
        self._stopped = asyncio.Event()  # the same, for who waits; that is asked at each notification
        self._left_early = False
        self._added = self._delivered = self._failed = self._high_water = 0  # what is lost was never added
        self._lost = 0
        self._handling: Notification | None = None
        self._token: object = None  # of the last call
        self._call: object = None  # that of an async handler's call which goes on
        self._cancels_call = False
        self._is_cancelled_by_call = False  # the task, before the call returned
        self._begun: tuple[Notification, float, Awaitable[object]] | None = None  # a call to be awaited
        self._is_idle = False  # its task waits for news
        self._is_plain = False  # so was its last call
        self._task: asyncio.Task[object] | None = None  # that runs it
        self._handling_since = 0.0
        self._depth_at_last_look = 0
        self._slow = SlowCalls(self.name, logger)
        self._failures = FailureLog(self.name, logger)
        self._ended = asyncio.Event()
        self._ended.set()

    def __repr__(self) -> str:
        return f"<ProcessorListener {self.name}>"

    def add(self, notification: Notification) -> None:
        """Queue a notification. Never waits."""
        self.add_all((notification,))

    def add_all(self, notifications: Iterable[Notification]) -> None:
        """Queue many notifications, as ``add`` does."""
        news = list(notifications)
        if self._stopping or not news:
            return
        if initial := len([True for notification in news if notification.is_in_initial_list]):
            self._initial_pending += initial
            self._initial_delivered.clear()
        if not self._pending:
            self._wake.set()
        self._pending.extend(news)
        self._added += len(news)
        if (depth := self._added - self._delivered) > self._high_water:
            self._high_water = depth

    def tell(self, notification: Notification) -> None:
        """As ``add``; but a plain handler is called here and now, if nothing waits for it.

        It runs as if in its own task, and in the context of that. What it raises is logged and counted.
        """
        if not (self._is_idle and self._is_plain and self.context) or self._pending or self._stopping:
            self.add(notification)
            return
        assert self._task is not None
        self._added += 1
        self._high_water = self._high_water or 1
        if notification.is_in_initial_list:
            self._initial_pending += 1
            self._initial_delivered.clear()
        self._is_idle = False
        started = perf_counter()
        call = run_as(self._task, self.context, self._begin, notification, started)
        if call is not None:  # it is not plain any more: for its task
            self._begun, self._call = (notification, started, call), self._token
            self._wake.set()
        else:
            self._is_idle = True
            self._note_delivered(notification, started, None)

    def stop(self) -> None:
        """Drop what waits and take nothing more; a call that is running goes on, and ``run`` then returns."""
        if not self._stopping:
            self._stopping = True
            self._left_early = not self._upstream_synced()
        self._pending.clear()
        self._stopped.set()
        self._wake.set()
        self._room.set()
        self._initial_delivered.set()  # what was dropped is not to be waited for

    def cancel_call(self) -> None:
        """Cancel the call that is running, if it is an async handler's, once it has been stopped."""
        if self._stopping and self._call is not None and self._task is not None:
            self._cancels_call = True
            self._task.cancel()

    @property
    def depth(self) -> int:
        """Notifications that wait, the one being handled among them."""
        return 0 if self._stopping else self._added - self._delivered

    @property
    def high_water(self) -> int:
        """The most that ever waited."""
        return self._high_water

    @property
    def state(self) -> ListenerState:
        """What it is doing."""
        handling = self._handling
        return ListenerState(
            name=self.name,
            depth=self.depth,
            high_water=self._high_water,
            delivered=self._delivered,
            failed=self._failed,
            handling=None if handling is None else key_and_version(handling.obj)[0],
            handling_seconds=0.0 if handling is None else perf_counter() - self._handling_since,
            backlog=self.backlog,
            coalesced=self._lost if self.backlog == "coalesce" else 0,
            dropped=self._lost if self.backlog == "drop_oldest" else 0,
        )

    @property
    def is_full(self) -> bool:
        """Whether the store is to wait for this handler."""
        return self._limit is not None and self.depth >= self._limit

    async def wait_for_room(self) -> None:
        """Wait until the handler has worked off enough, or is stopped."""
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    async def wait_stopped(self) -> None:
        """Wait for ``stop``."""
        await self._stopped.wait()

    async def wait_ended(self) -> None:
        """Wait until no call is running any more, nor will be; at once where ``run`` has not begun."""
        await self._ended.wait()

    def is_inside_handler(self) -> bool:
        """Whether what runs was begun by a call of the handler that has not ended, in whatever task."""
        return self._call is not None and self._call is _inside.get()

    def has_synced(self) -> bool:
        """Whether the handler has returned from the last add of the initial list; never, if it was stopped before
        that had been added."""
        return self._upstream_synced() and not self._left_early and self._initial_pending == 0

    async def wait_initial_delivered(self) -> None:
        """Wait until no add of an initial list waits any more: all delivered, or dropped by ``stop``."""
        await self._initial_delivered.wait()

    def should_resync(self, now: float) -> bool:
        """Whether its resync is due at a loop time."""
        due = self._next_resync
        return self.resync_period > 0 and due is not None and now >= due - TIMER_SLACK

    @property
    def counts_resyncs(self) -> bool:
        """Whether its resync period has begun to count."""
        return self._next_resync is not None

    def determine_next_resync(self, now: float) -> None:
        """Count its resync period from a loop time."""
        self._next_resync = now + self.resync_period

    async def run(self) -> None:
        """Deliver until stopped or cancelled; what still waits then is dropped.

        Raises:
            StoppedError: It was cancelled while it waited, and not by who runs it.
        """
        self._ended.clear()
        self._task = asyncio.current_task()
        _inside.set(None)  # a call of another handler may have begun this
        try:
            while not self._stopping or self._begun:
                try:
                    await self._deliver_what_comes()
                except asyncio.CancelledError:
                    if self._is_to_end():
                        raise
                    if not self._is_cancelled_by_call:
                        raise StoppedError(f"{self.name}: its task was cancelled by somebody else") from None
                    await self._shake_off()
        finally:
            self.stop()
            begun, self._begun = self._begun, None
            try:
                if begun is not None:  # and could not be awaited
                    await _give_up(begun[2])
            finally:
                self._call = self._handling = self._task = None
                self._ended.set()

    async def _deliver_what_comes(self) -> None:
        self._wake.clear()
        if self._pending or self._begun:
            await self._deliver_pending()
            return
        self._is_idle = True
        try:
            await self._wake.wait()
        finally:
            self._is_idle = False

    def _is_to_end(self) -> bool:
        """Whether a cancellation is of who runs this, or of who has removed the handler."""
        return self._cancels_call or self.is_ending()

    async def _shake_off(self) -> None:
        """Forget cancellations that were the handler's own doing."""
        assert self._task is not None
        self._is_cancelled_by_call = False
        await shake_off(self._task, self._is_to_end)

    async def _deliver_pending(self) -> None:
        """Call the handler until nothing waits. What waits may yet be coalesced or dropped until it is called."""
        pending, turn = self._pending, Turn()
        if self._begun is not None:
            begun, self._begun = self._begun, None
            await self._finish(*begun)
        now = perf_counter()
        while pending and not self._stopping:
            notification, started = pending.popleft(), now
            call = self._begin(notification, started)
            self._is_plain = call is None
            if call is None:
                now = self._note_delivered(notification, started, None)
                if self._is_cancelled_by_call:
                    await self._shake_off()
            else:
                now = await self._finish(notification, started, call)
            if now >= turn.end:
                await turn.pause()
                now = perf_counter()

    def _begin(self, notification: Notification, now: float) -> Awaitable[object] | None:
        """Call the handler; what is to be awaited of an async one."""
        task, call = self._task, None
        assert task is not None
        self._handling, self._handling_since = notification, now
        self._token = object()  # and nothing more, as whoever inherits it may outlive the call
        _inside.set(self._token)
        try:
            result = notification.deliver(self.handler)
            if result is not None and isawaitable(result):
                call = result
            elif task.cancelling() and not self._is_to_end():  # by itself, as nobody else has run
                raise asyncio.CancelledError
        except (Exception, asyncio.CancelledError) as error:  # nobody can have cancelled what has not waited
            self._note_failure(notification, error)
        self._is_cancelled_by_call = task.cancelling() > 0 and not self._is_to_end()
        return call

    async def _finish(self, notification: Notification, started: float, call: Awaitable[object]) -> float:
        """Await a call that has begun; the time."""
        task = self._task
        assert task is not None
        self._call = self._token
        if self._slow.times_steps:
            call = StepTimer(call)
        try:
            await call
            if task.cancelling():  # which the handler has swallowed
                raise asyncio.CancelledError
        except (Exception, asyncio.CancelledError) as error:
            is_last = task.cancelling() > 0 and self._is_to_end()
            if not is_last or isinstance(error, Exception):  # the handler's own doing, not ours
                self._note_failure(notification, error)
            if is_last:
                raise asyncio.CancelledError from error
        finally:
            self._handling = self._call = None
        now = self._note_delivered(notification, started, call)
        if task.cancelling():
            await self._shake_off()
        return now

    def _note_delivered(
        self, notification: Notification, started: float, call: Awaitable[object] | None
    ) -> float:
        """A call has ended, for good or bad; the time."""
        self._handling = None
        self._delivered += 1
        if notification.is_in_initial_list:
            self._note_initial_delivered()
        if self._limit is not None and not self.is_full:
            self._room.set()
        now = perf_counter()
        if now - started > SLOW_CALL:
            self._note_slow(notification, now - started, call)
        return now

    def _note_initial_delivered(self) -> None:
        self._initial_pending -= 1
        if not self._initial_pending:
            self._initial_delivered.set()

    def _note_lost(self, notification: Notification) -> None:
        self._lost += 1
        self._added -= 1
        if notification.is_in_initial_list:
            self._note_initial_delivered()

    def _note_slow(self, notification: Notification, took: float, call: object) -> None:
        """A call took long: warn if nothing else could run meanwhile, or many wait."""
        key, _ = key_and_version(notification.obj)
        if not self._slow.note(key, took, call, self.depth) and self.depth > self._slow_call_depth:
            self._slow.warn(f"took {took * 1000:.0f} ms on {key}, with {self.depth} waiting")

    def look(self) -> None:
        """Warn if many wait for a call that does not end, or ever more for calls that do. To be called now and then."""
        depth, before = self.depth, self._depth_at_last_look
        self._depth_at_last_look = depth
        if depth <= self._slow_call_depth:
            return
        state = self.state
        if state.handling is not None and state.handling_seconds > SLOW_CALL:
            self._slow.warn(
                f"has been at {state.handling} for {state.handling_seconds:.1f} s, with {depth} waiting"
            )
        elif depth > before > self._slow_call_depth:
            self._slow.warn(f"falls behind: {depth} waiting, {before} at the last look")

    def _note_failure(self, notification: Notification, error: BaseException) -> None:
        self._failed += 1
        key, version = key_and_version(notification.obj)
        line = "%s failed on %s of %s at %s"
        self._failures.tell(error, line, self.name, notification.kind, key, version, traceback=error)
