"""Start, stop, permissions, and recorded requests."""

from __future__ import annotations

import asyncio
import json
import ssl
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
import uvloop

from aioinformer.errors import WrongEventLoopError
from aioinformer.testing import APIServer, MissingExtraError

from .client import APIClient
from .test_watching import ALL, create, now


async def test_stopping_cuts_everything_and_leaves_no_task(http: aiohttp.ClientSession) -> None:
    before = asyncio.all_tasks()
    server = APIServer()
    await server.start()
    api = APIClient(http, server.url)
    async with api.watch(ALL, resourceVersion=now(server)) as lines, api.watch(ALL) as other:
        server.faults.freeze(verb="list")
        asking = asyncio.create_task(api.get(ALL))
        while not server.count("list"):
            await api.get("/version")
        await server.stop()
        assert asyncio.all_tasks() - before == {asking}
        with pytest.raises(aiohttp.ClientError):
            await asking
        for stream in (lines, other):
            with pytest.raises(aiohttp.ClientError):
                await stream.rest_raw()
    assert server.open_watches == 0
    await server.stop()


async def test_a_slow_reader_does_not_delay_the_end(http: aiohttp.ClientSession) -> None:
    async with APIServer() as server:
        for index in range(200):
            server.create(
                "v1", "configmaps", {"metadata": {"name": f"c{index}"}, "data": {"k": "x" * 100_000}}
            )
        response = await http.get(server.url + ALL)
        async with APIClient(http, server.url).watch(ALL) as lines:
            await lines.next()
        async with asyncio.timeout(5):
            await server.stop()
    response.close()


async def test_a_restart_keeps_port_and_objects(api: APIClient, server: APIServer) -> None:
    url = server.url
    create(server, "a")
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        await server.restart()
        with pytest.raises(aiohttp.ClientError):
            await lines.rest_raw()
    assert server.url == url
    assert [item["metadata"]["name"] for item in (await api.get(ALL)).body["items"]] == ["a"]


async def elsewhere(loop: str, call: Callable[[], object]) -> None:
    """Call a function in another thread, with or without an event loop there."""

    async def calling() -> None:
        call()

    await asyncio.to_thread(call if loop == "none" else lambda: asyncio.run(calling()))


@pytest.mark.parametrize("loop", ["none", "another"])
@pytest.mark.parametrize(
    "change",
    [
        lambda server: create(server, "b"),
        lambda server: server.update("v1", "configmaps", {"metadata": {"name": "a"}}),
        lambda server: server.patch("v1", "configmaps", "a", {"data": {"k": "2"}}),
        lambda server: server.delete("v1", "configmaps", "a"),
        lambda server: server.delete_collection("v1", "configmaps"),
        lambda server: server.forbid("watch"),
        lambda server: server.pause(),
        lambda server: server.resume(),
        lambda server: server.faults.fail(),
        lambda server: server.faults.freeze(),
        lambda server: server.faults.thaw(),
        lambda server: server.faults.drop_watches(),
        lambda server: server.faults.send_raw(b""),
        lambda server: server.faults.expire_history(),
        lambda server: server.faults.cut_connections(),
        lambda server: server.faults.refuse(),
        lambda server: server.faults.clear(),
    ],
)
async def test_writes_from_another_loop_or_thread_are_refused(
    change: Callable[[APIServer], object], loop: str
) -> None:
    server = APIServer()
    await elsewhere(loop, lambda: create(server, "a"))
    async with server:
        version = server.resource_version
        with pytest.raises(WrongEventLoopError, match=r"server runs in another event loop\. .*loop_scope"):
            await elsewhere(loop, lambda: change(server))
        assert server.resource_version == version
        assert await asyncio.to_thread(server.list, "v1", "configmaps")  # who only reads may
        assert await asyncio.to_thread(lambda: server.url)
    await elsewhere(loop, lambda: change(server))


