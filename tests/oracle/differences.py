"""Known differences from client-go, named by their headings in docs/differences-from-client-go.md.

The comparisons of this folder accept these differences and no others.
"""

from __future__ import annotations

from enum import StrEnum


class Difference(StrEnum):
    """A paragraph of docs/differences-from-client-go.md, named by its first words."""

    SYNCED = "Synced means processed"
    BAD_OBJECT = "One bad object stops no other"
    TRANSFORMER = "A transformer that fails drops its object, no other"
    REFUSED = "What is refused has not happened"
    TOMBSTONE = "A tombstone has the last state that is known here"
    LISTED_TWICE = "An object that is listed twice is added once"
    STORE_VERSION = "The store's version is that of the last object that has one"
    PUT_BACK = "What is put back into a RealFIFO comes first again"
    UNKNOWN_INDEX = "An unknown index is an error wherever it is asked for"
    INDEX_FUNC = "An index function that raises loses its own entry only"
    UNCHANGED = "An unchanged object of a relist is no news"
    RESYNC_TIMER = "Relists do not put a resync off"
    SHORTEST_PERIOD = "The shortest resync period holds for the informer's own too"
    NETWORK = "A watch that the network keeps from being opened is no reason to list"
    PAGES = "What is newest is listed in pages"
    BROKEN_STREAM = "A WatchList that breaks off three times in a row gives way to a list"
    REFUSED_STREAM = "What is refused is asked for more often, and costs less"
    STREAM_END = "A watch that ends right behind its WatchList goes on as a watch"
    UNREADABLE = "A line of a watch that cannot be read does not end it"
    STREAM_ERRORS = "Errors in the stream reach the watch error handler"
    TRANSFORMED_ONCE = "A transformer is called once for each object"
    REMOVED = "A handler that is removed before it has synced never has"
    SAID_EARLY = "A handler has synced after its initial adds, never among them"


QUEUES = tuple(Difference)[: tuple(Difference).index(Difference.INDEX_FUNC) + 1]
"""The differences that scripts of queues and stores can meet."""

BY_CHANCE = frozenset({Difference.SAID_EARLY})
"""Races of client-go: no script meets these each time."""
