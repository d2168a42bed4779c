"""Weak points of upstream that an informer does not have: W7 to W24, as far as other tests do not cover them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    KubeObject,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    SharedInformerFactory,
    wait_for_cache_sync,
)
from aioinformer.cache import Phase
from aioinformer.controller import QueueName
from aioinformer.errors import TransportError
from aioinformer.testing import APIServer

from ..queues import QUEUES
from ..reflector.running import Errors, NoJitter
from ..reflector.scripted import (
    FOREVER,
    GONE,
    Scripted,
    Step,
    added,
    bookmark,
    deleted,
    error_event,
    modified,
    page,
    raw_pod,
)
from ..steps import until
from ..virtual_time import settle, virtual_time
from .handlers import Follower
from .subject import informer, versions_in_cache

pytestmark = pytest.mark.usefixtures("kept")


@virtual_time
async def test_processing_errors_are_logged_and_counted_w7(caplog: pytest.LogCaptureFixture) -> None:
    """Key, transform and index functions, for the first list, events and a relist; other objects continue."""

    def transform(obj: KubeObject) -> KubeObject:
        if obj.name == "untransformed":
            raise ValueError("not this one")
        return obj

    def key_func(obj: KubeObject) -> str:
        if obj.name == "keyless":
            raise LookupError("no key for it")
        return obj.key

    names = ("untransformed", "keyless", "unindexed", "good")
    server = Scripted(
        [
            page(*(raw_pod(name, 1) for name in names), version=10),
            page(*(raw_pod(name, 2) for name in names), version=30),
        ],
        [[*(added(name, 20) for name in names), 6.0, GONE]],
    )
    subject = informer(
        server, key_func=key_func, indexers={"node": lambda obj: [str(1 // (obj.name != "unindexed"))]}
    )
    subject.set_transform(transform)
    async with subject:
        await asyncio.sleep(60)
        assert versions_in_cache(subject) == {"default/unindexed": "2", "default/good": "2"}
        assert subject.state.reflectors[0].rejected == 6
        assert subject.state.failed == 3
    for words in (
        "transforming default/untransformed at 20 failed",
        "no key for it",
        "index 'node' failed on default/unindexed",
    ):
        assert words in caplog.text


@pytest.mark.parametrize("queue", QUEUES)
@virtual_time
async def test_index_that_fails_for_all_objects_does_not_flood_the_log(
    queue: QueueName, caplog: pytest.LogCaptureFixture
) -> None:
    objects = [raw_pod(f"p{number}", number) for number in range(1, 51)]
    subject = informer(
        Scripted([page(*objects, version=100), page(objects[0], version=200)], [[6.0, GONE]]),
        indexers={"broken": lambda obj: int("x")},
        queue=queue,
    )
    async with subject:
        await subject.wait_synced()
        assert (subject.state.failed, len(subject.store)) == (50, 50)
        failed = "scripted pods: processing failed: index 'broken' failed on default/p%d at %d: %r"
        why = ValueError("invalid literal for int() with base 10: 'x'")
        *lines, last = caplog.messages
        assert lines == [failed % (number, number, why) for number in range(1, 21)]
        assert last == (
            "scripted pods: more objects that cannot be processed are counted but not logged until the next list"
        )
        caplog.clear()
        await asyncio.sleep(30)
        assert caplog.messages == [failed % (1, 1, why)]


@virtual_time
async def test_backlogs_are_visible_and_shrink_w8() -> None:
    """Upstream's ring buffers never shrink, and have no metrics."""
    release = asyncio.Event()

    async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        await release.wait()

    subject = informer(Scripted([page(*(raw_pod(str(n), n) for n in range(3000)), version=3000)]))
    subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
    async with subject:
        await subject.wait_synced()
        await settle()
        (state,) = subject.state.handlers
        assert (state.depth, state.high_water, state.handling) == (3000, 3000, "default/0")
        assert subject.state.queue_depth == 0
        release.set()
        await asyncio.sleep(1)
        (state,) = subject.state.handlers
        assert (state.depth, state.high_water, state.delivered) == (0, 3000, 3000)


