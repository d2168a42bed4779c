"""Server-sent events and WebSockets, by ASGI's protocol."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import msgspec
import pytest

from aioinformer import KubeObject, SharedIndexInformer
from aioinformer.errors import ConfigError, SelectorError
from aioinformer.objects.meta import WatchEvent
from aioinformer.web import ChangeFeed, ChangeStream

from ..reflector.running import NoJitter
from ..reflector.scripted import FOREVER, Scripted, added, deleted, modified, page, raw_pod
from ..virtual_time import settle, virtual_time
from .asgi import Request
from .test_feed import feed_of

SNAPSHOT = ["RESET", "ADDED default/a", "ADDED default/b", "SYNCED"]


def sorted_snapshot(events: list[str]) -> list[str]:
    """Return a snapshot's events with the objects sorted."""
    return [events[0], *sorted(events[1:-1]), events[-1]]


@virtual_time
async def test_events_are_sent_with_ids_and_headers_against_buffering() -> None:
    async with feed_of(5.0, modified("a", 11)) as feed:
        request = Request(ChangeStream(feed, retry=0.5))
        await settle()
        assert (request.status, sorted_snapshot(request.events)) == (200, SNAPSHOT)
        assert request.headers == {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
        }
        assert request.body.startswith("retry: 500\n\n")
        assert request.last_id == feed.history.id_of(0)
        await asyncio.sleep(6)
        assert request.events[4:] == ["MODIFIED default/a"]
        assert request.last_id == feed.history.id_of(1)
        await request.end()


@virtual_time
async def test_browser_resumes_by_header_or_parameter() -> None:
    async with feed_of(5.0, modified("a", 11)) as feed:
        first = feed.history.id_of(0)
        await asyncio.sleep(6)
        stream = ChangeStream(feed)
        requests = [
            Request(stream, last_event_id=first),
            Request(stream, lastEventId=first),
            Request(stream, last_event_id=first, lastEventId="other-1"),
            Request(stream, kind="websocket", lastEventId=first),
        ]
        await settle()
        assert [request.events for request in requests] == [["MODIFIED default/a"]] * 4
        for request in requests:
            await request.end()


@virtual_time
async def test_silence_is_filled_with_comments_and_new_ids() -> None:
    async with feed_of(20.0, modified("a", 11), 20.0, modified("a", 12)) as feed:
        request = Request(ChangeStream(feed, field_selector="metadata.name=b", keep_alive=15))
        socket = Request(
            ChangeStream(feed, where=lambda obj: obj.name == "b", keep_alive=15), kind="websocket"
        )
        await settle()
        before = len(request.body)
        await asyncio.sleep(50)
        ids = [feed.history.id_of(number) for number in (1, 2)]
        assert request.body[before:] == f":\n\nid: {ids[0]}\n\nid: {ids[1]}\n\n"
        bookmarks = [msgspec.json.decode(message["text"]) for message in socket.sent[4:]]
        assert bookmarks == [{"type": "BOOKMARK", "id": feed.history.id_of(number)} for number in (0, 1, 2)]
        await request.end()
        await socket.end()


@virtual_time
async def test_request_narrows_the_selection_and_cannot_widen_it() -> None:
    async with feed_of() as feed:
        stream = ChangeStream(feed, where=lambda obj: obj.name != "b")
        narrowed = Request(stream, fieldSelector="metadata.name=b")
        everything = Request(stream, labelSelector="", fieldSelector="")
        await settle()
        assert narrowed.events == ["RESET", "SYNCED"]
        assert everything.events == ["RESET", "ADDED default/a", "SYNCED"]
        for request in (narrowed, everything):
            await request.end()


@virtual_time
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"labelSelector": "app in"}, "unable to parse requirement"),
        ({"fieldSelector": "spec.nodeName"}, "is no term such as"),
        ({"fieldSelector": "spec.[=1"}, "is no path of a field"),
        ({"fieldSelector": "a=b\\"}, "ends with a backslash"),
        ({"fieldSelector": "a" * 2000 + "=1"}, "a selector of 2002 characters"),
        ({"labelSelector": "a" * 2000}, "a selector of 2000 characters"),
        ({"fieldSelector": ".".join("a" * 400) + "=1"}, "it has 400 names, and may have 50"),
        ({"fieldSelector": "a=1," * 60}, "and may have 50"),
    ],
)
async def test_selector_that_does_not_parse_gets_400_and_a_closed_websocket(query: Any, text: str) -> None:
    async with feed_of() as feed:
        request, socket = (
            Request(ChangeStream(feed), **query),
            Request(ChangeStream(feed), kind="websocket", **query),
        )
        await request.task
        await socket.task
        assert request.status == 400
        assert text in request.body
        closed = socket.sent[-1]
        assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
        assert len(closed["reason"].encode()) <= 123
        other = Request(ChangeStream(feed))
        await settle()
        assert sorted_snapshot(other.events) == SNAPSHOT
        await other.end()


