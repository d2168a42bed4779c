"""Objects, versions and the history, without a server."""

from __future__ import annotations

from aioinformer.testing.http.encodings import JSON, PROTOBUF
from aioinformer.testing.http.views import plain_view
from aioinformer.testing.objects import Object
from aioinformer.testing.resources import ResourceType
from aioinformer.testing.storage.builtin import BUILTIN
from aioinformer.testing.storage.codec import load, store, with_version
from aioinformer.testing.storage.storage import EventLog, Storage, StoredCollection, StoredEvent, StoredObject

CONFIGMAPS = next(resource for resource in BUILTIN if resource.kind == "ConfigMap")
CAVES = ResourceType("example.com", "v1", "caves", "Cave")


def make_stored(name: str, version: int, namespace: str = "ns", **content: object) -> StoredObject:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(version)}
    return store(CONFIGMAPS, {"metadata": metadata, **content})


def event(version: int, current: StoredObject | None, previous: StoredObject | None) -> StoredEvent:
    return StoredEvent(version, current, previous, lambda old, new: with_version(CONFIGMAPS, old, new))


class Objects:
    """Changes a collection in the shortest way."""

    def __init__(self, history: int = 100, buffer: int = 100) -> None:
        self.collection = StoredCollection(history, buffer)
        self.version = 0

    def put(self, name: str, namespace: str = "ns") -> None:
        self.version += 1
        new = make_stored(name, self.version, namespace)
        self.collection.apply(event(self.version, new, self.collection.objects.get(new.key)))

    def drop(self, name: str) -> None:
        self.version += 1
        self.collection.apply(event(self.version, None, self.collection.objects[f"ns/{name}"]))

    def at(self, version: int, namespace: str = "", start: str = "") -> list[tuple[str, int]]:
        objects = self.collection.at(version, namespace, start)
        return [(listed.key, listed.resource_version) for listed in objects]


def test_a_builtin_is_written_in_the_order_of_the_real_server() -> None:
    obj: Object = {
        "data": {"z": "1", "a": "2"},
        "metadata": {
            "labels": {"b": "c"},
            "resourceVersion": "7",
            "uid": "u",
            "namespace": "ns",
            "name": "x",
        },
        "kind": "ConfigMap",
        "apiVersion": "v1",
    }
    entry = store(CONFIGMAPS, obj)
    assert CONFIGMAPS.prefix + entry.body == (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"ns","uid":"u",'
        b'"resourceVersion":"7","labels":{"b":"c"}},"data":{"z":"1","a":"2"}}'
    )
    assert load(CONFIGMAPS, entry) == obj
    assert (entry.key, entry.labels, entry.resource_version) == ("ns/x", {"b": "c"}, 7)


def test_a_custom_resource_is_written_in_alphabetical_order() -> None:
    obj: Object = {"spec": {"b": 1, "a": 2}, "metadata": {"uid": "u", "name": "x", "resourceVersion": "7"}}
    assert CAVES.prefix + store(CAVES, obj).body == (
        b'{"apiVersion":"example.com/v1","kind":"Cave","metadata":{"name":"x","resourceVersion":"7","uid":"u"},'
        b'"spec":{"a":2,"b":1}}'
    )
    assert store(CAVES, {"metadata": obj["metadata"]}).body.endswith(b"}}")


def test_keys_are_in_the_order_of_etcd() -> None:
    objects = Objects()
    for name, namespace in (("b", "a"), ("x", "a-b"), ("a", "a"), ("c", "b")):
        objects.put(name, namespace)
    assert [key for key, _ in objects.at(4)] == ["a-b/x", "a/a", "a/b", "b/c"]
    assert [key for key, _ in objects.at(4, "a")] == ["a/a", "a/b"]
    assert [key for key, _ in objects.at(4, start="a/b")] == ["a/b", "b/c"]
    assert [key for key, _ in objects.at(4, "a", "a/a\0")] == ["a/b"]


