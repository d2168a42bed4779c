"""The coroutines around a queue's state: waiting, holding, handing out. The rules are the state's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence, Sized
from contextlib import asynccontextmanager
from inspect import isawaitable
from time import perf_counter
from typing import Any, Protocol

import msgspec

from ..deltas import Delta, DeltaType
from ..errors import FIFOClosedError, QueueHeldError, RejectedObjectError, RequeueError
from ..protocols import Process
from ..turns import Turn, in_turns

logger = logging.getLogger(__name__)

SLOW_POP = 0.1
"""Seconds of one pop over which a queue with more than ``SLOW_POP_DEPTH`` waiting warns."""
SLOW_POP_DEPTH = 10

LONGEST_BATCH = 1000
"""Items that one batch works off at most."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """What one pop takes out."""

    key: str
    deltas: list[Delta]
    is_in_initial_list: bool


class QueueState(Protocol):
    """A queue's rules, without waiting: plain code that a test can call."""

    @property
    def queue(self) -> Sized:
        """What waits to be popped."""
        ...

    def enqueue(self, delta: Delta) -> None:
        """Record one change."""
        ...

    def replace(self, objects: Sequence[Any], resource_version: str) -> Iterator[None]:
        """Record a whole collection; yields where it may be interrupted, and changes nothing before its end."""
        ...

    def resync(self) -> Iterator[None]:
        """Record a Sync of every known object; yields as ``replace`` does."""
        ...

    def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Put deltas back unless something newer is queued."""
        ...

    def take(self) -> Item:
        """Remove the oldest item."""
        ...

    def put_back(self, item: Item) -> None:
        """Undo a take, unless something newer is queued."""
        ...

    def done(self, item: Item) -> None:
        """An item of the initial list was worked off."""
        ...

    def has_synced(self) -> bool: ...


class FIFO:
    """A queue's coroutines, on an ``asyncio.Condition``.

    All waiting is on one condition, and whoever held it wakes all on leaving: ``notify(1)`` would lose a
    wake-up whose waiter is cancelled (CPython before 3.13).

    Cancellation: a cancelled verb has done nothing; a cancelled pop has put its item back.
    """

    def __init__(self, state: QueueState) -> None:
        self._state = state
        self._changed = asyncio.Condition()
        self._processing: asyncio.Task[Any] | None = None
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
            QueueHeldError: Called from inside this queue's own process function.
        """
        rejected: list[RejectedObjectError] = []
        enqueue = self._state.enqueue
        async with self._held():
            for delta in events:
                try:
                    enqueue(delta)
                except RejectedObjectError as error:
                    rejected.append(error)
        RejectedObjectError.raise_first(rejected)

    async def replace(self, objects: Sequence[Any], resource_version: str = "") -> None:
        """Record the whole collection as it was listed; what is missing in it was deleted.

        An ExplicitKey among the objects says that its object is there without saying how: nothing is queued for
        it, and it is not deleted.

        Cancellation: cancelled before its end it has changed nothing.

        Raises:
            RejectedObjectError: As ``apply``: what could be taken was.
            QueueHeldError: Called from inside this queue's own process function.
        """
        async with self._held():
            await in_turns(self._state.replace(objects, resource_version))

    async def resync(self) -> None:
        """Record a Sync of every known object that has nothing queued.

        Raises:
            QueueHeldError: Called from inside this queue's own process function.
        """
        async with self._held():
            await in_turns(self._state.resync())

    async def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Put popped deltas back, unless something newer is queued for their key.

        Raises:
            KeyFuncError: There are no deltas, or their object has no key.
        """
        async with self._held():
            self._state.add_if_not_present(deltas)

    async def pop(self, process: Process) -> list[Delta]:
        """Wait for the oldest item and work it off; the queue is held meanwhile.

        Args:
            process: ``process(deltas, is_in_initial_list)``, plain or async. It may raise RequeueError to have
                the item put back; its cause, where it has one, is raised here. Anything else it raises is raised
                here too, and the item is gone.

        Returns:
            The item's deltas, oldest first.

        Raises:
            FIFOClosedError: The queue is closed and empty.

        Cancellation: cancelled inside ``process``, the item goes back.
        """
        async with self._held():
            await self._wait_for_item()
            return (await self._work_off(process, 1))[-1].deltas

    async def pop_batch(self, process: Process) -> int:
        """Wait for an item, then work off what is there for one turn of the event loop.

        ``process`` is called for one item after the other, as by ``pop``. The first that raises, RequeueError
        included, ends the batch.

        Returns:
            How many items were worked off.

        Raises:
            FIFOClosedError: The queue is closed and empty.
        """
        async with self._held():
            await self._wait_for_item()
            return len(await self._work_off(process, LONGEST_BATCH))

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

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._state.queue)

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        if self._processing is not None and self._processing is asyncio.current_task():
            raise QueueHeldError(
                "the queue is held while process runs; add to it after process has returned, from another task"
            )
        async with self._changed:
            try:
                yield
            finally:
                self._high_water = max(self._high_water, len(self._state.queue))
                self._note_synced()
                self._changed.notify_all()

    async def _wait_for_item(self) -> None:
        while not len(self._state.queue):
            if self._closed:
                raise FIFOClosedError("the queue is closed")
            await self._changed.wait()

    async def _work_off(self, process: Process, most: int) -> list[Item]:
        """Process the oldest items, so many at most and for one turn of the loop; the first put back is the last."""
        state = self._state
        items: list[Item] = []
        self._processing = asyncio.current_task()
        turn = Turn()
        now = perf_counter()
        try:
            while (depth := len(state.queue)) and len(items) < most and (now < turn.end or not items):
                item = state.take()
                items.append(item)
                finished = True
                try:
                    result = process(
                        list(item.deltas), item.is_in_initial_list
                    )  # what goes back stays as it was
                    if result is not None and isawaitable(result):
                        await result
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
                    if not finished:
                        state.put_back(item)
                    elif item.is_in_initial_list:
                        state.done(item)
                started, now = now, perf_counter()
                if now - started > SLOW_POP and depth - 1 > SLOW_POP_DEPTH:
                    took = (now - started) * 1000
                    logger.warning("processing %s took %.0f ms, with %d waiting", item.key, took, depth - 1)
        finally:
            self._processing = None
        return items

    def _note_synced(self) -> None:
        if not self._synced.is_set() and self._state.has_synced():
            self._synced.set()
