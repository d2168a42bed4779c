"""Whatever a request is waiting for, cancelling it leaves nothing behind.

That tasks, open files and unclosed sessions are gone is seen by the fixture that every async test has.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, ListOptions, ListWatch
from aioinformer.client.exec_plugin import run_exec_plugin
from aioinformer.errors import ClientClosedError

from ..client.clusters import (
    UNAUTHORIZED,
    Authority,
    Plugin,
    write_kubeconfig,
)
from .streams import EVENT, POD_LIST, begin, json_of, serve


async def cancel_after(turns: int, work: Awaitable[Any]) -> bool:
    """Cancel this after so many event loop iterations; return whether it was still running."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
        if task.done():
            break
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return task.cancelled()


async def cancel_everywhere(work: Callable[[], Awaitable[Any]]) -> int:
    """Cancel this after one event loop iteration, then after more, until it ends first; return how often."""
    turns = count = 0
    while await cancel_after(turns, work()):
        turns += 1 + turns // 8  # while a thread works the loop turns without end
        count += 1
    return count


def assert_at_rest(client: Client) -> None:
    transport: Any = client.transport
    assert transport._loading is None or transport._loading.done()
    if transport._opened is not None:
        sessions = transport._opened.sessions
        assert sessions._requests == 0
        assert not sessions._responses
        for session in sessions._by_kind.values():
            assert not session.connector._acquired


@pytest.mark.parametrize("tls", [False, True])
async def test_requests(library: str, tmp_path: Path, tls: bool) -> None:
    authority = Authority()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer right":
            return json_of(UNAUTHORIZED, 401)
        answer = await begin(request)
        if "watch" in request.query:
            await answer.write(EVENT[:10])
            await asyncio.sleep(0)
            await answer.write(EVENT[10:])
        else:
            await answer.write(POD_LIST[:50].encode())
            await asyncio.sleep(0)
            await answer.write(POD_LIST[50:].encode())
        return answer

    async with serve(answer, authority.server_context() if tls else None) as server:
        token = tmp_path / "token"
        path = write_kubeconfig(
            tmp_path / "config", server.url, {"tokenFile": str(token)}, ca=authority.pem if tls else None
        )

        async def work() -> None:
            token.write_text("wrong")
            async with Client.from_kubeconfig(path=path, library=library) as client:
                clients.append(client)
                pods = ListWatch.for_resource(client, "v1", "pods")
                token.write_text("right")
                await pods.list()
                stream: Any = await pods.watch(ListOptions())
                try:
                    async for _ in stream:
                        pass
                finally:
                    await stream.aclose()

        clients: list[Client] = []
        assert await cancel_everywhere(work) > 10
        for client in clients:
            assert_at_rest(client)


async def test_cancelled_requests_of_an_open_client(library: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return json_of(POD_LIST)
        opened = await begin(request)
        await opened.write(EVENT)
        return opened

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        pods = ListWatch.for_resource(client, "v1", "pods")

        async def read() -> None:
            await pods.list()

        async def watch() -> None:
            stream: Any = await pods.watch(ListOptions())
            try:
                async for _ in stream:
                    pass
            finally:
                await stream.aclose()

        assert await cancel_everywhere(read) > 3
        assert await cancel_everywhere(watch) > 3
        assert_at_rest(client)
        await read()
        await watch()


async def test_cancelled_renewal_does_not_stop_other_requests(library: str, tmp_path: Path) -> None:
    """The renewal goes on: otherwise each request with a short timeout would start it again in vain."""
    plugin = Plugin(tmp_path)
    plugin.says("wait")

    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(POD_LIST)

    async with serve(answer) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        client = Client.from_kubeconfig(path=path, library=library)
        first = asyncio.ensure_future(client.get("/api"))
        await plugin.hangs(first)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        second = asyncio.ensure_future(client.get("/api"))
        await asyncio.sleep(0)
        plugin.gives(token="secret")
        assert await second == POD_LIST.encode()
        assert len(plugin.runs) == 1
        assert_at_rest(client)
        await client.close()


async def test_background_loads_end_with_the_client(library: str, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.says("hang")
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", plugin.user())
    client = Client.from_kubeconfig(path=path, library=library)
    first, second = (asyncio.ensure_future(client.get("/api")) for _ in range(2))
    process = await plugin.hangs(first)
    first.cancel()
    await asyncio.wait([first])
    os.kill(process, 0)
    await client.close()
    assert_at_rest(client)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(ClientClosedError):
        await second


async def test_cancelled_plugin_at_every_moment(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="secret")

    async def work() -> None:
        await run_exec_plugin(plugin.user()["exec"], str(tmp_path), {})

    assert await cancel_everywhere(work) > 10


async def test_a_cancelled_plugin_leaves_no_process(library: str, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.says("hang")
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", plugin.user())
    client = Client.from_kubeconfig(path=path, library=library)
    task = asyncio.ensure_future(client.open())
    process = await plugin.hangs(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_at_rest(client)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)  # not even a zombie is left
    await client.close()
