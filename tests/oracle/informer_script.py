"""Scripts and traces of informers, in the format that the Go programs share (``v030/informer``)."""

from __future__ import annotations

from typing import Literal

import msgspec

SETTLING = 61.05
"""Seconds in which every wait of a reflector ends: client-go's back-off is at most 60."""


class Object(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod of one response.

    Attributes:
        color: The field that the indexes read.
        via: The name of the response: ``l1`` for a list, ``e2.0`` for an event. It distinguishes copies of an object.
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
        object: The pod, or None.
        status: The status of an ERROR.
        closes: A bookmark's value of the annotation that ends initial events; empty without the annotation.
    """

    type: str
    object: Object | None = None
    status: Failure | None = None
    closes: str = ""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step. Both sides skip a step that cannot be applied, such as a response without a request.

    After each step all tasks run until they wait. If the reflector may be backing off then, because a request failed
    or a watch ended, SETTLING seconds pass.

    Attributes:
        do: ``start``, ``stop``; ``add_handler`` (handler, resync), ``remove_handler``, ``hold``: its next call
            does not return, ``release``; ``add_indexers`` (index); ``wait`` (seconds);
            ``list``: answer a list with a page (items, version, token) or an error;
            ``open``: answer a watch with an error or with a stream, which has events and maybe its end;
            ``events``: the open stream has events, and maybe its end.
        end: ``"close"`` or ``"cut"``: how the stream ends after its events; empty: it continues.
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
    """A script for one informer."""

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
    """The state at the end of a step.

    Attributes:
        applied: Whether the step could be applied.
        result: Why a call of the informer was refused.
        time: Seconds since the start of the script.
        requests: The requests since the last point.
        state: What the reflector waits for: the response to a ``list`` or ``watch``, or events of a ``stream``.
        streams: The number of open streams.
        synced, handlers: ``has_synced`` of the informer and of its registrations.
        early: Whether the informer had synced while its first list was being stored.
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
        step: The step in which it started.
        kind: ``initial`` (an add of the initial list), ``add``, ``update``, ``delete``, ``tombstone``.
        old, new: ``version/uid/via``.
        synced: ``has_synced`` of the registration during an initial add.
    """

    step: int
    time: float
    kind: str
    key: str
    old: str
    new: str
    synced: bool


class WatchError(msgspec.Struct, frozen=True):
    """An error that the watch error handler got."""

    step: int
    text: str


class Trace(msgspec.Struct, frozen=True):
    """The trace of a script."""

    points: list[Point]
    calls: dict[int, list[Call]]
    errors: list[WatchError]
