"""What both sides play, and what they hand back: the words that the Go programs share (``v030/informer``)."""

from __future__ import annotations

from typing import Literal

import msgspec

SETTLING = 61.05
"""Seconds in which every wait of a reflector is over: client-go's back-off has at most 60."""


class Object(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod as it comes in one answer.

    Attributes:
        color: What the indexes read.
        via: Names the answer that it came in: ``l1`` a list, ``e2.0`` an event. Copies of an object can be told by it.
    """

    name: str
    version: str
    uid: str
    color: str = ""
    via: str = ""
    namespace: str = ""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Status, or a connection that was refused or reset. ``causes`` are types of causes; None: no details."""

    kind: Literal["status", "refused", "reset", "nonsense"] = "status"
    code: int = 0
    reason: str = ""
    message: str = ""
    causes: list[str] | None = None


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """A watch event.

    Attributes:
        object: None for one that is no pod.
        status: An ERROR's.
        closes: A bookmark's value of the annotation that ends initial events; empty: it has none.
    """

    type: str
    object: Object | None = None
    status: Failure | None = None
    closes: str = ""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happens. What cannot happen now (an answer to what nobody asks) does not, on either side.

    After each step everybody does what there is to do at this moment; and where the reflector may be waiting
    after it, because a request failed or a watch has ended, SETTLING seconds pass.

    Attributes:
        do: ``start``, ``stop``; ``add_handler`` (handler, resync), ``remove_handler``, ``hold``: its next call
            does not return, ``release``; ``add_indexers`` (index); ``wait`` (seconds);
            ``list``: answer a list with a page (items, version, token) or an error;
            ``open``: answer a watch with an error or with a stream, which has events and maybe its end;
            ``events``: the open stream has events, and maybe its end.
        end: ``"close"`` or ``"cut"``: how the stream ends behind its events; empty: it goes on.
    """

    do: str
    handler: int = 0
    resync: float | None = None
    index: str = ""
    seconds: float = 0.0
    items: list[Object] = []
    version: str = ""
    token: str = ""
    error: Failure | None = None
    events: list[Event] = []
    end: str = ""


class Script(msgspec.Struct, frozen=True, omit_defaults=True):
    """An informer's life."""

    steps: list[Step]
    resync: float = 0.0
    transform: bool = False
    watch_list: bool = False
    indexes: list[str] = []


class Asked(msgspec.Struct, frozen=True):
    """A request."""

    verb: str
    version: str
    match: str
    limit: int
    token: str
    bookmarks: bool
    initial: bool


class Point(msgspec.Struct, frozen=True):
    """How things are at the end of a step.

    Attributes:
        applied: Whether the step could happen.
        result: Why a call of the informer was refused.
        time: Seconds since the script began.
        requests: What was asked for since the last point.
        state: What the reflector waits for: ``list`` or ``watch``, an answer; ``stream``, events.
        streams: How many streams are open.
        synced, handlers: What the informer and its registrations say.
        early: Whether the informer said that it has synced while its first list was being stored.
        version: The version that it has read up to.
        store: ``version/uid/via`` of each object stored.
        indexes: The keys of each ``index value``.
    """

    step: int
    applied: bool
    result: str
    time: float
    requests: list[Asked]
    state: str
    streams: int
    synced: bool
    early: bool
    handlers: dict[int, bool]
    version: str
    stopped: bool
    store: dict[str, str]
    indexes: dict[str, list[str]]


class Call(msgspec.Struct, frozen=True):
    """A call of a handler.

    Attributes:
        step: The step in which it began.
        kind: ``initial`` (an add of the initial list), ``add``, ``update``, ``delete``, ``tombstone``.
        old, new: ``version/uid/via``.
        synced: What the handler's registration says during an initial add.
    """

    step: int
    time: float
    kind: str
    key: str
    old: str
    new: str
    synced: bool


class WatchError(msgspec.Struct, frozen=True):
    """What the watch error handler was told."""

    step: int
    text: str


class Trace(msgspec.Struct, frozen=True):
    """What happened."""

    points: list[Point]
    calls: dict[int, list[Call]]
    errors: list[WatchError]