def test_arguments_are_checked_when_the_application_is_made() -> None:
    feed = ChangeFeed(SharedIndexInformer(Scripted(), KubeObject))
    bad: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"label_selector": "a in"}, SelectorError),
        ({"keep_alive": 0}, ConfigError),
        ({"retry": -1}, ConfigError),
        ({"render": 7}, ConfigError),
    ]
    for arguments, error in bad:
        with pytest.raises(error):
            ChangeStream(feed, **arguments)
    with pytest.raises(ConfigError, match="expected a ChangeFeed or a WebInformer"):
        ChangeStream(7)  # type: ignore[arg-type]


@virtual_time
async def test_methods_other_than_get_are_refused() -> None:
    async with feed_of() as feed:
        post, head = Request(ChangeStream(feed), method="POST"), Request(ChangeStream(feed), method="HEAD")
        await post.task
        await head.task
        assert (post.status, head.status, head.body) == (405, 200, "")


@virtual_time
async def test_disconnect_ends_the_response_and_the_subscription() -> None:
    async with feed_of() as feed:
        for kind in ("http", "websocket"):
            request = Request(ChangeStream(feed), kind=kind)
            await settle()
            request.disconnect()
            await request.task
        await settle()
        values = {sample.name: sample.value for sample in feed.samples()}
        assert values["aioinformer_feed_subscribers"] == 0


@virtual_time
async def test_end_of_the_feed_ends_streams() -> None:
    async with feed_of() as feed:
        request, socket = Request(ChangeStream(feed)), Request(ChangeStream(feed), kind="websocket")
        await settle()
        feed.end()
        await request.task
        await socket.task
        assert request.sent[-1] == {"type": "http.response.body"}
        assert (socket.sent[-1]["type"], socket.sent[-1]["code"]) == ("websocket.close", 1001)


@virtual_time
async def test_render_and_old_say_what_is_sent() -> None:
    async with feed_of(5.0, modified("a", 11), deleted("a", 12)) as feed:
        stream = ChangeStream(
            feed, render=lambda obj: {"version": obj.resource_version}, old=True, slow="replay"
        )
        request = Request(stream, kind="websocket", fieldSelector="metadata.name=a")
        await asyncio.sleep(10)
        events = [msgspec.json.decode(message["text"]) for message in request.sent[1:]]
        assert events == [
            {"type": "RESET"},
            {"type": "ADDED", "key": "default/a", "object": {"version": "1"}},
            {"type": "SYNCED", "id": feed.history.id_of(0)},
            {
                "type": "MODIFIED",
                "key": "default/a",
                "object": {"version": "11"},
                "old": {"version": "1"},
                "id": feed.history.id_of(1),
            },
            {"type": "DELETED", "key": "default/a", "object": {"version": "11"}, "id": feed.history.id_of(2)},
        ]
        await request.end()


@virtual_time
async def test_objects_with_line_breaks_stay_one_event() -> None:
    pretty = raw_pod("c", 11).replace(b"{", b"{\r\n ").replace(b"uid-c", b"a\\nb")
    async with feed_of(5.0, WatchEvent("ADDED", pretty)) as feed:
        request = Request(ChangeStream(feed))
        await asyncio.sleep(10)
        assert request.events[4:] == ["ADDED default/c"]
        await request.end()


async def test_2000_slow_subscribers_cost_the_informer_nothing() -> None:
    """None of them reads. The handler keeps up, and memory grows by the history alone."""
    count, changes = 2000, 5000
    watch: list[Any] = [0.5]
    for start in range(11, 11 + changes, 100):
        watch += [[modified("a", version, text="x" * 1000) for version in range(start, start + 100)], 0.001]
    server = Scripted([page(raw_pod("a", 1), version=10)], [[*watch, FOREVER]])
    subject = SharedIndexInformer(server, KubeObject, random=NoJitter())
    async with subject, ChangeFeed(subject, 100) as feed:
        await subject.wait_synced()
        stream = ChangeStream(feed)
        requests = [Request(stream, reads=False) for _ in range(count)]
        await asyncio.sleep(0)
        tracemalloc.start()
        try:
            async with asyncio.timeout(60):
                while feed.history.last < changes:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert subject.state.handlers[0].depth == 0
        assert all(len(request.sent) <= 2 for request in requests)
        assert grown < 10 * 2**20, "each pins nothing but what it is sending"
        values = {sample.name: sample.value for sample in feed.samples()}
        assert values["aioinformer_feed_changes"] == 100
        requests[0].read_all()
        async with asyncio.timeout(20):
            while "SYNCED" not in requests[0].events:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert f'"resourceVersion": "{10 + changes}"' in requests[0].body
        for request in requests:
            request.task.cancel()
        await asyncio.wait([request.task for request in requests])


@virtual_time
async def test_large_objects_are_sent_in_chunks() -> None:
    async with feed_of(
        5.0, *[added(f"c{number}", 20 + number, text="x" * 50_000) for number in range(20)]
    ) as feed:
        request = Request(ChangeStream(feed))
        await asyncio.sleep(20)
        assert len(request.events) == 24
        assert max(len(message.get("body", b"")) for message in request.sent) < 2**17
        await request.end()