def test_objects_at_a_past_version() -> None:
    objects = Objects()
    objects.put("a")
    objects.put("b")
    objects.put("a")
    objects.drop("b")
    objects.put("c")
    assert objects.at(1) == [("ns/a", 1)]
    assert objects.at(2) == [("ns/a", 1), ("ns/b", 2)]
    assert objects.at(3) == [("ns/a", 3), ("ns/b", 2)]
    assert objects.at(4) == [("ns/a", 3)]
    assert objects.at(9) == [("ns/a", 3), ("ns/c", 5)]
    assert objects.at(2) is not objects.at(2)


def test_snapshots_are_kept_for_a_few_versions_only() -> None:
    objects = Objects()
    for _ in range(30):
        objects.put("a")
    for version in range(1, 31):
        assert objects.at(version) == [("ns/a", version)]
    assert objects.at(1) == [("ns/a", 1)]


def test_the_log_is_read_by_position_and_by_version() -> None:
    objects = Objects()
    for name in "abcd":
        objects.put(name)
    log = objects.collection.log
    position = log.after(2)
    events = log.since(position, 10)
    assert events is not None
    assert [(logged.type, logged.key) for logged in events] == [("ADDED", "ns/c"), ("ADDED", "ns/d")]
    assert log.since(log.end, 10) == []
    assert log.since(0, 1) == log.since(0, 4)[:1]  # type: ignore[index]


def test_history_is_limited() -> None:
    log = EventLog(history=3, buffer=5)
    assert log.floor == 0
    for version in range(1, 30):
        log.append(event(version, make_stored("a", version), None))
    assert log.floor == 26
    assert log.since(log.end - 5, 9) is not None
    assert log.since(log.end - 6, 9) is None
    assert log.since(0, 1) is None


def test_no_history_at_all() -> None:
    log = EventLog(history=0, buffer=5)
    log.append(event(7, make_stored("a", 7), None))
    assert log.floor == 7


def test_an_event_is_encoded_once() -> None:
    change = event(2, make_stored("a", 2), make_stored("a", 1))
    view = plain_view(CONFIGMAPS, JSON)
    line, frame = change.line(view), change.line(plain_view(CONFIGMAPS, PROTOBUF))
    assert line.startswith(b'{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{')
    assert line.endswith(b"}\n")
    assert b"k8s\x00" in frame
    assert change.line(plain_view(CONFIGMAPS, JSON)) is line
    change.forget_lines()
    assert change.line(view) == line


def test_a_deletion_shows_the_last_state_with_its_own_version() -> None:
    gone = event(9, None, make_stored("a", 1, data={"k": "v"}))
    assert gone.type == "DELETED"
    line = gone.line(plain_view(CONFIGMAPS, JSON))
    assert b'"resourceVersion":"9"' in line
    assert b'"data":{"k":"v"}' in line


def test_watchers_are_called() -> None:
    objects = Objects()
    woken: list[int] = []
    objects.collection.watchers[lambda: woken.append(objects.version)] = None
    objects.put("a")
    objects.collection.close()
    assert woken == [1, 1]
    assert objects.collection.closed


def test_expiring_the_history_leaves_nothing_old() -> None:
    storage = Storage()
    early = storage.collection("", "configmaps")
    for _ in range(3):
        storage.next_version()
    storage.expire_history()
    assert (storage.resource_version, early.log.floor) == (4, 4)
    assert storage.collection("", "secrets").log.floor == 4


def test_restarted_history_keeps_the_objects() -> None:
    storage = Storage()
    storage.begin("example.com", "caves")
    first = storage.collection("example.com", "caves")
    entry = make_stored("a", storage.next_version())
    first.apply(event(1, entry, None))
    storage.begin("example.com", "caves")
    second = storage.collection("example.com", "caves")
    assert first.closed
    assert not second.closed
    assert (second.log.floor, second.at(1)) == (1, [entry])


def test_dropped_collection_is_closed_and_created_again() -> None:
    storage = Storage()
    first = storage.collection("example.com", "caves")
    storage.drop("example.com", "caves")
    storage.drop("example.com", "caves")
    assert first.closed
    assert storage.collection("example.com", "caves") is not first
