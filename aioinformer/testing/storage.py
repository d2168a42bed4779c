"""What etcd and the watch cache are to a real server: objects, versions and the history of changes.

One counter for the whole server numbers every change, as etcd's revision does. A `Collection` holds the objects of a
resource in the order of their keys, and the log of its latest changes, which watches follow by position: an event is
encoded once, however many watch it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.views import View

_LINES_KEPT = 1000
"""For how many of the latest changes the encoded lines are kept."""


class StoredObject:
    """One version of an object.

    Attributes:
        key: `namespace/name`, or the name of what has no namespace.
        body: Its JSON from `"metadata"` on; what goes before is the resource's prefix.
        fields: The values of the resource's selectable fields, in their order.
        owners: The uids of its owner references.
        terminating: Whether it has a deletionTimestamp.
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


class StoredEvent:
    """One change.

    Attributes:
        resource_version: Its number.
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
        self._lines: dict[View, bytes] = {}

    @property
    def key(self) -> str:
        """The object's key."""
        return self._any().key

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return self._any().namespace

    @property
    def type(self) -> str:
        """ADDED, MODIFIED or DELETED."""
        if self.current is None:
            return "DELETED"
        return "ADDED" if self.previous is None else "MODIFIED"

    @property
    def last(self) -> StoredObject:
        """What a watch is shown when the object is gone for it; made at first need."""
        if self._last is None:
            assert self.previous is not None
            self._last = self.reversion(self.previous, self.resource_version)
        return self._last

    def line(self, view: View) -> bytes:
        """What is written to those who see every change, made once for a view."""
        line = self._lines.get(view)
        if line is None:
            line = self._lines[view] = view.event(self.type, self.current or self.last)
        return line

    def forget_lines(self) -> None:
        """Free the lines; they are made again if a slow watch still needs them."""
        self._lines = {}

    def _any(self) -> StoredObject:
        found = self.current or self.previous
        assert found is not None
        return found


class EventLog:
    """The latest changes of a collection, in order, found by position or by version.

    Attributes:
        floor: The version from which a watch can still begin.
        start: The position of the oldest change that is still here.
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
        """Add a change; the oldest make room."""
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
        """Up to `count` changes from a position on, or None if they are no longer here."""
        first = position - self.start
        if first < 0 or len(self._events) - first > self._capacity:
            return None
        return self._events[first : first + count]

    def after(self, resource_version: int) -> int:
        """The position of the first change after a version."""
        return self.start + bisect_right(
            self._events, resource_version, key=lambda event: event.resource_version
        )

    def backwards(self, resource_version: int) -> Iterator[StoredEvent]:
        """The changes after a version, newest first."""
        for event in reversed(self._events):
            if event.resource_version <= resource_version:
                return
            yield event


class Collection:
    """The objects of one resource.

    Attributes:
        objects: By key.
        keys: The keys in order, as etcd orders them.
        log: The latest changes.
        changed: The version of the latest change.
        closed: Whether the resource is gone, or its history has begun anew; watches end.
        watchers: Called at every change, in the order of their coming.
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
        """Make a change and tell the watchers."""
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
        """Let every watcher look again."""
        for watcher in self.watchers:
            watcher()

    def close(self) -> None:
        """End every watch."""
        self.closed = True
        self.wake()

    def at(self, resource_version: int, namespace: str = "", start: str = "") -> list[StoredObject]:
        """The objects as they were at a version, in order, from the key `start` on.

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
        """The objects in a namespace now."""
        first = bisect_left(self.keys, f"{namespace}/")
        last = bisect_left(self.keys, f"{namespace}0")
        return [self.objects[key] for key in self.keys[first:last]]

    def _snapshot(self, version: int) -> tuple[list[str], list[StoredObject]]:
        """Keys and objects at a version; a few are kept, so that pages need not be made from the history anew."""
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
        buffer: How many changes a slow watch may lie behind before it is ended.
    """

    def __init__(self, history: int = 10_000, buffer: int = 10_000) -> None:
        self.resource_version = 0
        self._history = history
        self._buffer = buffer
        self._floor = 0
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, group: str, plural: str) -> Collection:
        """The collection of a resource, made at first use."""
        found = self._collections.get((group, plural))
        if found is None:
            found = self._collections[group, plural] = Collection(self._history, self._buffer)
            found.log.floor = self._floor
        return found

    def begin(self, group: str, plural: str) -> None:
        """Begin a resource's history now, with the objects that there are; its watches end."""
        before = self._collections.pop((group, plural), None)
        after = self.collection(group, plural)
        after.log.floor = self.resource_version
        if before is not None:
            after.objects, after.keys, after.changed = before.objects, before.keys, before.changed
            before.close()

    def collections(self) -> list[tuple[tuple[str, str], Collection]]:
        """Every collection by (group, plural)."""
        return list(self._collections.items())

    def drop(self, group: str, plural: str) -> None:
        """Forget a resource's collection; its watches end."""
        collection = self._collections.pop((group, plural), None)
        if collection is not None:
            collection.close()

    def next_version(self) -> int:
        """The number of the next change."""
        self.resource_version += 1
        return self.resource_version

    def expire_history(self, step: bool = True) -> int:
        """Make every version handed out so far too old for a new watch or a further page; open watches go on.

        The counter takes one step, as it does on a cluster where something else is always changing: so even
        a client that has seen everything must list again, as after a restart of a real API server. Without `step`
        who has seen everything can go on.
        """
        self._floor = self.next_version() if step else self.resource_version
        for collection in self._collections.values():
            collection.log.floor = self._floor
        return self._floor
