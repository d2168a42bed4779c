"""The coroutines around a queue's state: waiting, holding, handing out. The rules are the state's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence, Sized
from inspect import isawaitable
from time import perf_counter
from types import TracebackType
from typing import Any, Protocol

import msgspec

from .._core.coop import Budget, snapshot, yielding
from ..deltas import REPLACED_ALL, SYNC_ALL, Delta, DeltaType
from ..errors import (
    FIFOClosedError,
    KeyFuncError,
    QueueHeldError,
    RejectedObjectError,
    RequeueError,
    shortened,
)
from ..protocols import Process

logger = logging.getLogger(__name__)

SLOW_POP = 0.1
"""Seconds of one pop (for each delta, if it is a batch, and ten times this at most) over which a queue with more
than ``SLOW_POP_DEPTH`` waiting warns."""
SLOW_POP_DEPTH = 10

LONGEST_BATCH = 1000
"""Items that one batch works off at most."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """What one pop takes out.

    Attributes:
        deltas: In the order in which they are to be worked off.
        is_in_initial_list: Whether they are of the first Replace.
        by_key: The same, where the queue keeps each key's together.
    """

    deltas: list[Delta]
    is_in_initial_list: bool
    by_key: dict[str, Sequence[Delta]] = {}

    @property
    def count(self) -> int:
        """How many the queue counts it for."""
        return len(self.by_key) or len(self.deltas)


class QueueState(Protocol):
    """A queue's rules, without waiting: plain code that a test can call."""

    @property
    def queue(self) -> Sized:
        """What waits to be popped."""
        ...

    def key_of(self, obj: Any) -> str:
        """The key of an object, a tombstone, or (that of the newest of) a list of deltas."""
        ...

    def enqueue(self, delta: Delta) -> None:
        """Record one change."""
        ...

    def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Record popped deltas again, behind all else, unless something newer is queued for their key."""
        ...

    def replace(self, objects: Iterable[Any], resource_version: str) -> Iterator[None]:
        """Record a whole collection; yields where it may be interrupted, and changes nothing before its end."""
        ...

    def resync(self) -> Iterator[None]:
        """Record a Sync of every known object; yields as ``replace`` does."""
        ...

    def take(self) -> Item:
        """Remove the oldest item."""
        ...

    def take_batch(self) -> Item:
        """Remove the oldest items, as many as may be processed together."""
        ...

    def put_back(self, item: Item) -> None:
        """Undo a take, so that nothing older is seen after something newer."""
        ...

    def done(self, item: Item) -> None:
        """An item of the initial list was worked off."""
        ...

    def has_synced(self) -> bool: ...


class FIFO:
    """A queue's coroutines, on an ``asyncio.Condition``.

    All waiting is on one condition, and whoever held it wakes all on leaving, if any of them could go on:
    ``notify(1)`` would lose a wake-up whose waiter is cancelled (CPython before 3.13).

    One item is processed at a time, however many pop. The queue is held meanwhile; with ``room`` it is let go while
    an async process function waits, and held up again for who adds once so many items are queued.

    Cancellation: a cancelled verb has done nothing; a pop that is cancelled inside process has put its item back.

    Args:
        state: The rules.
        room: Items that may be queued while one is processed; 0 holds the queue.
    """

    keeps_order = False
    """Whether what is put back is the first to be popped again."""

    def __init__(self, state: QueueState, room: int = 0) -> None:
        self._state = state
        self._room = room
        self._is_let_go = False
        self._held_up = 0  # how many wait for room
        self._changed = asyncio.Condition()
        self._processing: asyncio.Task[Any] | None = None
        self._taken: list[Item] = []  # by the pop that is processing
        self._worked_off = 0
        self._closed = False
        self._synced = asyncio.Event()
        self._high_water = 0

    async def add(self, obj: Any) -> None:
        """Record that an object was added.

        Raises:
            KeyFuncError: The object has no key.
            TransformError: The transformer raised; the object is not queued.
            QueueHeldError: Called from inside this queue's own process function.
        """
        await self.apply([Delta(DeltaType.ADDED, obj)])

    async def update(self, obj: Any) -> None:
        """Record that an object was changed. Raises as ``add``."""
        await self.apply([Delta(DeltaType.UPDATED, obj)])

    async def delete(self, obj: Any) -> None:
        """Record that an object, or tombstone, was deleted. Raises as ``add``."""
        await self.apply([Delta(DeltaType.DELETED, obj)])

    async def apply(self, events: Iterable[Delta]) -> None:
        """Record many changes, in order, holding the queue once.

        Raises:
            RejectedObjectError: The first that could not be taken (a KeyFuncError or TransformError); the rest
                of those are its ``others``, and all other changes were taken.
            ConfigError: One is of no type that a Delta has; those before it were taken.
            QueueHeldError: Called from inside this queue's own process function.
        """
        rejected: list[RejectedObjectError] = []
        enqueue = self._state.enqueue
        async with Hold(self, to_add=True):
            for delta in events:
                try:
                    enqueue(delta)
                except RejectedObjectError as error:
                    rejected.append(error)
        RejectedObjectError.raise_first(rejected)

    async def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """Record the whole collection as it was listed; what is missing in it was deleted.

        An ExplicitKey among the objects says that its object is there without saying how: nothing is queued for
        it, and it is not deleted.

        Cancellation: cancelled before its end it has changed nothing.

        Raises:
            RejectedObjectError: As ``apply``: what could be taken was.
            QueueHeldError: Called from inside this queue's own process function.
        """
        objects = snapshot(objects)
        async with Hold(self, to_add=True):
            await yielding(self._state.replace(objects, resource_version))

    async def resync(self) -> None:
        """Record a Sync of every known object that has nothing queued.

        Raises:
            QueueHeldError: Called from inside this queue's own process function.
        """
        async with Hold(self, to_add=True):
            await yielding(self._state.resync())

    async def pop(self, process: Process) -> list[Delta]:
        """Wait for the oldest item and work it off.

        Args:
            process: ``process(deltas, is_in_initial_list)``, plain or async. It may raise RequeueError to have
                the item put back; its cause, where it has one, is raised here, as upstream returns it: then the item
                is queued all the same. Anything else it raises is raised here too, and the item is gone.

        Returns:
            The item's deltas, oldest first.

        Raises:
            FIFOClosedError: The queue is closed and empty.

        Cancellation: cancelled inside ``process``, the item goes back.
        """
        async with Hold(self):
            await self._wait_for_item()
            return (await self._work_off(process, 1))[-1].deltas

    async def pop_batch(self, process: Process, process_batch: Process | None = None) -> int:
        """Wait for an item, then work off what is there.

        Without ``process_batch`` one item after the other, as by ``pop``, for one turn of the event loop; the first
        that raises, RequeueError included, ends the batch. With it many in one call: the oldest items, all or none
        of the initial list. While somebody who adds is held up both go on for longer.

        Args:
            process: As for ``pop``.
            process_batch: The same, given the deltas of two or more items. All of them go back if it raises
                RequeueError or is cancelled, so it should do all or nothing; all are gone if it raises anything else.

        Returns:
            How many items were worked off at last, those that went back among them.

        Cancellation: as for ``pop``.

        Raises:
            FIFOClosedError: The queue is closed and empty.
        """
        async with Hold(self):
            await self._wait_for_item()
            return sum(item.count for item in await self._work_off(process, LONGEST_BATCH, process_batch))

    async def add_if_not_present(self, deltas: Sequence[Delta]) -> None:
        """Queue popped deltas again, behind all else, unless something newer is queued for their key.

        Raises:
            KeyFuncError: There are no deltas, or they are of no object.
            QueueHeldError: Called from inside this queue's own process function.
        """
        async with Hold(self):
            self._state.add_if_not_present(list(deltas))

    def key_of(self, obj: Any) -> str:
        """The key of an object, a tombstone, or (that of the newest of) a list of deltas.

        Raises:
            KeyFuncError: There is none.
        """
        return self._state.key_of(obj)

    def has_synced(self) -> bool:
        """Whether the items of the first Replace have been worked off, or the first verb was another one."""
        return self._state.has_synced()

    async def wait_synced(self) -> None:
        """Wait for ``has_synced``."""
        await self._synced.wait()

    def close(self) -> None:
        """Wake all pops: they drain what is left, then raise FIFOClosedError."""
        self._closed = True
        if self._changed.locked():
            return  # its holder wakes all on leaving
        taking = self._changed.acquire()
        try:
            taking.send(None)  # a free lock is taken without waiting
        except StopIteration:
            self._changed.notify_all()
            self._changed.release()
        else:  # somebody is about to hold it, or to be cancelled before that
            taking.close()
            asyncio.get_running_loop().call_soon(self.close)

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def high_water(self) -> int:
        """The most items that ever waited at once."""
        return self._high_water

    @property
    def worked_off(self) -> int:
        """How many items were ever worked off, those that went back counted each time."""
        return self._worked_off

    @property
    def unfinished(self) -> int:
        """How many items wait, or were taken by a pop that has not returned yet."""
        return len(self._state.queue) + sum(item.count for item in self._taken)

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._state.queue)

    async def _wait_for_room(self) -> None:
        while self._processing is not None and len(self._state.queue) >= self._room:
            self._refuse_own_process()
            self._held_up += 1
            try:
                await self._changed.wait()
            finally:
                self._held_up -= 1

    def _leave(self) -> None:
        """Wake all, if there is anything for them, and let go."""
        depth = len(self._state.queue)
        self._high_water = max(self._high_water, depth)
        self._record_synced()
        if depth or self._held_up or self._closed:
            self._changed.notify_all()
        self._changed.release()

    def _refuse_own_process(self) -> None:
        """Find out that a process function is about to wait for its own end."""
        if self._processing is not asyncio.current_task():
            return
        if not self._is_let_go or len(self._state.queue) >= self._room:
            raise QueueHeldError(
                "the queue is held while process runs; add to it after process has returned, from another task"
            )

    async def _wait_for_item(self) -> None:
        """Wait until there is an item and no other pop is processing."""
        while self._processing is not None or not len(self._state.queue):
            if self._processing is asyncio.current_task():
                raise QueueHeldError("process popped from its own queue, which waits for process to return")
            if self._closed and self._processing is None:
                raise FIFOClosedError("the queue is closed")
            await self._changed.wait()

    async def _work_off(
        self, process: Process, most: int, process_batch: Process | None = None
    ) -> list[Item]:
        """Process the oldest items, so many at most and for one turn of the loop, or one batch of them; the first
        put back is the last.

        While somebody is held up it goes on with another turn: between two pops they would get in.
        """
        state = self._state
        take = state.take if process_batch is None else state.take_batch
        budget = Budget(over=process_batch is not None)
        items = self._taken
        self._processing = asyncio.current_task()
        now = perf_counter()
        try:
            while len(state.queue) and len(items) < most:
                if items and now >= budget.end:
                    if not self._held_up or len(state.queue) < self._room:
                        break
                    await self._pause(budget)
                    now = perf_counter()
                item = take()
                items.append(item)
                finished = True
                interrupted: asyncio.CancelledError | None = None
                try:
                    call = process if process_batch is None or item.count == 1 else process_batch
                    # What goes back stays as it was.
                    result = call(list(item.deltas), item.is_in_initial_list)
                    if result is not None and isawaitable(result):
                        if self._room:
                            self._let_go()
                        try:
                            await result
                        finally:
                            if self._is_let_go:
                                interrupted = await self._hold_again()
                except RequeueError as error:
                    finished = False
                    if error.cause is not None:
                        raise error.cause from error
                    break
                except Exception:
                    raise
                except BaseException:  # cancelled in the middle
                    finished = False
                    raise
                finally:
                    self._let_out(item, finished=finished)
                    started, now = now, perf_counter()
                    if now - started > SLOW_POP:
                        self._record_slow(item, now - started)
                    if interrupted is not None:
                        raise interrupted
        finally:
            self._record_worked_off()
        return items

    def _let_out(self, item: Item, *, finished: bool) -> None:
        """An item was processed, or goes back."""
        if not finished:
            self._state.put_back(item)
        elif item.is_in_initial_list:
            self._state.done(item)

    def _record_worked_off(self) -> None:
        self._worked_off += sum(item.count for item in self._taken)
        self._processing = None
        self._taken = []

    def _let_go(self) -> None:
        """Let others add."""
        self._is_let_go = True
        self._changed.notify_all()
        self._changed.release()

    async def _pause(self, budget: Budget) -> None:
        """Let others run, and those add that there is room for."""
        interrupted: asyncio.CancelledError | None = None
        self._let_go()
        try:
            await budget.pause()
        finally:
            interrupted = await self._hold_again()
        if interrupted is not None:
            raise interrupted

    async def _hold_again(self) -> asyncio.CancelledError | None:
        """Take the queue back, come what may; a cancellation that came meanwhile is the caller's to raise."""
        interrupted: asyncio.CancelledError | None = None
        while True:
            try:
                await self._changed.acquire()
            except asyncio.CancelledError as error:
                interrupted = error
            else:
                self._is_let_go = False
                return interrupted

    def _record_synced(self) -> None:
        if not self._synced.is_set() and self._state.has_synced():
            self._synced.set()

    def _record_slow(self, item: Item, seconds: float) -> None:
        waiting, deltas = len(self._state.queue), item.deltas
        if deltas[0].type in (REPLACED_ALL, SYNC_ALL):
            return  # worked off in turns, for as long as there are objects
        if waiting > SLOW_POP_DEPTH and seconds > SLOW_POP * min(len(deltas), 10):
            what = f"{len(deltas)} deltas"
            if len(deltas) == 1:
                try:
                    what = self._state.key_of(deltas[0].object)
                except KeyFuncError:  # of a bookmark
                    what = shortened(deltas[0].object, 80)
            logger.warning("processing %s took %.0f ms, with %d waiting", what, seconds * 1000, waiting)


class Hold:
    """Holding a queue, which nobody else is then using: ``async with``. No generator, which costs thrice as much.

    Args:
        queue: Which.
        to_add: Whether to wait for room, too.
    """

    __slots__ = ("_queue", "_to_add")

    def __init__(self, queue: FIFO, *, to_add: bool = False) -> None:
        self._queue = queue
        self._to_add = to_add

    async def __aenter__(self) -> None:
        queue = self._queue
        if queue._processing is not None:
            queue._refuse_own_process()
        await queue._changed.acquire()
        if self._to_add and queue._processing is not None:
            try:
                await queue._wait_for_room()
            except BaseException:
                queue._leave()
                raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue._leave()
