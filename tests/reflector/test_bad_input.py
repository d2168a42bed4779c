"""A bad object, event or answer does not stop the others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer.deltas import DeltaType
from aioinformer.fifo import DeltaFIFO
from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func
from aioinformer.objects.kube_object import KubeObject
from aioinformer.objects.meta import NO_EVENT, WatchEvent
from aioinformer.objects.undecodable import UndecodableObject
from aioinformer.reflector import Reflector
from aioinformer.store import Store

from ..virtual_time import virtual_time
from .running import Errors, NoJitter, content, plain_store, reflector, run_for
from .scripted import (
    FOREVER,
    RecordingStore,
    Scripted,
    Step,
    added,
    bookmark,
    closing_bookmark,
    error_event,
    page,
    raw_pod,
)


class Narrow(msgspec.Struct):
    """An object type that not every object fits."""

    class Metadata(msgspec.Struct, rename="camel"):
        name: str
        namespace: str = ""
        resource_version: str = ""

    class Spec(msgspec.Struct):
        node: str

    metadata: Metadata
    spec: Spec


def narrow(kind: str, name: str, version: int, **fields: Any) -> WatchEvent:
    return WatchEvent(kind, raw_pod(name, version, **fields))


class TestBadInput:
    def store(self) -> Store[Narrow]:
        return Store(deletion_handling_meta_namespace_key_func)

    def versions(self, store: Store[Narrow]) -> dict[str, str]:
        """The version of each name that fits; ``"5?"`` of one that does not."""
        return {obj.metadata.name: obj.metadata.resource_version for obj in store.list()} | {
            obj.name: f"{obj.resource_version}?" for obj in store.undecodable()
        }

    @virtual_time
    async def test_undecodable_list_item_replaces_the_cached_object_and_stops_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = self.store()
        good, bad = raw_pod("a", 1, node="n1"), raw_pod("a", 5)
        server = Scripted(
            [
                page(good, raw_pod("gone", 2, node="n1"), version=3),
                page(bad, raw_pod("b", 4, node="n2"), b"{", version=5),
            ],
            [[6.0, error_event(410, "Gone")]],
        )
        subject = Reflector(server, Narrow, store, random=NoJitter())
        await run_for(subject, 60)
        assert self.versions(store) == {"a": "5?", "b": "4"}
        assert (subject.state.undecodable, subject.state.rejected) == (1, 1)
        assert caplog.text.count("an object does not fit its type") == 1
        assert caplog.text.count("dropped an object") == 1
        assert "scripted pods at 3" in caplog.text

    @virtual_time
    async def test_list_item_without_readable_key_leads_to_a_relist(self) -> None:
        """The item may be an object that the cache had and has now lost."""
        store = self.store()
        server = Scripted(
            [page(raw_pod("a", 1, node="n1"), b"{", version=3), page(raw_pod("a", 1, node="n1"), version=3)],
            [[bookmark(4), 30.0, bookmark(5), 30.0, bookmark(6), FOREVER], [FOREVER]],
        )
        await run_for(Reflector(server, Narrow, store, random=NoJitter(), min_watch_timeout=45.0), 300)
        assert [asked for asked, _ in server.versions()][:3] == ["list", "watch", "list"]
        assert [asked for asked, _ in server.versions()].count("list") == 2

    @virtual_time
    async def test_undecodable_object_of_a_streamed_list_replaces_the_cached_object(self) -> None:
        store = self.store()
        server = Scripted(
            [],
            [
                [narrow("ADDED", "a", 1, node="n1"), narrow("ADDED", "x", 1, node="n"), closing_bookmark(3), 6.0,
                 error_event(410, "Gone")],
                [narrow("ADDED", "a", 5), narrow("ADDED", "b", 4, node="n2"), closing_bookmark(6), FOREVER],
            ],
            watch_list_semantics=True,
        )  # fmt: skip
        subject = Reflector(server, Narrow, store, random=NoJitter())
        await run_for(subject, 60)
        assert self.versions(store) == {"a": "5?", "b": "4"}
        assert (subject.state.undecodable, subject.state.rejected) == (1, 0)

    @virtual_time
    async def test_undecodable_events_reach_the_store_and_unreadable_ones_do_not_advance_the_version(
        self,
    ) -> None:
        """C80."""
        store = self.store()
        events = [
            narrow("ADDED", "a", 11, node="n1"), narrow("MODIFIED", "a", 12), WatchEvent("ADDED", b"[]"),
            WatchEvent("ADDED", 7),
        ]  # fmt: skip
        subject = Reflector(Scripted([page(version=10)], [[events, FOREVER]]), Narrow, store)
        await run_for(subject, 10)
        assert self.versions(store) == {"a": "12?"}
        assert subject.last_sync_resource_version == "12"
        assert (subject.state.undecodable, subject.state.rejected) == (1, 2)

    @virtual_time
    async def test_watch_with_only_unreadable_events_counts_as_empty(self) -> None:
        """C80: nothing but rejected events in less than a second is a very short watch."""
        server = Scripted([page(version=10)] * 2, [[WatchEvent("ADDED", b"[]")]])
        await run_for(reflector(server), 2)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "10")]

    @virtual_time
    async def test_deletion_of_an_undecodable_object_still_deletes(self) -> None:
        store = self.store()
        events = [narrow("ADDED", "a", 11, node="n1"), narrow("DELETED", "a", 12)]
        await run_for(Reflector(Scripted([page(version=10)], [[events, FOREVER]]), Narrow, store), 10)
        assert self.versions(store) == {}

    @virtual_time
    async def test_undecodable_deletion_advances_the_version(self) -> None:
        """Otherwise the watch would send earlier events again."""
        events = [narrow("ADDED", "a", 11, node="n1"), narrow("DELETED", "b", 12)]
        server = Scripted([page(version=10)], [[events, 1.0], [FOREVER]])
        await run_for(Reflector(server, Narrow, self.store()), 10)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("watch", "12")]

    @virtual_time
    async def test_undecodable_deletion_passes_through_a_queue(self) -> None:
        known = self.store()
        queue = DeltaFIFO(known_objects=known)
        await queue.add(msgspec.json.decode(raw_pod("a", 11, node="n1"), type=Narrow))
        server = Scripted(
            [page(raw_pod("a", 11, node="n1"), version=10)], [[narrow("DELETED", "a", 12), FOREVER]]
        )
        await run_for(Reflector(server, Narrow, queue), 10)
        deltas = queue.get_by_key("default/a")
        assert deltas is not None
        assert deltas[-1].type is DeltaType.DELETED
        assert isinstance(deltas[-1].object, UndecodableObject)
        assert deltas[-1].object.resource_version == "12"

    @virtual_time
    async def test_unknown_event_types_are_dropped_and_counted(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = RecordingStore()
        events = [WatchEvent("DRAINED", raw_pod("a", 11)), added("b", 12), FOREVER]
        subject = reflector(Scripted([page(version=10)], [events]), store)
        await run_for(subject, 10)
        assert store.verbs[1:] == [("add", "default/b")]
        assert subject.state.rejected == 1
        assert "unknown type 'DRAINED'" in caplog.text

    @virtual_time
    async def test_unknown_event_types_in_a_streamed_list(self) -> None:
        store = RecordingStore()
        events = [WatchEvent("DRAINED", raw_pod("a", 11)), closing_bookmark(12), FOREVER]
        subject = reflector(Scripted([], [events], watch_list_semantics=True), store)
        await run_for(subject, 10)
        assert store.verbs == [("replace", ([], "12"))]
        assert subject.state.rejected == 1

    @virtual_time
    async def test_store_rejects_objects_without_a_name_and_they_are_counted(self) -> None:
        store = plain_store()
        nameless = b'{"metadata": {"resourceVersion": "12"}}'
        subject = reflector(
            Scripted(
                [page(nameless, raw_pod("a", 1), version=10)],
                [[WatchEvent("ADDED", nameless), added("b", 13), FOREVER]],
            ),
            store,
        )
        await run_for(subject, 10)
        assert set(content(store)) == {"default/a", "default/b"}
        assert subject.state.rejected == 2

    @virtual_time
    async def test_line_without_an_event_is_dropped_and_counted(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = RecordingStore()
        events = [added("a", 11), WatchEvent(NO_EVENT, b"x y " * 25), added("b", 12)]
        subject = reflector(Scripted([page(version=10)], [[events, FOREVER]]), store)
        await run_for(subject, 10)
        assert [verb for verb, _ in store.verbs] == ["replace", "add", "add"]
        assert subject.state.rejected == 1
        assert "dropped an object: a line of 100 bytes is not a watch event; it begins b'x y x" in caplog.text

    @virtual_time
    async def test_only_the_first_bad_objects_after_a_list_are_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        flood = [WatchEvent(NO_EVENT, b"x")] * 1000
        subject = reflector(Scripted([page(version=10)], [[flood, FOREVER]]))
        await run_for(subject, 10)
        assert subject.state.rejected == 1000
        assert len(caplog.records) == 21

    @pytest.mark.parametrize(
        "lost", [WatchEvent(NO_EVENT, b"{"), WatchEvent("DELETED", b'{"metadata":{"name":"b","resou')]
    )
    @virtual_time
    async def test_unreadable_event_leads_to_a_relist_once_the_last_list_is_old_enough(
        self, lost: WatchEvent
    ) -> None:
        """The lost event may be a deletion: without a relist its object would stay cached forever."""
        store = plain_store()
        server = Scripted(
            [page(raw_pod("a", 1), raw_pod("b", 2), version=10), page(raw_pod("a", 1), version=20)],
            [[100.0, lost, 100.0, added("c", 30), 150.0, added("d", 31), FOREVER]],
        )
        subject = reflector(server, store)
        await run_for(subject, 400)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "31"), ("watch", "20")]
        assert content(store) == {"default/a": "1"}
        assert server.delays() == pytest.approx([0, 350.8, 0])
        server.assert_closed()

    @virtual_time
    async def test_repeatedly_lost_lines_do_not_relist_more_often(self) -> None:
        """A proxy that adds text to every watch costs one list in five minutes, not a hot loop."""
        noisy: list[Step] = [WatchEvent(NO_EVENT, b": keep-alive"), 10.0] * 360
        server = Scripted([page(version=10)] * 100, [noisy] * 100)
        await run_for(reflector(server), 3600)
        assert len(server.lists) == 12

    @virtual_time
    async def test_error_event_without_a_status_ends_the_watch(self) -> None:
        errors = Errors()
        server = Scripted([page(version=10)] * 2, [[WatchEvent("ERROR", b"<html>")]])
        await run_for(reflector(server, watch_error_handler=errors), 10)
        assert "not a Status" in str(errors)


@virtual_time
async def test_objects_that_do_not_fit_are_in_the_log_and_the_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = [narrow("ADDED", "a", 11, node="n1"), narrow("ADDED", "b", 12)]
    subject = Reflector(
        Scripted([page(version=10)], [[events, FOREVER]]),
        Narrow,
        Store(deletion_handling_meta_namespace_key_func),
    )
    await run_for(subject, 10)
    assert "dropped" not in str(subject.state)
    assert subject.state.undecodable == 1
    assert "it is Pod default/b, uid uid-b" in caplog.text


class Nameless(msgspec.Struct):
    """An object type whose keys have no namespace."""

    class Metadata(msgspec.Struct, rename="camel"):
        name: str
        resource_version: str = ""

    metadata: Metadata
    spec: Narrow.Spec


@virtual_time
async def test_undecodable_objects_of_a_type_without_a_namespace_replace_only_their_own_state() -> None:
    store: Store[Nameless] = Store(deletion_handling_meta_namespace_key_func)
    events = [
        WatchEvent(
            "MODIFIED", raw_pod("b", 11, namespace="other")
        ),  # not that of the first object's namespace
        WatchEvent("ADDED", raw_pod("a", 12, namespace="other", node="n1")),
        WatchEvent("MODIFIED", raw_pod("a", 13)),
        WatchEvent("DELETED", raw_pod("b", 14, namespace="other")),
    ]
    listed = page(raw_pod("a", 1, node="n1"), raw_pod("b", 2, node="n2"), version=10)
    subject = Reflector(Scripted([listed], [[events, FOREVER]]), Nameless, store)
    await run_for(subject, 10)
    assert [obj.metadata.name for obj in store.list()] == ["b"]
    assert [(obj.key, obj.resource_version) for obj in store.undecodable()] == [("a", "13")]
    assert (subject.state.rejected, subject.state.undecodable) == (3, 1)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
@virtual_time
async def test_object_nested_deeply_reaches_the_cache(kind: str) -> None:
    nested = b'{"a":' * 5000 + b"1" + b"}" * 5000
    hiding = raw_pod("a", 12).replace(b'"spec"', b'"x": ' + nested + b', "spec"')
    store: Store[KubeObject] = Store(deletion_handling_meta_namespace_key_func)
    listed = page(*([raw_pod("a", 1)] if kind == "MODIFIED" else []), version=10)
    subject = Reflector(Scripted([listed], [[WatchEvent(kind, hiding), FOREVER]]), KubeObject, store)
    await run_for(subject, 10)
    assert [obj.resource_version for obj in store.list()] == ["12"]
    assert subject.last_sync_resource_version == "12"
    assert subject.state.rejected == 0
