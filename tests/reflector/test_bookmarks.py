"""Bookmarks reach the stores that ask for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import KubeObject, RealFIFO, Reflector, Store, WatchEvent
from aioinformer.cache import ListResult, ResourceVersionUpdater
from aioinformer.objects.meta import ADDED, BOOKMARK, INITIAL_EVENTS_END

from ..virtual_time import virtual_time
from .running import content, plain_store, reflector, run_for
from .scripted import (
    FOREVER,
    RecordingStore,
    Scripted,
    added,
    bookmark,
    closing_bookmark,
    deleted,
    modified,
    page,
    raw_pod,
)


class WithBookmarks(RecordingStore):
    """A store with an async bookmark verb."""

    async def bookmark(self, resource_version: str) -> None:
        self.verbs.append(("bookmark", resource_version))


EVENTS = [added("b", 11), bookmark(12), modified("b", 13), bookmark(14), deleted("b", 15)]


@pytest.mark.parametrize("batched", [False, True])
@virtual_time
async def test_bookmarks_keep_their_place_among_the_events(batched: bool) -> None:
    """client-go ``ReflectorBookmarkStore``; C66: the reflector's own version moves, too."""
    store = WithBookmarks()
    subject = reflector(
        Scripted([page(version=10)], [[EVENTS, FOREVER] if batched else [*EVENTS, FOREVER]]), store
    )
    await run_for(subject, 5)
    assert store.verbs[1:] == [
        ("add", "default/b"), ("bookmark", "12"), ("update", "default/b"), ("bookmark", "14"), ("delete", "default/b"),
    ]  # fmt: skip
    assert subject.last_sync_resource_version == "15"


@virtual_time
async def test_store_without_the_verb_gets_no_bookmarks() -> None:
    store = RecordingStore()
    await run_for(reflector(Scripted([page(version=10)], [[*EVENTS, FOREVER]]), store), 5)
    assert [verb for verb, _ in store.verbs] == ["replace", "add", "update", "delete"]


@virtual_time
async def test_plain_store_knows_its_version() -> None:
    store: Store[KubeObject] = plain_store()
    server = Scripted([page(raw_pod("a", 1), version=10)], [[added("b", 11), bookmark(12), FOREVER]])
    await run_for(reflector(server, store), 5)
    assert content(store) == {"default/a": "1", "default/b": "11"}
    assert store.last_store_sync_resource_version == "12"


@virtual_time
async def test_queue_gets_bookmarks_as_deltas() -> None:
    queue = RealFIFO(atomic_events=True, emit_delta_type_bookmark=True)
    await run_for(reflector(Scripted([page(version=10)], [[*EVENTS, FOREVER]]), queue), 5)
    assert [delta.type.value for delta in queue.queued] == [
        "ReplacedAll", "Added", "Bookmark", "Updated", "Bookmark", "Deleted",
    ]  # fmt: skip


@virtual_time
async def test_closing_bookmark_gives_the_lists_version() -> None:
    store = WithBookmarks()
    stream: list[Any] = [[added("a", 1), closing_bookmark(10), bookmark(11)], bookmark(12), FOREVER]
    subject = reflector(Scripted([], [stream], watch_list_semantics=True), store)
    await run_for(subject, 5)
    assert store.verbs == [("replace", (["default/a"], "10")), ("bookmark", "11"), ("bookmark", "12")]


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = "default"
    resource_version: str = ""
    annotations: dict[str, str] = {}


class Typed(msgspec.Struct):
    metadata: Meta


@pytest.mark.parametrize("object_type", [Typed, None])
@pytest.mark.parametrize("streamed", [False, True])
@virtual_time
async def test_bookmark_may_have_the_object_type(object_type: type[Typed] | None, streamed: bool) -> None:
    """C66, as TestReflectorListAndWatch and TestWatchList send them."""
    ending = Meta(resource_version="10", annotations={INITIAL_EVENTS_END: "true"})
    initial = [WatchEvent(ADDED, Typed(Meta("a", resource_version="9"))), WatchEvent(BOOKMARK, Typed(ending))]
    store = WithBookmarks()
    server = Scripted(
        [ListResult([Typed(Meta("a", resource_version="9"))], "10")],
        [[*(initial if streamed else ()), WatchEvent(BOOKMARK, Typed(Meta(resource_version="20"))), FOREVER]],
        watch_list_semantics=streamed,
    )
    subject = Reflector(server, object_type, store)
    await run_for(subject, 5)
    assert [verb for verb, _ in store.verbs] == ["replace", "bookmark"]
    assert store.verbs[1] == ("bookmark", "20")
    assert subject.last_sync_resource_version == "20"
    assert (len(server.lists), subject.state.rejected) == (0 if streamed else 1, 0)


class Updated(RecordingStore):
    def update_resource_version(self, resource_version: str) -> None:
        self.verbs.append(("version", resource_version))


@virtual_time
async def test_store_gets_the_version_of_the_watch_c66() -> None:
    """TestReflectorResourceVersionUpdate."""
    store = Updated()
    assert isinstance(store, ResourceVersionUpdater)
    await run_for(reflector(Scripted([page(version=10)], [[*EVENTS[:2], FOREVER]]), store), 5)
    assert store.verbs[1:] == [("add", "default/b"), ("version", "11"), ("version", "12")]


@virtual_time
async def test_bookmark_without_a_version_is_ignored() -> None:
    store = WithBookmarks()
    await run_for(reflector(Scripted([page(version=10)], [[bookmark(""), FOREVER]]), store), 5)
    assert [verb for verb, _ in store.verbs] == ["replace"]
