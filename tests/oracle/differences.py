"""Known differences from client-go, named by their headings in docs/differences-from-client-go.md.

The comparisons of this folder accept these differences and no others.
"""

from __future__ import annotations

from enum import StrEnum


class Difference(StrEnum):
    """A paragraph of docs/differences-from-client-go.md, named by its first words."""

    SYNCED = "Synced means processed"
    BAD_OBJECT = "A bad object stops no other"
    TRANSFORMER = "A transformer that fails drops its object only"
    REFUSED = "A rejected call has no effect"
    TOMBSTONE = "A tombstone has the last known state"
    LISTED_TWICE = "An object that is listed twice is added once"
    STORE_VERSION = "The store's version is that of the last object that has one"
    PUT_BACK = "An item put back into a RealFIFO comes first again"
    UNKNOWN_INDEX = "An unknown index is always an error"
    INDEX_FUNC = "An index function that raises loses its own entry only"
    UNCHANGED = "An unchanged object of a relist is not an update"
    RESYNC_TIMER = "Relists do not delay a resync"
    SHORTEST_PERIOD = "The shortest resync period applies to the informer's own period, too"
    NETWORK = "A watch that the network keeps from opening is not a reason to list"
    PAGES = "The newest state is listed in pages"
    BROKEN_STREAM = "A WatchList that breaks off three times in a row gives way to a list"
    REFUSED_STREAM = "After a refusal, retries are more frequent and cheaper"
    STREAM_END = "A watch that ends right after its WatchList is continued as a watch"
    UNREADABLE = "An unreadable line does not end a watch"
    STREAM_ERRORS = "The watch error handler gets errors of the stream too"
    TRANSFORMED_ONCE = "A transformer is called once per object"
    REMOVED = "A handler that is removed before it has synced never counts as synced"
    SAID_EARLY = "A handler has synced after its last initial add"


QUEUES = tuple(Difference)[: tuple(Difference).index(Difference.INDEX_FUNC) + 1]
"""The differences that scripts of queues and stores can meet."""

BY_CHANCE = frozenset({Difference.SAID_EARLY})
"""Races of client-go: no script meets these each time."""