@virtual_time
async def test_lists_watches_events_and_versions_are_counted_w9() -> None:
    """Upstream never writes its reflector metrics."""
    server = Scripted(
        [page(raw_pod("a", 1), version=10), page(raw_pod("a", 1), version=20)],
        [[added("b", 11), bookmark(12), 10.0], [modified("b", 13), GONE], [deleted("a", 21), FOREVER]],
    )
    async with informer(server) as subject:
        await asyncio.sleep(60)
        (state,) = subject.state.reflectors
        assert (state.lists, state.watches, state.events, state.rejected) == (2, 3, 5, 0)
        assert (state.listed, state.resource_version) == (1, "21")
        assert state.idle_seconds is not None
        assert state.idle_seconds > 30


@virtual_time
async def test_real_queue_keeps_the_order_of_all_events_w10() -> None:
    """DeltaFIFO, the default, keeps the order of each object only."""
    events = [added("b", 11), modified("a", 12), modified("b", 13), deleted("a", 14), added("a", 15)]
    calls = {}
    for queue in ("real", "delta"):
        follower = Follower()
        server = Scripted([page(raw_pod("a", 1), version=10)], [[events, FOREVER]])
        subject = informer(server, queue=queue)
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(5)
        assert not follower.wrong
        calls[queue] = follower.calls[1:]
    assert calls["real"] == ["add b 11", "update a 1 12", "update b 11 13", "delete a 14", "add a 15"]
    assert calls["delta"] == ["add b 11", "update b 11 13", "update a 1 12", "delete a 14", "add a 15"]


