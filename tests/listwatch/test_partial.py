"""Metadata only: requested, and made from whole objects if the server sends those."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, KubeObject, ListOptions, ListWatch, WatchEvent
from aioinformer.listwatch.body import PIECE, ListBodySplitter
from aioinformer.listwatch.partial import PartialStream, partial_list, partial_object, read_partial
from aioinformer.objects.meta import NO_EVENT, PARTIAL_KIND

from .streams import EVENT, POD_LIST, begin, json_of, serve

POD = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"b":"}"}},"spec":{"x":1}}'
PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","labels":{"b":"}"}}}'
STATUS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"message":"etcdserver: no leader","code":500}'
OTHER_LAYOUT = b'{"metadata": {"name": "a"}, "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}'


@pytest.mark.parametrize(
    ("raw", "reduced"),
    [
        (POD, PARTIAL),
        (PARTIAL, PARTIAL),
        (OTHER_LAYOUT, OTHER_LAYOUT),
        (b'{"metadata":{"name":"a"},"kind":null}', b'%s{"name":"a"}}' % PARTIAL[: PARTIAL.index(b'{"name"')]),
        (b'{"spec":{}}', b'{"spec":{}}'),
        (b"{", b"{"),
        (b"[]", b"[]"),
    ],
)
def test_objects_are_reduced_and_other_bytes_are_kept(raw: bytes, reduced: bytes) -> None:
    assert partial_object(raw) == reduced


async def test_line_without_an_event_is_not_reduced() -> None:
    async def events() -> AsyncIterator[list[WatchEvent]]:
        yield [WatchEvent(NO_EVENT, STATUS), WatchEvent("ADDED", POD)]

    stream = PartialStream(events())
    assert await anext(stream) == [WatchEvent(NO_EVENT, STATUS), WatchEvent("ADDED", PARTIAL)]


def test_reduced_object_has_only_metadata() -> None:
    whole = json.loads(POD)
    assert KubeObject.from_bytes(partial_object(POD)).to_dict() == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": whole["metadata"],
    }


@pytest.mark.parametrize("kind", ["Pod", PARTIAL_KIND])
def test_items_read_by_the_splitter_are_reduced(kind: str) -> None:
    """Of a list that is longer than one piece."""
    spec = {} if kind == PARTIAL_KIND else {"spec": {"x": "x" * 1000}}
    items = [{"metadata": {"name": str(number)}, **spec} for number in range(600)]
    listed = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items}
    body = json.dumps(listed, separators=(",", ":")).removesuffix("]}")
    splitter = ListBodySplitter(read_item=read_partial(KubeObject.from_bytes))
    whole = splitter.feed(body.encode() + b" " * PIECE)
    assert whole is not None
    read = [item for item in partial_list(whole).items if isinstance(item, KubeObject)]
    assert len(read) >= 598
    assert not any("spec" in obj for obj in read)
    assert {obj.kind for obj in read} == {PARTIAL_KIND}


async def test_request_asks_for_metadata(library: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(POD_LIST)

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        await ListWatch.for_resource(client, "v1", "pods").list()
        list_watch = ListWatch.for_resource(client, "v1", "pods", "red", metadata_only=True)
        await list_watch.list()
        stream: Any = await list_watch.watch(ListOptions())
        await stream.aclose()
        assert [request.headers.getall("Accept") for request in server.requests] == [
            ["application/json"],
            ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"],
            ["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"],
        ]
        assert str(list_watch) == "<ResourceListWatch metadata of pods in red>"


async def test_whole_objects_of_a_server_without_metadata_are_reduced() -> None:
    """The cache has only their metadata."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return json_of(
                '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
                '{"metadata":{"name":"a"},"spec":{"x":1}},{"metadata":{"name":"b"},"status":{}}]}'
            )
        response = await begin(request)
        await response.write(EVENT)
        await response.write(b'{"type":"ERROR","object":{"kind":"Status","code":410,"metadata":{}}}\n')
        return response

    async with serve(answer) as server, Client.from_url(server.url) as client:
        list_watch = ListWatch.for_resource(client, "v1", "pods", metadata_only=True)
        listed = await list_watch.list()
        assert [KubeObject.from_bytes(item).to_dict() for item in listed.items] == [
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": name}}
            for name in "ab"
        ]
        stream: Any = await list_watch.watch(ListOptions())
        events = [event async for batch in stream for event in batch]
        await stream.aclose()
        assert [event.type for event in events] == ["ADDED", "ERROR"]
        assert KubeObject.from_bytes(events[0].object).kind == "PartialObjectMetadata"
        assert events[1].object["code"] == 410
