"""The protocols between the stages of the pipeline.

A stage imports this module instead of its neighbour. The controller and the informer, which connect stages, import
both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from .deltas import Delta
from .objects.meta import ListOptions, ListResult, WatchEvent

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Transformer = Callable[[T], Any]
"""Returns the object to store: the same one or another, of any type."""

Process = Callable[[list[Delta], bool], Awaitable[None] | None]
"""``process(deltas, is_in_initial_list)``: processes deltas, oldest first; plain or async."""

WatchStream = AsyncIterator[WatchEvent | list[WatchEvent]]
"""A watch stream of events, or of lists of events that arrived together. Closed with ``aclose()`` if it has one."""


class SharedHealth(Protocol):
    """The health of a server, shared by all its readers: during an outage one of them probes the server for all."""

    @property
    def probe_error(self) -> Exception | None:
        """The last error of the probe; None after an answer."""
        ...

    def concerns(self, error: Exception) -> bool:
        """Return whether an error may concern the whole server, not one reader."""
        ...

    def record_error(self, error: Exception) -> bool:
        """Record a reader's error. Return whether to report it: of simultaneous errors only the first is reported."""
        ...

    async def until_reachable(self, error: Exception) -> bool:
        """Wait until the outage is over; return whether all readers had it. May be cancelled at any time."""
        ...

    def record_accepted(self) -> None:
        """Record that a request was accepted that was forbidden before."""
        ...

    async def until_accepted(self) -> None:
        """Wait until any reader's request is accepted that was forbidden before. May be cancelled at any time."""
        ...


class ListerWatcher(Protocol):
    """The source of a Reflector (client-go ``ListerWatcher``).

    Optional members:

    - ``list_chunks(options)``, used instead of ``list``: see ListsInChunks.
    - ``watch_list_semantics``: whether its watch understands ``send_initial_events``.
    - ``attach(store)``: gets the informer's cache, to look up the last states of objects that it stops reading.
    - ``health``, a SharedHealth, if it reads from a server: its readers wait for the end of an outage together.
    """

    def list(self, options: ListOptions, /) -> Awaitable[ListResult]:
        """Return the collection, or the page that the options select."""
        ...

    def watch(self, options: ListOptions, /) -> WatchStream | Awaitable[WatchStream]:
        """Open a watch. An error raised here means that it did not start; an error of the stream ends it."""
        ...


class ListsInChunks(ListerWatcher, Protocol):
    """A ListerWatcher that returns a list in pieces, before the whole list has arrived."""

    def list_chunks(self, options: ListOptions, /) -> AsyncIterator[ListResult]:
        """Yield a page in one or more pieces as they arrive; the last piece has the version and the continue token."""
        ...


class ReadsShares(Protocol):
    """Reads a share of collections, such as a Sharding."""

    def read(self, list_watch: Any, shard_by: Any = "uid", /, *, namespaced: bool = True) -> Any:
        """Return a ListWatch that reads the share of another one."""
        ...


@runtime_checkable
class KnownObjects(Protocol[T_co]):
    """The objects that a queue's consumer already has (client-go ``KeyListerGetter``)."""

    def list_keys(self) -> Sequence[str]:
        """Return the keys of all known objects."""
        ...

    def get_by_key(self, key: str) -> T_co | None:
        """Return the object of a key, or None."""
        ...


@runtime_checkable
class ReflectorStore(Protocol):
    """The target of a Reflector: a Store or a Queue (client-go ``ReflectorStore``). Verbs may be plain or async.

    A reflector uses two further verbs if the store has them, unless a subclass overrides a verb that they stand for:
    ``apply(events)`` for the events of a watch, and the coroutine ``replace_in_turns`` for lists.
    """

    def add(self, obj: Any, /) -> Awaitable[None] | None:
        """Record a new object."""
        ...

    def update(self, obj: Any, /) -> Awaitable[None] | None:
        """Record a new state of an object."""
        ...

    def delete(self, obj: Any, /) -> Awaitable[None] | None:
        """Record a deletion; ``obj`` is the last state."""
        ...

    def replace(self, objects: Sequence[Any], resource_version: str, /) -> Awaitable[None] | None:
        """Record the whole collection, and the version of its list."""
        ...

    def resync(self) -> Awaitable[None] | None:
        """Repeat every object to the handlers."""
        ...


@runtime_checkable
class ReflectorBookmarkStore(Protocol):
    """A ReflectorStore that also takes bookmarks (client-go ``ReflectorBookmarkStore``)."""

    def bookmark(self, resource_version: str, /) -> Awaitable[None] | None:
        """Record that every event up to this version was delivered."""
        ...


@runtime_checkable
class ResourceVersionUpdater(Protocol):
    """A ReflectorStore that also takes the version that a watch has reached (client-go ``ResourceVersionUpdater``)."""

    def update_resource_version(self, resource_version: str, /) -> Awaitable[None] | None:
        """Record that every event and bookmark of a watch up to this version was delivered."""
        ...


@runtime_checkable
class Queue(Protocol):
    """A ReflectorStore from which a consumer pops the changes (client-go ``Queue``).

    A Controller also accepts a queue that has only client-go's verbs: it then pops one item after the other.
    """

    @property
    def keeps_order(self) -> bool:
        """Whether an item that is put back is the first to be popped again."""
        ...

    async def add(self, obj: Any, /) -> None:
        """Record a new object."""
        ...

    async def update(self, obj: Any, /) -> None:
        """Record a new state of an object."""
        ...

    async def delete(self, obj: Any, /) -> None:
        """Record a deletion; ``obj`` is the last state."""
        ...

    async def replace(self, objects: Sequence[Any], resource_version: str, /) -> None:
        """Record the whole collection, and the version of its list."""
        ...

    async def resync(self) -> None:
        """Repeat every object to the handlers."""
        ...

    async def apply(self, events: Iterable[Delta], /) -> None:
        """Record many changes."""
        ...

    async def pop(self, process: Process, /) -> list[Delta]:
        """Wait for the oldest item and process it with ``process``."""
        ...

    async def pop_batch(self, process: Process, process_batch: Process | None = None, /) -> int:
        """Wait for an item, process what is queued for one slice of loop time, and return the number of items.

        ``process_batch`` gets the deltas of several items in one call.
        """
        ...

    def has_synced(self) -> bool:
        """Return whether the first Replace was processed."""
        ...

    async def wait_synced(self) -> None:
        """Wait for ``has_synced``."""
        ...

    def close(self) -> None:
        """Let pops process the remaining items, then raise FIFOClosedError."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it was closed; remaining items may still be popped."""
        ...

    @property
    def processed(self) -> int:
        """How many items were processed so far; items that were put back count each time."""
        ...

    @property
    def unfinished(self) -> int:
        """How many items wait, or belong to a pop that has not returned."""
        ...

    def __len__(self) -> int: ...


def may_batch(obj: object, batch: str, *singles: str) -> bool:
    """Return whether a batch verb may replace verbs for single objects.

    It may if ``obj`` has it, and no subclass or instance overrides one of the single verbs below it: an override, which
    counts calls or raises, must be called.
    """
    if not callable(getattr(obj, batch, None)):
        return False
    for names in (getattr(obj, "__dict__", {}), *map(vars, type(obj).__mro__)):
        if batch in names:
            return True
        if not names.keys().isdisjoint(singles):
            return False
    return True