def test_sync_code_in_the_servers_thread_can_write() -> None:
    """As sync fixtures of pytest-asyncio do, between runs of the loop."""
    with asyncio.Runner() as runner:
        server = APIServer()
        runner.run(server.start())
        create(server, "a")
        with pytest.raises(WrongEventLoopError):
            asyncio.run(server.stop())
        assert server.url

        async def read() -> str:
            return server.url

        with pytest.raises(WrongEventLoopError):
            asyncio.run(read())
        runner.run(server.stop())


def test_the_url_is_known_once_it_was_started() -> None:
    assert APIServer(port=6443).url == "http://127.0.0.1:6443"
    with pytest.raises(RuntimeError, match=r"no port yet: enter it \(async with\)"):
        _ = APIServer().url


async def test_a_server_starts_once() -> None:
    async with APIServer() as server:
        with pytest.raises(RuntimeError):
            await server.start()
        async with APIServer(port=0) as other:
            assert other.port != server.port


async def test_refuse_on_a_stopped_server_does_nothing() -> None:
    server = APIServer()
    server.faults.refuse()
    assert server.faults.cut_connections() == 0
    await server.faults.accept()
    assert server.port == 0
    async with server:
        assert server.port != 0


async def test_work_queued_before_start_is_done(http: aiohttp.ClientSession) -> None:
    server = APIServer()
    create(server, "a", "team")
    server.delete("v1", "namespaces", "team")
    async with server:
        assert (await APIClient(http, server.url).get("/api/v1/namespaces/team")).status == 404


async def test_tokens(http: aiohttp.ClientSession) -> None:
    async with APIServer(token="first") as server:
        api = APIClient(http, server.url)
        first, second = ({"Authorization": f"Bearer {token}"} for token in ("first", "second"))
        refused = await api.get(ALL)
        assert (refused.status, refused.body["message"]) == (401, "Unauthorized")
        assert "details" not in refused.body
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            assert (await api.get(path)).status == 200
            assert (await api.get(path, second)).status == 401
        assert (await api.get(ALL, first)).status == 200
        assert (await api.get(ALL, second)).status == 401
        assert (await api.get(ALL, {"Authorization": "Basic first"})).status == 401
        server.tokens.add("second")
        server.tokens.discard("first")
        assert (await api.get(ALL, first)).status == 401
        assert (await api.get(ALL, second)).status == 200
        assert server.token == "first"
        server.users["third"] = "ada"
        assert (await api.get(ALL, {"Authorization": "Bearer third"})).status == 200
        assert [request.user for request in server.requests][-2:] == ["embedded", "ada"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace '
            '"default"',
        ),
        (
            "/apis/apps/v1/deployments",
            'deployments.apps is forbidden: User "system:anonymous" cannot list resource "deployments" in API group '
            '"apps" at the cluster scope',
        ),
        ("/version", 'forbidden: User "system:anonymous" cannot get path "/version"'),
    ],
)
async def test_forbidden_requests_get_403(api: APIClient, server: APIServer, path: str, message: str) -> None:
    rule = server.forbid()
    refused = await api.get(path)
    assert (refused.status, refused.body["message"]) == (403, message)
    rule.remove()
    assert (await api.get(path)).status == 200


async def test_matching_limits_forbidden_requests(api: APIClient, server: APIServer) -> None:
    server.forbid("watch", "pods")
    assert (await api.get("/api/v1/pods")).status == 200
    assert (await api.get("/api/v1/pods", watch="1")).status == 403
    async with api.watch("/api/v1/secrets") as lines:
        assert lines.status == 200
    server.forbid("update", "pods")
    path = "/api/v1/namespaces/default/pods/a/status"
    assert 'cannot update resource "pods/status"' in (await api.put(path, {})).body["message"]


