"""The storage: objects, versions and the history of changes, as etcd and the watch cache hold them.

One counter for the whole server numbers every change, as etcd's revision does. A `Collection` holds the objects of a
resource in the order of their keys, and a log of its latest changes. Watches follow the log by position; each event is
encoded once for all watches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aioinformer.objects.meta import WatchEventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_LINES_KEPT = 1000
"""How many of the latest changes keep their encoded lines."""
_MOST_WRITES = 8
"""How many writes of an object are kept to compute its `managedFields`."""


class EventEncoder(Protocol):
    """Encodes events of a watch; see `views.View`."""

    def event(self, kind: WatchEventType, stored: StoredObject) -> bytes:
        """Encode an event."""
        ...


class StoredObject:
    """One version of an object.

    Attributes:
        key: `namespace/name`, or the name of a cluster-scoped object.
        body: Its JSON from `"metadata"` on; the resource's prefix goes before it.
        fields: The values of the resource's selectable fields, in order.
        owners: The uids of its owner references.
        terminating: Whether it has a deletionTimestamp.
        writes: Who wrote it, until it has `managedFields`.
    """

    __slots__ = (
        "body",
        "fields",
        "key",
        "labels",
        "name",
        "namespace",
        "owners",
        "resource_version",
        "terminating",
        "uid",
        "writes",
    )

    def __init__(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        resource_version: int,
        labels: dict[str, str],
        fields: tuple[str, ...],
        owners: tuple[str, ...],
        terminating: bool,
        body: bytes,
    ) -> None:
        self.key = f"{namespace}/{name}" if namespace else name
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.resource_version = resource_version
        self.labels = labels
        self.fields = fields
        self.owners = owners
        self.terminating = terminating
        self.body = body
        self.writes: tuple[Write, ...] = ()


class Write(NamedTuple):
    """A write of an object that has no `managedFields` yet.

    Attributes:
        manager: The field manager.
        subresource: The subresource.
        time: The time.
        before: The object before it; None for a create.
    """

    manager: str
    subresource: str
    time: str
    before: StoredObject | None


def with_write(writes: tuple[Write, ...], write: Write) -> tuple[Write, ...]:
    """Return writes with another; writes in a row by one manager are one, and old ones count as the first's."""
    if writes and writes[-1][:2] == write[:2]:
        return writes
    return (*writes[:1], *writes[1:][1 - _MOST_WRITES :], write)


class StoredEvent:
    """A change of an object.

    Attributes:
        resource_version: The change's number.
        current: The object after it; None for a deletion.
        previous: The object before it; None for a creation.
        last: The object as a DELETED event shows it: the last state with the deletion's resourceVersion.
    """

    __slots__ = ("_last", "_lines", "current", "previous", "resource_version", "reversion")

    def __init__(
        self,
        resource_version: int,
        current: StoredObject | None,
        previous: StoredObject | None,
        reversion: Callable[[StoredObject, int], StoredObject],
    ) -> None:
        self.resource_version = resource_version
        self.current = current
        self.previous = previous
        self.reversion = reversion
        self._last: StoredObject | None = None
        self._lines: dict[EventEncoder, bytes] = {}

    @property
    def key(self) -> str:
        """The object's key."""
        return self._newest.key

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return self._newest.namespace

    @property
    def type(self) -> WatchEventType:
        """ADDED, MODIFIED or DELETED."""
        if self.current is None:
            return WatchEventType.DELETED
        return WatchEventType.ADDED if self.previous is None else WatchEventType.MODIFIED

    @property
    def last(self) -> StoredObject:
        """The object as a DELETED event shows it; built at first use."""
        if self._last is None:
            assert self.previous is not None
            self._last = self.reversion(self.previous, self.resource_version)
        return self._last

    def line(self, view: EventEncoder) -> bytes:
        """Return the line for watches that see every change, encoded once for each view."""
        line = self._lines.get(view)
        if line is None:
            line = self._lines[view] = view.event(self.type, self.current or self.last)
        return line

    def forget_lines(self) -> None:
        """Free the encoded lines; a slow watch that needs them encodes them again."""
        self._lines = {}

    @property
    def _newest(self) -> StoredObject:
        newest = self.current or self.previous
        assert newest is not None
        return newest


