"""FIFO: the coroutines of a queue, which wait, lock and pop. The queue's rules are its state's."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Iterable, Iterator, Sequence, Sized
from inspect import isawaitable
from time import perf_counter
from typing import Any, Protocol

import msgspec

from .._core.coop import Budget, run_in_slices, snapshot
from ..deltas import REPLACED_ALL, SYNC_ALL, Delta, DeltaType
from ..errors import (
    FIFOClosedError,
    KeyFuncError,
    QueueHeldError,
    RejectedObjectError,
    RequeueError,
    shorten,
)
from ..protocols import Process

logger = logging.getLogger(__name__)

SLOW_POP = 0.1
"""Seconds of processing one item, for each delta and at most ten times this, above which a queue with more than
``SLOW_POP_DEPTH`` waiting items logs a warning."""
SLOW_POP_DEPTH = 10

LONGEST_BATCH = 1000
"""The most items of one batch."""

ALL = sys.maxsize
"""Waiters to wake."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """What one ``take`` removes from a queue.

    Attributes:
        deltas: The deltas to process, in order.
        is_in_initial_list: Whether they belong to the first Replace.
        count: How many queue items this is.
        by_key: The same deltas by key, for a queue that groups them by key.
    """

    deltas: list[Delta]
    is_in_initial_list: bool
    count: int
    by_key: dict[str, Sequence[Delta]] = {}


class QueueState(Protocol):
    """A queue's rules: plain code without waiting, which a test can call."""

    @property
    def queue(self) -> Sized:
        """The waiting items."""
        ...

    def key_of(self, obj: Any) -> str:
        """Return the key of an object, a tombstone, or the newest of a list of deltas."""
        ...

    def enqueue(self, delta: Delta) -> None:
        """Record one change."""
        ...

    def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Queue popped deltas again, at the back, unless something newer is queued for their key."""
        ...

    def replace(self, objects: Iterable[Any], resource_version: str) -> Iterator[None]:
        """Record a whole collection. Yields where other tasks may run; changes nothing before its end."""
        ...

    def resync(self) -> Iterator[None]:
        """Record a Sync of every known object. Yields as ``replace`` does."""
        ...

    def take(self) -> Item:
        """Remove and return the oldest item."""
        ...

    def take_batch(self) -> Item:
        """Remove and return the oldest items, as many as one call may process."""
        ...

    def put_back(self, item: Item) -> None:
        """Undo a take, so that older changes are not popped after newer ones."""
        ...

    def finish(self, item: Item) -> None:
        """Record that an item of the initial list was processed."""
        ...

    def has_synced(self) -> bool: ...


class FIFO:
    """The coroutines of a queue, on an ``asyncio.Condition``.

    All tasks wait on one condition, and each holder wakes all of them on leaving if any can go on. ``notify(1)`` would
    lose a wake-up whose waiter is cancelled (CPython before 3.13).

    One item is processed at a time, however many tasks pop. The queue is locked meanwhile. With ``room`` it is unlocked
    while an async process function waits, and producers wait only once ``room`` items are queued.

    Cancellation: a cancelled verb has done nothing; a pop that is cancelled inside ``process`` has put its item back.

    Args:
        state: The rules.
        room: Items that may be queued while one is processed; 0 keeps the queue locked.
    """

    keeps_order = False
    """Whether an item that is put back is the first to be popped again."""

    def __init__(self, state: QueueState, room: int = 0) -> None:
        self._state = state
        self._room = room
        self._changed = asyncio.Condition()
        self._processing: asyncio.Task[Any] | None = None  # the pop that waits before it has ended
        self._is_unlocked = False  # while a process function is awaited, or between slices
        self._interrupted: asyncio.CancelledError | None = (
            None  # arrived while the queue was being locked again
        )
        self._waiting_for_room = 0  # producers
        self._taken: list[Item] = []  # by the pop that is processing
        self._processed = 0
        self._closed = False
        self._synced = asyncio.Event()
        self._is_synced = False  # as the event: every change asks
        self._high_water = 0

    # Adding ---------------------------------------------------------------------------------------------------

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
        """Record many changes in order, under one lock.

        Raises:
            RejectedObjectError: The first change that was rejected (a KeyFuncError or TransformError). Its ``others``
                are the further ones. All other changes were recorded.
            ConfigError: A delta has an unknown type; those before it were recorded.
            QueueHeldError: Called from inside this queue's own process function.
        """
        rejected: list[RejectedObjectError] = []
        enqueue = self._state.enqueue
        await self._lock(to_add=True)
        try:
            for delta in events:
                try:
                    enqueue(delta)
                except RejectedObjectError as error:
                    rejected.append(error)
        finally:
            self._leave()
        if rejected:
            RejectedObjectError.raise_first(rejected)

    async def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """Record the whole collection as it was listed; known objects that are not in it were deleted.

        An ExplicitKey among the objects stands for an object that exists with unknown content: nothing is queued for
        it, and it is not deleted.

        Cancellation: nothing has changed.

        Raises:
            RejectedObjectError: As ``apply``: all other objects were recorded.
            QueueHeldError: Called from inside this queue's own process function.
        """
        objects = snapshot(objects)
        await self._lock(to_add=True)
        try:
            await run_in_slices(self._state.replace(objects, resource_version))
        finally:
            self._leave()

    async def resync(self) -> None:
        """Record a Sync of every known object that has nothing queued.

        Raises:
            QueueHeldError: Called from inside this queue's own process function.
        """
        await self._lock(to_add=True)
        try:
            await run_in_slices(self._state.resync())
        finally:
            self._leave()

    async def add_if_not_present(self, deltas: Sequence[Delta]) -> None:
        """Queue popped deltas again, at the back, unless something newer is queued for their key.

        Raises:
            KeyFuncError: There are no deltas, or their object has no key.
            QueueHeldError: Called from inside this queue's own process function.
        """
        await self._lock()
        try:
            self._state.add_if_not_present(list(deltas))
        finally:
            self._leave()

    # Popping --------------------------------------------------------------------------------------------------

    async def pop(self, process: Process) -> list[Delta]:
        """Wait for the oldest item and process it.

        Args:
            process: ``process(deltas, is_in_initial_list)``, plain or async. It may raise RequeueError: the item is put
                back, and the error's cause, if any, is raised here (upstream returns it). If it raises anything else,
                the item is gone, and the error is raised here.

        Returns:
            The item's deltas, oldest first.

        Raises:
            FIFOClosedError: The queue is closed and empty.

        Cancellation: cancelled inside ``process``, the item is put back.
        """
        await self._lock_to_pop()
        try:
            return (await self._process_oldest(process, 1))[-1].deltas
        finally:
            self._leave()

    async def pop_batch(self, process: Process, process_batch: Process | None = None) -> int:
        """Wait for an item, then process what is queued.

        Without ``process_batch`` items are processed one after the other, as by ``pop``, for one slice of loop time.
        The first error, also a RequeueError, ends the batch. With it one call processes many items: the oldest ones,
        all or none of the initial list. Both go on for further slices while a producer waits for room.

        Args:
            process: As for ``pop``.
            process_batch: The same for the deltas of two or more items. All of them are put back if it raises
                RequeueError or is cancelled, so it should do all or nothing. All are gone if it raises anything else.

        Returns:
            How many items were processed, including those that were put back.

        Cancellation: as for ``pop``.

        Raises:
            FIFOClosedError: The queue is closed and empty.
        """
        await self._lock_to_pop()
        try:
            before = self._processed
            await self._process_oldest(process, LONGEST_BATCH, process_batch)
            return self._processed - before
        finally:
            self._leave()

    def close(self) -> None:
        """Wake all pops. They process what is queued, then raise FIFOClosedError."""
        self._closed = True
        if self._changed.locked():
            return  # its holder wakes all on leaving
        taking = self._changed.acquire()
        try:
            taking.send(None)  # a free lock is taken without waiting
        except StopIteration:
            self._changed.notify_all()
            self._changed.release()
        else:  # another task is about to get the lock, or to be cancelled before that
            taking.close()
            asyncio.get_running_loop().call_soon(self.close)

    # Reading --------------------------------------------------------------------------------------------------

    def key_of(self, obj: Any) -> str:
        """Return the key of an object, a tombstone, or the newest of a list of deltas.

        Raises:
            KeyFuncError: There is none.
        """
        return self._state.key_of(obj)

    def has_synced(self) -> bool:
        """Whether every item of the first Replace was processed, or the first verb was another one."""
        return self._state.has_synced()

    async def wait_synced(self) -> None:
        """Wait for ``has_synced``."""
        await self._synced.wait()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def high_water(self) -> int:
        """The most items that ever waited at once."""
        return self._high_water

    @property
    def processed(self) -> int:
        """How many items were processed so far; items that were put back count each time."""
        return self._processed

    worked_off = processed  # its former name

    @property
    def unfinished(self) -> int:
        """How many items wait, or belong to a pop that has not returned."""
        return len(self._state.queue) + sum(item.count for item in self._taken)

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._state.queue)

    # Processing -----------------------------------------------------------------------------------------------

    async def _process_oldest(
        self, process: Process, most: int, process_batch: Process | None = None
    ) -> list[Item]:
        """Process the oldest items: at most ``most`` in one slice of loop time, or one batch of them.

        Returns:
            The items. If one was put back, it is the last.
        """
        state, items = self._state, self._taken
        take = state.take if process_batch is None else state.take_batch
        budget: Budget | None = None  # a lone item needs none
        try:
            while state.queue:
                if items:
                    if len(items) == most:
                        break
                    if budget is None:
                        budget = Budget(over=process_batch is not None)
                    if budget.is_spent() and not await self._start_next_slice(budget):
                        break
                item = take()
                items.append(item)
                call = process if process_batch is None or item.count == 1 else process_batch
                if not await self._process_item(item, call):
                    break
        finally:
            for item in items:
                self._processed += item.count
            self._taken = []
            self._processing = None
            if self._interrupted is not None:
                self._raise_interruption()
        return items

    async def _process_item(self, item: Item, process: Process) -> bool:
        """Process an item, or put it back; return whether to go on."""
        started = perf_counter()
        try:
            result = process(list(item.deltas), item.is_in_initial_list)  # process may change its list
            if result is not None and isawaitable(result):
                await self._finish(result)
        except RequeueError as error:
            self._state.put_back(item)
            if error.cause is not None:
                raise error.cause from error
            return False
        except Exception:
            if item.is_in_initial_list:
                self._state.finish(item)
            raise
        except BaseException:  # cancelled
            self._state.put_back(item)
            raise
        finally:
            if self._state.queue and (seconds := perf_counter() - started) > SLOW_POP:
                self._warn_of_slow(item, seconds)
        if item.is_in_initial_list:
            self._state.finish(item)
        return self._interrupted is None

    async def _finish(self, result: Awaitable[object]) -> None:
        """Await what ``process`` returned; producers may add meanwhile if there is room."""
        self._processing = asyncio.current_task()
        if not self._room:
            await result
            return
        self._unlock()
        try:
            await result
        finally:
            await self._lock_again()

    async def _start_next_slice(self, budget: Budget) -> bool:
        """Let other tasks run, and start another slice, if a producer waits for room.

        Between two pops the producers could add, which is what they wait for. Returns False if the pop must end.
        """
        if not self._waiting_for_room or len(self._state.queue) < self._room:
            return False
        self._processing = asyncio.current_task()
        self._unlock()
        try:
            await budget.pause()
        finally:
            await self._lock_again()
        return self._interrupted is None

    # Locking --------------------------------------------------------------------------------------------------

    async def _lock_to_pop(self) -> None:
        """Lock the queue once it has an item and no other pop is processing; ``_leave`` unlocks it."""
        if self._processing is not None:
            self._refuse_own_process()
        await self._changed.acquire()
        try:
            while self._processing is not None or not self._state.queue:
                if self._processing is None:
                    if self._closed:
                        raise FIFOClosedError("the queue is closed")
                elif self._processing is asyncio.current_task():
                    raise QueueHeldError(
                        "process popped from its own queue, which waits for process to return"
                    )
                await self._changed.wait()
        except BaseException:
            self._leave()
            raise

    async def _lock(self, *, to_add: bool = False) -> None:
        """Lock the queue; ``_leave`` unlocks it.

        Args:
            to_add: Whether to wait for room, too.
        """
        if self._processing is not None:
            self._refuse_own_process()
        await self._changed.acquire()
        if to_add and self._processing is not None:
            try:
                await self._wait_for_room()
            except BaseException:
                self._leave()
                raise

    def _unlock(self) -> None:
        """Let producers add while this task processes."""
        self._is_unlocked = True
        self._changed.notify(ALL)
        self._changed.release()

    async def _lock_again(self) -> None:
        """Lock the queue, even if cancelled meanwhile: ``_raise_interruption`` raises that later."""
        while True:
            try:
                await self._changed.acquire()
            except asyncio.CancelledError as error:
                self._interrupted = error
            else:
                self._is_unlocked = False
                return

    def _raise_interruption(self) -> None:
        """Raise the cancellation that arrived in ``_lock_again``. The item of that time was processed."""
        interrupted, self._interrupted = self._interrupted, None
        assert interrupted is not None
        raise interrupted

    async def _wait_for_room(self) -> None:
        while self._processing is not None and len(self._state.queue) >= self._room:
            self._refuse_own_process()
            self._waiting_for_room += 1
            try:
                await self._changed.wait()
            finally:
                self._waiting_for_room -= 1

    def _leave(self) -> None:
        """Wake all waiters if any of them can go on, and unlock the queue."""
        queue = self._state.queue
        if queue and (depth := len(queue)) > self._high_water:
            self._high_water = depth
        if not self._is_synced and self._state.has_synced():
            self._is_synced = True
            self._synced.set()
        if queue or self._waiting_for_room or self._closed:
            self._changed.notify(ALL)
        self._changed.release()

    def _refuse_own_process(self) -> None:
        """Raise if a process function is about to wait for its own end."""
        if self._processing is not asyncio.current_task():
            return
        if not self._is_unlocked or len(self._state.queue) >= self._room:
            raise QueueHeldError(
                "the queue is held while process runs; add to it after process has returned, from another task"
            )

    def _warn_of_slow(self, item: Item, seconds: float) -> None:
        waiting, deltas = len(self._state.queue), item.deltas
        if deltas[0].type in (REPLACED_ALL, SYNC_ALL):
            return  # takes as long as the collection is large, in slices
        if waiting > SLOW_POP_DEPTH and seconds > SLOW_POP * min(len(deltas), 10):
            what = f"{len(deltas)} deltas"
            if len(deltas) == 1:
                try:
                    what = self._state.key_of(deltas[0].object)
                except KeyFuncError:  # of a bookmark
                    what = shorten(deltas[0].object, 80)
            logger.warning("processing %s took %.0f ms, with %d waiting", what, seconds * 1000, waiting)