async def test_requests_are_recorded(api: APIClient, server: APIServer) -> None:
    await api.get(ALL, limit="5", labelSelector="a=b")
    await api.get("/apis/apps/v1/namespaces/default/deployments/web/scale")
    await api.get("/version")
    listing, scale, version = server.requests
    assert (listing.verb, listing.resource, listing.status) == ("list", "configmaps", 200)
    assert dict(listing.query) == {"limit": "5", "labelSelector": "a=b"}
    assert (scale.group, scale.namespace, scale.name, scale.subresource) == (
        "apps",
        "default",
        "web",
        "scale",
    )
    assert (scale.verb, scale.status) == ("get", 404)
    assert scale.about("deployments.apps")
    assert scale.about("deployments")
    assert not scale.about("deployments.batch")
    assert (version.verb, version.resource, version.path) == ("get", "", "/version")
    assert server.count() == 3
    assert server.count("get") == 2
    assert server.count("list", "configmaps") == server.count(resource="configmaps") == 1


async def test_tls(http: aiohttp.ClientSession) -> None:
    async with APIServer(tls=True, token="t") as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert server.ca_pem is not None
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await http.get(server.url)
        context = ssl.create_default_context(cadata=server.ca_pem.decode())
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), headers={"Authorization": "Bearer t"}
        ) as trusting:
            api = APIClient(trusting, server.url)
            create(server, "a")
            async with api.watch(ALL) as lines:
                await lines.take(1)
                server.faults.drop_watches(mid_line=True)
                with pytest.raises(aiohttp.ClientError):
                    await lines.rest_raw()
            await server.restart()
            assert (await api.get(ALL)).status == 200


async def test_connection_whose_handshake_ends_after_the_stop_is_closed() -> None:
    async with APIServer(tls=True, token="t") as server:
        assert server.ca_pem is not None
        context = ssl.create_default_context(cadata=server.ca_pem.decode())
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        _, other = await asyncio.open_connection("127.0.0.1", port, ssl=context)  # both have been accepted
        other.close()
        await other.wait_closed()
    await writer.start_tls(context, server_hostname="127.0.0.1")
    assert await reader.read() == b""
    writer.close()


async def test_a_kubeconfig(tmp_path: Path) -> None:
    async with APIServer(tls=True, token="secret") as server:
        path = tmp_path / "config"
        config = server.kubeconfig(path)
        assert json.loads(path.read_text()) == config
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert config["clusters"][0]["cluster"]["server"] == server.url
        assert "certificate-authority-data" in config["clusters"][0]["cluster"]
        assert config["users"][0]["user"] == {"token": "secret"}
    async with APIServer(tls=True) as open_to_all:
        assert "token" in open_to_all.kubeconfig()["users"][0]["user"]  # or kubectl asks for a name
    async with APIServer() as plain:
        assert plain.kubeconfig()["users"][0]["user"] == {}
        assert plain.ca_pem is None


def test_tls_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(MissingExtraError, match=r"trustme.*pip install .aioinformer\[testing\]"):
        APIServer(tls=True)


def test_everything_on_uvloop() -> None:
    async def exercise() -> None:
        async with APIServer() as server, aiohttp.ClientSession() as session:
            api = APIClient(session, server.url)
            async with api.watch(ALL, resourceVersion=now(server)) as lines:
                create(server, "a")
                assert await lines.take(1) == [("ADDED", "a")]
                create(server, "b")
                server.faults.drop_watches(mid_line=True)
                with pytest.raises(aiohttp.ClientPayloadError):
                    await lines.rest_raw()
            server.faults.refuse(cut=True)
            with pytest.raises(aiohttp.ClientError):
                await api.get(ALL)
            await server.faults.accept()
            await server.restart()
            assert (await api.get(ALL)).status == 200
            async with api.watch(ALL) as lines:
                await server.stop()
                with pytest.raises(aiohttp.ClientError):
                    await lines.rest_raw()
        assert len(asyncio.all_tasks()) == 1

    uvloop.run(exercise())