class EventLog:
    """The latest changes of a collection, in order, found by position or by version.

    Attributes:
        floor: The oldest version from which a watch can start.
        start: The position of the oldest change in the log.
    """

    def __init__(self, history: int, buffer: int) -> None:
        self._history = history
        self._capacity = max(history, buffer)
        self._slack = max(self._capacity // 8, 1)
        self._events: list[StoredEvent] = []
        self.start = 0
        self.floor = 0

    @property
    def end(self) -> int:
        """The position of the next change."""
        return self.start + len(self._events)

    def append(self, event: StoredEvent) -> None:
        """Add a change; drop the oldest changes beyond the capacity."""
        events = self._events
        events.append(event)
        if len(events) > self._history:
            oldest = events[-self._history].resource_version if self._history else event.resource_version + 1
            self.floor = max(self.floor, oldest - 1)
        if len(events) > _LINES_KEPT:
            events[-_LINES_KEPT - 1].forget_lines()
        if len(events) > self._capacity + self._slack:
            del events[: self._slack]
            self.start += self._slack

    def since(self, position: int, count: int) -> list[StoredEvent] | None:
        """Return up to `count` changes from a position on, or None if the log has dropped them."""
        first = position - self.start
        if first < 0 or len(self._events) - first > self._capacity:
            return None
        return self._events[first : first + count]

    def after(self, resource_version: int) -> int:
        """Return the position of the first change after a version."""
        return self.start + bisect_right(
            self._events, resource_version, key=lambda event: event.resource_version
        )

    def backwards(self, resource_version: int) -> Iterator[StoredEvent]:
        """Yield the changes after a version, newest first."""
        for event in reversed(self._events):
            if event.resource_version <= resource_version:
                return
            yield event


class StoredCollection:
    """The objects of one resource.

    Attributes:
        objects: The objects by key.
        keys: The keys in etcd's order.
        log: The latest changes.
        changed: The version of the latest change.
        closed: True once the resource is removed or its history restarts; watches then end.
        watchers: Callbacks for every change, in the order in which they were added.
    """

    _SNAPSHOTS = 8

    def __init__(self, history: int, buffer: int) -> None:
        self.objects: dict[str, StoredObject] = {}
        self.keys: list[str] = []
        self.log = EventLog(history, buffer)
        self.changed = 0
        self.closed = False
        self.watchers: dict[Callable[[], None], None] = {}
        self._snapshots: OrderedDict[int, tuple[list[str], list[StoredObject]]] = OrderedDict()

    def apply(self, event: StoredEvent) -> None:
        """Apply a change and wake the watchers."""
        key = event.key
        if event.current is None:
            del self.objects[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if event.previous is None:
                insort(self.keys, key)
            self.objects[key] = event.current
        self.changed = event.resource_version
        self.log.append(event)
        self.wake()

    def wake(self) -> None:
        """Call every watcher."""
        for watcher in self.watchers:
            watcher()

    def close(self) -> None:
        """End every watch."""
        self.closed = True
        self.wake()

    def at(self, resource_version: int, namespace: str = "", start: str = "") -> list[StoredObject]:
        """Return the objects as they were at a version, in order, from the key `start` on.

        The version must not be older than `log.floor`.
        """
        if namespace and resource_version >= self.changed and not start:
            return self.in_namespace(namespace)
        keys, objects = self._snapshot(min(resource_version, self.changed))
        first, last = 0, len(keys)
        if namespace:
            first = bisect_left(keys, f"{namespace}/")
            last = bisect_left(keys, f"{namespace}0")  # "0" follows "/"
        if start:
            first = max(first, bisect_left(keys, start))
        return objects[first:last]

    def in_namespace(self, namespace: str) -> list[StoredObject]:
        """Return the current objects of a namespace."""
        first = bisect_left(self.keys, f"{namespace}/")
        last = bisect_left(self.keys, f"{namespace}0")
        return [self.objects[key] for key in self.keys[first:last]]

    def _snapshot(self, version: int) -> tuple[list[str], list[StoredObject]]:
        """Return keys and objects at a version; a few snapshots are kept for the next pages of lists."""
        snapshot = self._snapshots.get(version)
        if snapshot is not None:
            self._snapshots.move_to_end(version)
            return snapshot
        if version >= self.changed:
            snapshot = (self.keys.copy(), [self.objects[key] for key in self.keys])
        else:
            past: dict[str, StoredObject] = self.objects.copy()
            for event in self.log.backwards(version):
                if event.previous is None:
                    past.pop(event.key, None)
                else:
                    past[event.key] = event.previous
            keys = sorted(past)
            snapshot = (keys, [past[key] for key in keys])
        self._snapshots[version] = snapshot
        if len(self._snapshots) > self._SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return snapshot


class Storage:
    """All collections under one counter.

    Args:
        history: How many changes of each resource a watch can go back.
        buffer: How many changes a slow watch may lag behind before the server ends it.
    """

    def __init__(self, history: int = 10_000, buffer: int = 10_000) -> None:
        self.resource_version = 0
        self._history = history
        self._buffer = buffer
        self._floor = 0
        self._collections: dict[tuple[str, str], StoredCollection] = {}

    def collection(self, group: str, plural: str) -> StoredCollection:
        """Return the collection of a resource, created at first use."""
        collection = self._collections.get((group, plural))
        if collection is None:
            collection = self._collections[group, plural] = StoredCollection(self._history, self._buffer)
            collection.log.floor = self._floor
        return collection

    def begin(self, group: str, plural: str) -> None:
        """Restart a resource's history with the current objects; its watches end."""
        before = self._collections.pop((group, plural), None)
        after = self.collection(group, plural)
        after.log.floor = self.resource_version
        if before is not None:
            after.objects, after.keys, after.changed = before.objects, before.keys, before.changed
            before.close()

    def collections(self) -> list[tuple[tuple[str, str], StoredCollection]]:
        """Return every collection by (group, plural)."""
        return list(self._collections.items())

    def drop(self, group: str, plural: str) -> None:
        """Remove a resource's collection; its watches end."""
        collection = self._collections.pop((group, plural), None)
        if collection is not None:
            collection.close()

    def next_version(self) -> int:
        """Return the number of the next change."""
        self.resource_version += 1
        return self.resource_version

    def expire_history(self, step: bool = True) -> int:
        """Expire every version issued so far for new watches and further pages; open watches continue.

        With `step` the counter advances by one, as on a cluster where other objects change all the time. Then even an
        up-to-date client has to relist, as after a restart of a real API server. Without `step` an up-to-date client
        can continue.
        """
        self._floor = self.next_version() if step else self.resource_version
        for collection in self._collections.values():
            collection.log.floor = self._floor
        return self._floor