async def test_large_list_does_not_delay_other_calls_w11(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Upstream locks until the list is processed. Here handlers are added and removed, and states read, meanwhile."""
    monkeypatch.setattr("aioinformer._core.coop.SLICE", 0.0005)
    count = 20_000
    subject = informer(Scripted([page(*(raw_pod(str(n), n + 1) for n in range(count)), version=count)]))
    rounds = 0
    async with subject:
        while not subject.has_synced():
            follower = Follower()
            registration = subject.add_event_handler(follower)
            assert not subject.is_stopped
            assert subject.last_sync_resource_version in ("", str(count))
            subject.remove_event_handler(registration)
            rounds += bool(len(subject.store) and not subject.has_synced())
            await asyncio.sleep(0)
        late = Follower()
        await subject.add_event_handler(late).wait_synced()
        assert len(late.copy) == count
    assert rounds >= 2, "other tasks did not run while the list was processed"


@virtual_time
async def test_changes_by_a_handler_do_not_reach_others_w13() -> None:
    """Upstream shares the objects, and its mutation detector doubles the memory."""
    seen: list[Any] = []

    def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        obj["spec"]["node"] = "mine"
        obj.metadata.labels["mine"] = "yes"
        with pytest.raises(AttributeError):
            obj.resource_version = "99"  # type: ignore[misc]

    subject = informer(Scripted([page(raw_pod("a", 1, node="n1"), version=10)]))
    subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
    subject.add_event_handler(ResourceEventHandlerFuncs(on_add=lambda obj, initial: seen.append(obj)))
    async with subject:
        await asyncio.sleep(5)
        (stored,) = subject.store.list()
    for obj in (stored, *seen):
        assert (obj["spec"], obj.metadata.labels, obj.resource_version) == ({"node": "n1"}, {}, "1")


async def test_factory_passes_all_options_on_w14() -> None:
    """In upstream they are only available for a reflector made by hand."""
    errors: list[str] = []
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a", "namespace": "default"}})
        options: dict[str, Any] = {
            "use_watch_list": False, "page_size": 7, "min_watch_timeout": 40.0, "random": NoJitter(),
            "watch_error_handler": lambda reflector, error: errors.append(f"{reflector.name}: {error}"), "name": "mine",
            "max_internal_error_retry_duration": 60.0,
        }  # fmt: skip
        async with SharedInformerFactory(client, **options) as factory:
            configmaps = factory.for_resource("v1", "configmaps")
            await factory.wait_for_cache_sync(timeout=30)
            await until(lambda: server.open_watches)
            server.faults.watch_error(code=500)
            await until(lambda: errors)
            assert configmaps.state.reflectors[0].lists == 1, "the watch survives an internal error"
    listed, watched = (
        next(request for request in server.requests if request.verb == verb) for verb in ("list", "watch")
    )
    assert (listed.query["limit"], watched.query["timeoutSeconds"]) == ("7", "40")
    assert "sendInitialEvents" not in watched.query
    assert errors[0].startswith("mine configmaps: ")


@pytest.mark.parametrize("how", ["expired", "internal", "cut", "unreadable"])
@virtual_time
async def test_watch_error_handler_gets_stream_errors_w15(how: str) -> None:
    """Upstream's handler only gets errors of lists and of opening a watch; C72."""
    ends: dict[str, Step] = {
        "expired": GONE, "internal": error_event(500, "InternalError"), "cut": TransportError("cut"),
        "unreadable": ValueError("a custom decoder"),
    }  # fmt: skip
    errors = Errors()
    subject = informer(Scripted([page(version=10), page(version=20)], [[added("a", 11), 6.0, ends[how]]]))
    subject.set_watch_error_handler(errors)
    async with subject:
        await asyncio.sleep(10)
        assert len(errors.errors) == 1
        assert subject.state.phase is Phase.WATCHING


@virtual_time
async def test_waits_do_not_poll_w19() -> None:
    """Upstream polls every 100 ms whether all have synced."""
    loop = asyncio.get_running_loop()
    one, other = informer(Scripted([0.033, page(version=1)])), informer(Scripted([0.777, page(version=1)]))
    registration = one.add_event_handler(Follower())
    async with one, other:
        started = loop.time()
        await registration.wait_synced()
        assert loop.time() - started == pytest.approx(0.033)
        await wait_for_cache_sync(one, other)
        assert loop.time() - started == pytest.approx(0.777)


@virtual_time
async def test_server_without_streaming_lists_is_not_asked_each_time_w20() -> None:
    """Upstream asks each time; here the next try is after five minutes."""
    watches: list[Any] = [[error_event(422, "Invalid")], *[[20.0, GONE]] * 5]
    server = Scripted([page(version=10)] * 9, watches, watch_list_semantics=True)
    async with informer(server):
        await asyncio.sleep(110)
    streamed = [bool(options.send_initial_events) for options in server.watches]
    assert len(streamed) >= 6
    assert (streamed[0], any(streamed[1:])) == (True, False)


@virtual_time
async def test_recreation_between_two_lists_is_one_update_w23() -> None:
    """C59: one update, as upstream; a handler can compare the uids."""
    again = raw_pod("a", 15).replace(b"uid-a", b"uid-b")
    server = Scripted([page(raw_pod("a", 1), version=10), page(again, version=20)], [[6.0, GONE]])
    pairs: list[tuple[str, str]] = []
    gone: list[KubeObject | DeletedFinalStateUnknown[Any]] = []
    subject = informer(server)
    subject.add_event_handler(
        ResourceEventHandlerFuncs(
            on_update=lambda old, new: pairs.append((old.uid, new.uid)), on_delete=gone.append
        )
    )
    async with subject:
        await asyncio.sleep(60)
    assert (pairs, gone) == ([("uid-a", "uid-b")], [])


@virtual_time
async def test_minimum_period_applies_to_the_informers_default_w24(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Upstream documents it, but does not do it."""
    caplog.set_level(logging.WARNING)
    subject = SharedIndexInformer(
        Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 0.4, random=NoJitter()
    )
    follower = Follower()
    subject.add_event_handler(follower)
    async with subject:
        await asyncio.sleep(10.5)
    assert 9 <= follower.resyncs <= 10
    assert "raised to 1 s" in caplog.text
