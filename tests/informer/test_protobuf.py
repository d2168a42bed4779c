"""Informers that ask a server for protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, ConfigError, KubeObject, ListWatch, SharedIndexInformer, SharedInformerFactory
from aioinformer.objects.packing import unpack
from aioinformer.objects.protobuf import ProtobufForm

from ..listwatch.streams import FakeServer, serve
from ..listwatch.test_frames import event, frame
from ..listwatch.test_protobuf_body import list_of
from ..objects.protobuf.samples import WHOLE, WHOLE_JSON, pod_protobuf
from ..samples import SMALL
from ..steps import until
from .handlers import Follower

PROTOBUF = "application/vnd.kubernetes.protobuf"
BAD = pod_protobuf("bad", "ns", "5") + b"\x1a\x05"


class Pods:
    """A server of pods.

    Args:
        items: The pods of its list.
        has_protobuf: Whether it supports protobuf.
    """

    def __init__(self, *items: bytes, has_protobuf: bool = True) -> None:
        self.items = items
        self.has_protobuf = has_protobuf
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.accepted: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.accepted.append(request.headers["Accept"])
        if not self.has_protobuf:
            item = {"metadata": {**WHOLE_JSON["metadata"]}, **WHOLE_JSON}
            body = {
                "kind": "PodList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "12"},
                "items": [item],
            }
            return web.json_response(body if "watch" not in request.query else None)
        if "watch" not in request.query:
            return web.Response(body=list_of(*self.items), content_type=PROTOBUF)
        response = web.StreamResponse(headers={"Content-Type": f"{PROTOBUF};stream=watch"})
        await response.prepare(request)
        while chunk := await self.events.get():
            await response.write(chunk)
        self.events.put_nowait(b"")  # for other watches
        return response


@asynccontextmanager
async def run_informer(
    pods: Pods, handler: Any = None, **options: Any
) -> AsyncIterator[SharedIndexInformer[KubeObject]]:
    """Run an informer of these pods, and yield it once it has synced."""
    server: FakeServer
    async with serve(pods) as server, Client.from_url(server.url) as client:
        list_watch = ListWatch.for_resource(client, "v1", "pods", protobuf=True)
        informer = SharedIndexInformer(list_watch, KubeObject, use_watch_list=False, **options)
        if handler is not None:
            informer.add_event_handler(handler)
        async with informer:
            await informer.wait_synced(timeout=30)
            yield informer
            pods.events.put_nowait(b"")  # ends the watches


async def test_objects_are_stored_as_protobuf() -> None:
    pods, follower = Pods(pod_protobuf("a"), WHOLE), Follower()
    async with run_informer(
        pods, follower, indexers={"node": "spec.nodeName", "app": "metadata.labels['app']"}
    ) as informer:
        assert informer.indexer.by_index("node", "node-1") == informer.indexer.by_index("app", "web")
        assert [pod.name for pod in informer.lister.list("app=web")] == ["web-1"]
        pods.events.put_nowait(
            event("MODIFIED", pod_protobuf("a", "ns", "20")) + event("ADDED", pod_protobuf("b", "ns", "21"))
        )
        pods.events.put_nowait(event("DELETED", pod_protobuf("a", "ns", "22")))
        await until(lambda: follower.copy == {"default/web-1": "42", "ns/b": "21"})
        assert follower.wrong == []
        assert informer.store.get_by_key("default/web-1") == {"kind": "Pod", "apiVersion": "v1", **WHOLE_JSON}
        assert all(isinstance(obj._form, ProtobufForm) for obj in informer.store.list())
        assert informer.last_sync_resource_version == "22"
    assert pods.accepted == [f"{PROTOBUF},application/json"] * 2


async def test_bookmarks_set_the_version() -> None:
    pods = Pods(pod_protobuf("a"))
    async with run_informer(pods) as informer:
        pods.events.put_nowait(event("BOOKMARK", pod_protobuf("", "", "77")))
        await until(lambda: informer.last_sync_resource_version == "77")


@pytest.mark.parametrize("drops", [False, True])
async def test_objects_can_be_compressed_without_managed_fields(drops: bool) -> None:
    pods = Pods(*(pod_protobuf(f"a{number}") for number in range(20)), WHOLE)
    async with run_informer(pods, compress=SMALL, drop_managed_fields=drops) as informer:
        pods.events.put_nowait(event("MODIFIED", WHOLE.replace(b"42", b"43", 1)))
        await until(lambda: informer.last_sync_resource_version == "43")
        obj = informer.store.get_by_key("default/web-1")
        assert obj is not None
        plain = unpack(obj)
        assert isinstance(plain._form, ProtobufForm)
        assert plain is not obj
        assert (b"kubelet" in plain._kept, "managedFields" in obj["metadata"]) == (not drops, not drops)
        assert obj["spec"] == WHOLE_JSON["spec"]


async def test_invalid_objects_do_not_stop_others() -> None:
    pods, follower = Pods(pod_protobuf("a"), BAD), Follower()
    async with run_informer(pods, follower) as informer:
        pods.events.put_nowait(
            event("MODIFIED", BAD) + frame(b"noise") + event("ADDED", pod_protobuf("b", "ns", "9"))
        )
        await until(lambda: "add b 9" in follower.calls)
        assert informer.state.reflectors[0].rejected == 3
        assert set(follower.copy) == {"ns/a", "ns/b"}


async def test_server_without_protobuf_answers_in_json() -> None:
    pods = Pods(has_protobuf=False)
    async with run_informer(pods) as informer:
        [obj] = informer.store.list()
        assert obj == {"kind": "Pod", "apiVersion": "v1", **WHOLE_JSON}
        assert not isinstance(obj._form, ProtobufForm)


def test_protobuf_needs_kube_objects() -> None:
    class Mine(KubeObject, frozen=True):
        pass

    factory = SharedInformerFactory(Client.from_url("http://127.0.0.1:1"))
    with pytest.raises(
        ConfigError, match="protobuf works with KubeObjects only: <class 'dict'> is read from JSON"
    ):
        factory.for_resource("v1", "pods", dict, protobuf=True)
    plain, asked = factory.for_resource("v1", "pods"), factory.for_resource("v1", "pods", protobuf=True)
    assert plain is not asked
    assert factory.for_resource("v1", "pods", protobuf=True) is asked
    assert factory.for_resource("v1", "pods", Mine, protobuf=True) not in (plain, asked)
