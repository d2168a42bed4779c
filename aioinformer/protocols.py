"""The small protocols by which the rooms know each other.

A room imports this page and never its neighbour; what puts rooms together (the controller, the informer)
imports both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from .deltas import Delta
from .objects.meta import ListOptions, ListResult, WatchEvent

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Transformer = Callable[[T], Any]
"""Gives an object, the same or another of any type, as it is to be kept."""

Process = Callable[[list[Delta], bool], Awaitable[None] | None]
"""``process(deltas, is_in_initial_list)``: works off deltas, oldest first; plain or async."""

WatchStream = AsyncIterator[WatchEvent | list[WatchEvent]]
"""A watch: events, or lists of events where many arrived at once. Closed with ``aclose()`` where it has one."""


class SharedHealth(Protocol):
    """What those who read from one server share, so that one of them asks for all whether it is back."""

    @property
    def probe_error(self) -> Exception | None:
        """What the one that asks for all has met with last; None since an answer."""
        ...

    def concerns(self, error: Exception) -> bool:
        """Whether an error may be the server's trouble, not only that of who has it."""
        ...

    def missed(self, error: Exception) -> bool:
        """Somebody has met with an error; whether to tell of it: of those that all have at once only the first."""
        ...

    async def until_reachable(self, error: Exception) -> bool:
        """Return once what was met with is over for all; whether all had it indeed. May be cancelled at any time."""
        ...

    def accepted(self) -> None:
        """A request that was forbidden before is so no more."""
        ...

    async def until_accepted(self) -> None:
        """Return once a request of somebody's is accepted that was forbidden before. May be cancelled at any time."""
        ...


class ListerWatcher(Protocol):
    """What a Reflector reads from (client-go ``ListerWatcher``).

    It may have more: a ``list_chunks(options)``, see ListsInChunks, which is then used in place of ``list``; a
    ``watch_list_semantics``, whether its watch understands ``send_initial_events``; and, where it reads from a server,
    an attribute ``health``, a SharedHealth, by which its readers wait out an outage together.
    """

    def list(self, options: ListOptions, /) -> Awaitable[ListResult]:
        """The collection, or the page of it that the options ask for."""
        ...

    def watch(self, options: ListOptions, /) -> WatchStream | Awaitable[WatchStream]:
        """Open a watch. What it raises failed to start; what the stream raises ended it."""
        ...


class ListsInChunks(ListerWatcher, Protocol):
    """A ListerWatcher whose lists need not be whole before anybody sees them."""

    def list_chunks(self, options: ListOptions, /) -> AsyncIterator[ListResult]:
        """One page in one or more pieces, as they arrive; the last piece has version and continue token."""
        ...


@runtime_checkable
class KnownObjects(Protocol[T_co]):
    """What a queue asks about the objects its consumer already has (client-go ``KeyListerGetter``)."""

    def list_keys(self) -> Sequence[str]:
        """The keys of all objects known."""
        ...

    def get_by_key(self, key: str) -> T_co | None:
        """The object of this key, or None."""
        ...


@runtime_checkable
class ReflectorStore(Protocol):
    """What a Reflector writes to: a Store or a Queue (client-go ``ReflectorStore``). Verbs may be plain or async.

    A store with a batch verb ``apply(events)`` gets a watch's events by it, and one with a coroutine
    ``replace_in_turns`` gets lists by that; unless a subclass has overridden a verb that it stands for.
    """

    def add(self, obj: Any, /) -> Awaitable[None] | None:
        """There is an object that was not there before."""
        ...

    def update(self, obj: Any, /) -> Awaitable[None] | None:
        """There is another state of an object."""
        ...

    def delete(self, obj: Any, /) -> Awaitable[None] | None:
        """An object is gone; this is its last state."""
        ...

    def replace(self, objects: Sequence[Any], resource_version: str, /) -> Awaitable[None] | None:
        """These are all objects, and this is the version of their list."""
        ...

    def resync(self) -> Awaitable[None] | None:
        """Everything is to be told again."""
        ...


@runtime_checkable
class ReflectorBookmarkStore(Protocol):
    """A ReflectorStore that is told of bookmarks, too (client-go ``ReflectorBookmarkStore``)."""

    def bookmark(self, resource_version: str, /) -> Awaitable[None] | None:
        """Everything up to this version was given."""
        ...


@runtime_checkable
class ResourceVersionUpdater(Protocol):
    """A ReflectorStore that is told how far a watch has come (client-go ``ResourceVersionUpdater``)."""

    def update_resource_version(self, resource_version: str, /) -> Awaitable[None] | None:
        """What a watch brought up to this version was given, and its bookmarks say no more."""
        ...


@runtime_checkable
class Queue(Protocol):
    """A ReflectorStore that hands its changes out again (client-go ``Queue``).

    A Controller makes do with one that has client-go's verbs alone: it then pops one item after the other.
    """

    @property
    def keeps_order(self) -> bool:
        """Whether what is put back is the first to be popped again."""
        ...

    async def add(self, obj: Any, /) -> None:
        """There is an object that was not there before."""
        ...

    async def update(self, obj: Any, /) -> None:
        """There is another state of an object."""
        ...

    async def delete(self, obj: Any, /) -> None:
        """An object is gone; this is its last state."""
        ...

    async def replace(self, objects: Sequence[Any], resource_version: str, /) -> None:
        """These are all objects, and this is the version of their list."""
        ...

    async def resync(self) -> None:
        """Everything is to be told again."""
        ...

    async def apply(self, events: Iterable[Delta], /) -> None:
        """Take many changes at once."""
        ...

    async def pop(self, process: Process, /) -> list[Delta]:
        """Wait for the oldest item and work it off with ``process``."""
        ...

    async def pop_batch(self, process: Process, process_batch: Process | None = None, /) -> int:
        """Wait for an item, process what is there for one slice of loop time, and return how many items.

        ``process_batch`` is given the deltas of several items in one call.
        """
        ...

    def has_synced(self) -> bool:
        """Whether the first Replace has been worked off."""
        ...

    async def wait_synced(self) -> None:
        """Wait for ``has_synced``."""
        ...

    def close(self) -> None:
        """Let pops drain what is left and then raise FIFOClosedError."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it was closed; what is left may still be popped."""
        ...

    @property
    def worked_off(self) -> int:
        """How many items were ever worked off, those that went back counted each time."""
        ...

    @property
    def unfinished(self) -> int:
        """How many items wait, or were taken by a pop that has not returned yet."""
        ...

    def __len__(self) -> int: ...


def batched(obj: object, batch: str, *singles: str) -> bool:
    """Whether a verb for many may be used in place of verbs for one: there is such a one, and none of the others was
    overridden below it, in a subclass or on the object. Who counts calls, or raises, does so there."""
    if not callable(getattr(obj, batch, None)):
        return False
    for names in (getattr(obj, "__dict__", {}), *map(vars, type(obj).__mro__)):
        if batch in names:
            return True
        if not names.keys().isdisjoint(singles):
            return False
    return True
