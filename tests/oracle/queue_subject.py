"""Play scripts with our queues and controller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from aioinformer import DeltaFIFO, Indexer, RealFIFO, meta_namespace_key_func
from aioinformer.cache import AddNotification, Delta, DeltaType, Notification, UpdateNotification
from aioinformer.controller import apply_in_steps
from aioinformer.errors import FIFOClosedError, KeyFuncError, RequeueError, TransformError
from aioinformer.protocols import Process

from .queue_objects import Transformer, parse, parse_delta, show, show_deltas
from .queue_script import Op, QueueScript


class ProcessError(Exception):
    """The error that process functions raise."""


class Call(NamedTuple):
    """A call that a handler would get.

    Attributes:
        verb: ``add``, ``add*`` in the initial list, ``update``, ``delete``.
        old: The object before an update.
        new: The object now; for a delete its last state.
        delta: The delta of the call; None if one delta has many calls.
    """

    verb: str
    old: str
    new: str
    delta: Delta | None

    @property
    def text(self) -> str:
        return f"{self.verb} {self.old} {self.new}" if self.old else f"{self.verb} {self.new}"


class Work:
    """The process functions of a script, and a record of their last call.

    Attributes:
        deltas: Their argument; empty without a call.
        is_batch: Whether it was a batch.
        is_in_initial_list: Their argument.
        calls: The handler calls that would follow.
        is_put_back: Whether the item goes back to the queue.
    """

    def __init__(self, subject: Subject, how: str, meanwhile: int = 0) -> None:
        self._subject = subject
        self._how = how
        self._meanwhile = meanwhile
        self.deltas: list[Delta] = []
        self.is_batch = False
        self.is_in_initial_list = False
        self.calls: list[Call] = []

    @property
    def is_put_back(self) -> bool:
        return "requeue" in self._how or (self._subject.script.retry and self._how.endswith("-fail"))

    @property
    def applies(self) -> bool:
        """Whether its argument was applied to the store."""
        return self._how.startswith("apply")

    def process(self, deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
        self.deltas, self.is_in_initial_list = deltas, is_in_initial_list
        if self._meanwhile or self._subject.script.is_async:
            return self._work_async()
        self._work()
        return None

    def process_batch(self, deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
        self.is_batch = True
        return self.process(deltas, is_in_initial_list)

    async def _work_async(self) -> None:
        with self._subject.processing():
            await self._subject.meanwhile(self._meanwhile)
            self._work()

    def _work(self) -> None:
        if self.applies:
            steps = apply_in_steps(self._subject.store, self.deltas, self.is_in_initial_list)
            notifications = [notification for notification in steps if notification is not None]
            about_one = self.deltas[0].type not in (
                DeltaType.REPLACED_ALL,
                DeltaType.SYNC_ALL,
                DeltaType.BOOKMARK,
            )
            deltas = self.deltas if about_one else [None] * len(notifications)
            self.calls = [_describe_call(*pair) for pair in zip(notifications, deltas, strict=True)]
        if self._how.endswith("-fail"):
            raise ProcessError
        if self._how.endswith("-requeue"):
            raise RequeueError
        if self._how.endswith("-requeue-error"):
            raise RequeueError(ProcessError())


def _describe_call(notification: Notification, delta: Delta | None) -> Call:
    match notification:
        case AddNotification(new, is_in_initial_list):
            return Call("add*" if is_in_initial_list else "add", "", show(new), delta)
        case UpdateNotification(old, new):
            return Call("update", show(old), show(new), delta)
        case _:
            return Call("delete", "", show(notification.obj), delta)


class SortedIndexer(Indexer[Any]):
    """A store that lists its keys in a fixed order."""

    def list_keys(self) -> list[str]:
        return sorted(super().list_keys())


class Known:
    """A store as a queue sees it, which may differ from its contents."""

    def __init__(self, store: Indexer[Any], unreadable: Sequence[str], ghosts: Sequence[str]) -> None:
        self._store = store
        self._unreadable = unreadable
        self._ghosts = ghosts

    def list_keys(self) -> list[str]:
        return sorted({*self._store.list_keys(), *self._ghosts})

    def get_by_key(self, key: str) -> Any:
        if key in self._unreadable:
            raise ValueError("unreadable")
        return self._store.get_by_key(key)


class FedFIFO(DeltaFIFO):
    """A queue that calls a function before each batch, and then pops one item."""

    feed: Callable[[Process], Awaitable[None]]

    async def pop_batch(self, process: Process, process_batch: Process | None = None) -> int:
        await self.feed(process)
        return 1


class Subject:
    """The queue of a script and its consumer.

    Attributes:
        store: The consumer's store.
        known: The store as the queue sees it; None without known objects.
        taken: The items that a batch has taken after the item that is to be recorded.
        is_processing: Whether an async process function runs.
    """

    def __init__(self, script: QueueScript, meanwhile: Callable[[int], Awaitable[None]]) -> None:
        """``meanwhile`` does a number of the next operations."""
        self.script = script
        self.store = SortedIndexer()
        for text in script.known or ():
            self.store.add(parse(text))
        self.known = None if script.known is None else Known(self.store, script.unreadable, script.ghosts)
        self.transformer = Transformer()
        self.meanwhile = meanwhile
        self._broken: Sequence[str] = ()
        self.taken: list[Delta] = []
        self.is_processing = False
        transformer = self.transformer if script.transform else None
        self.delta: DeltaFIFO | None = None
        self.real: RealFIFO | None = None
        if script.delta:
            kind = FedFIFO if script.controller else DeltaFIFO
            self.delta = kind(
                known_objects=self.known,
                emit_delta_type_replaced=script.replaced,
                transformer=transformer,
            )
        else:
            self.real = RealFIFO(
                self._key_of,
                None if script.atomic else self.known,
                transformer,
                atomic_events=script.atomic,
                emit_delta_type_bookmark=script.bookmarks,
                unlock_while_processing=script.unlock,
                batch_size=script.batch_size,
            )
        fifo = self.delta if self.delta is not None else self.real
        assert fifo is not None
        self.fifo: DeltaFIFO | RealFIFO = fifo

    def list_queued(self) -> list[str]:
        """Return the taken and the queued deltas: for a DeltaFIFO key by key."""
        if self.real is not None:
            return [f"{delta.type} {show(delta.object)}" for delta in [*self.taken, *self.real.queued]]
        assert self.delta is not None
        queued = [f"{key}: {show_deltas(self.delta.get_by_key(key) or [])}" for key in self.delta.list_keys()]
        if self.taken:
            queued.insert(0, f"{self.delta.key_of(self.taken)}: {show_deltas(self.taken)}")
        return queued

    def describe_synced(self) -> str:
        """Whether the queue is closed, if it has that attribute."""
        if self.is_processing and not self.script.unlock:
            return "held"
        synced = self.fifo.has_synced()
        if not self.is_processing and not self.taken and synced == self._waits_for_sync():
            return f"has_synced() is {synced}, but wait_synced differs"
        return "synced" if synced else "unsynced"

    def _waits_for_sync(self) -> bool:
        """Whether ``wait_synced`` would wait now."""
        waiting = self.fifo.wait_synced()
        try:
            waiting.send(None)
        except StopIteration:
            return False
        waiting.close()
        return True

    async def do(self, op: Op) -> str:
        """Do an operation that does not pop; return its result."""
        name, *args = op
        fifo = self.fifo
        try:
            match name:
                case "add":
                    await fifo.add(parse(args[0]))
                case "update":
                    await fifo.update(parse(args[0]))
                case "delete":
                    await fifo.delete(parse(args[0]))
                case "replace":
                    await fifo.replace([parse(text) for text in args[1:]], args[0])
                case "resync":
                    await fifo.resync()
                case "bookmark":
                    assert self.real is not None
                    await self.real.bookmark(args[0])
                case "add-if-not-present":
                    assert self.delta is not None
                    await self.delta.add_if_not_present([parse_delta(text) for text in args])
                case "close":
                    fifo.close()
                case _:
                    raise AssertionError(f"no such operation: {name}")
        except KeyFuncError:
            return "key"
        except TransformError:
            return "transform"
        return "ok"

    def cannot_pop(self) -> str | None:
        """Return why a pop is not possible now."""
        if self.is_processing:
            return "is processing"
        return None if len(self.fifo) or self.fifo.is_closed else "waits"

    async def pop(self, op: Op) -> tuple[str, Work]:
        """Process the oldest item; return the result and the process functions' record."""
        name, how, meanwhile, *self._broken = op
        work = Work(self, how, int(meanwhile))
        try:
            if name == "pop":
                returned = await self.fifo.pop(work.process)
                assert returned == work.deltas, f"popped {returned}, but processed {work.deltas}"
            else:
                assert self.real is not None
                count = await self.real.pop_batch(work.process, work.process_batch)
                assert count == len(work.deltas), f"popped {count}, but processed {work.deltas}"
        except FIFOClosedError:
            return "closed", work
        except ProcessError:
            return "process", work
        finally:
            self._broken = ()
        return "ok", work

    @contextmanager
    def processing(self) -> Iterator[None]:
        """Mark that a process function runs."""
        self.is_processing = True
        try:
            yield
        finally:
            self.is_processing = False

    def _key_of(self, obj: Any) -> str:
        key = meta_namespace_key_func(obj)
        if key in self._broken:
            raise ValueError("broken")
        return key
