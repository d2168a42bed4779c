from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer import ApiError, Client, ConfigError, ListOptions, ListWatch, Transport, TransportError
from aioinformer.cache import TypeMeta
from aioinformer.client import library_transport
from aioinformer.client.sessions import LONGEST_HEADER
from aioinformer.client.transport import Change
from aioinformer.errors import DecodeError, IdleTimeoutError
from aioinformer.objects.meta import NO_EVENT

from ..listwatch.streams import (
    EVENT,
    POD_LIST,
    Chunks,
    begin,
    json_of,
    serve,
)
from .clusters import write_kubeconfig


async def answer_pods(request: web.Request) -> web.StreamResponse:
    if "watch" not in request.query:
        return json_of(POD_LIST)
    answer = await begin(request)
    await answer.write(EVENT * 2)
    return answer


async def test_lists_and_watches(library: str) -> None:
    async with (
        serve(answer_pods) as server,
        Client.from_url(server.url + "/", token="secret\n", library=library) as client,
    ):
        assert client.server == server.url
        pods = ListWatch.for_resource(client, "v1", "pods", "default", label_selector="app in (a, b)")
        assert pods.watch_list_semantics
        listed = await pods.list(ListOptions(resource_version="0", limit=500))
        assert listed.items == [b'{"metadata":{"name":"a","namespace":"default"}}']
        assert (listed.resource_version, listed.type_meta) == ("7", TypeMeta("v1", "Pod"))
        stream: Any = await pods.watch(ListOptions(resource_version="7", allow_watch_bookmarks=True))
        assert [event.type async for batch in stream for event in batch] == ["ADDED", "ADDED"]
        await stream.aclose()
    first, second = server.requests
    assert first.path == "/api/v1/namespaces/default/pods"
    assert dict(first.query) == {"resourceVersion": "0", "limit": "500", "labelSelector": "app in (a, b)"}
    assert dict(second.query) == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "labelSelector": "app in (a, b)",
    }
    for request in server.requests:
        assert request.headers["Authorization"] == "Bearer secret"
        assert request.headers["Accept"] == "application/json"
        assert request.headers["Accept-Encoding"] == "identity"
        assert request.headers["User-Agent"].startswith("aioinformer")


def test_a_url_is_no_transport() -> None:
    given: Any = "http://127.0.0.1:8001"
    with pytest.raises(ConfigError, match=r"got 'http://127\.0\.0\.1:8001': use Client\.from_url\(…\)"):
        Client(given)


async def test_first_request_opens_the_client(library: str) -> None:
    async with serve(answer_pods) as server:
        client = Client.from_url(server.url, library=library)
        assert client.server == ""
        assert (await client.get_json("/api/v1/pods", [("limit", "1")]))["kind"] == "PodList"
        assert client.namespace == "default"
        await client.close()
        await client.close()
        with pytest.raises(ConfigError, match=r"closed"):
            await client.get("/api/v1/pods")
        async with client:
            assert await client.get("/api/v1/pods") == POD_LIST.encode()
        assert "Authorization" not in server.requests[0].headers


async def test_concurrent_first_requests_open_the_client_once(library: str) -> None:
    async with serve(answer_pods) as server:
        client = Client.from_url(server.url, library=library)
        bodies = await asyncio.gather(*(client.get("/api/v1/pods") for _ in range(20)))
        assert set(bodies) == {POD_LIST.encode()}
        await client.close()


@pytest.mark.parametrize(
    ("status", "body", "headers", "reason", "message", "retry_after"),
    [
        (
            404,
            '{"kind":"Status","code":404,"reason":"NotFound","message":"pods not found"}',
            {},
            "NotFound",
            "pods not found",
            None,
        ),
        (
            429,
            "Too many requests, please try again later.",
            {"Retry-After": "1"},
            "TooManyRequests",
            "Too many",
            1.0,
        ),
        (
            500,
            '{"kind":"Status","reason":"InternalError","message":"etcd"}',
            {},
            "InternalError",
            "etcd",
            None,
        ),
        (502, "<html><h1>502 Bad Gateway</h1></html>", {}, "", "502 Bad Gateway", None),
        (403, "", {}, "Forbidden", "", None),
    ],
)
async def test_failures_of_the_server_are_api_errors(
    library: str,
    status: int,
    body: str,
    headers: dict[str, str],
    reason: str,
    message: str,
    retry_after: float | None,
) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        return json_of(body, status, headers)

    async with serve(fail) as server, Client.from_url(server.url, library=library) as client:
        pods = ListWatch.for_resource(client, "apps/v1", "deployments", "default")
        for verb, ask in (("list", pods.list), ("watch", pods.watch)):
            with pytest.raises(ApiError) as caught:
                await ask(ListOptions(resource_version="5"))
            error = caught.value
            assert (error.status, error.reason, error.retry_after) == (status, reason, retry_after)
            assert error.message.startswith(message)
            assert error.context == f"{verb} deployments.apps in default at resourceVersion 5"
        with pytest.raises(ApiError, match=r"^get /version: "):
            await client.get_json("/version")


async def test_a_refused_connection(library: str) -> None:
    async with serve(answer_pods) as server:
        url = server.url
    async with Client.from_url(url, library=library) as client:
        with pytest.raises(TransportError, match=rf"^list pods: {url}: cannot connect: ") as caught:
            await ListWatch.for_resource(client, "v1", "pods").list()
        assert isinstance(caught.value.__cause__, OSError)


async def test_https_to_a_plain_http_server(library: str) -> None:
    async with (
        serve(answer_pods) as server,
        Client.from_url(server.url.replace("http:", "https:"), library=library) as client,
    ):
        with pytest.raises(TransportError, match=r"does not speak TLS; should the URL begin with http://\?$"):
            await ListWatch.for_resource(client, "v1", "pods").list()


async def test_an_answer_that_is_no_json(library: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        assert await client.get("/healthz") == b"ok"
        with pytest.raises(DecodeError, match=r"get /healthz: the response is not JSON"):
            await client.get_json("/healthz")
        with pytest.raises(DecodeError, match=r"list pods: the answer is not a list"):
            await ListWatch.for_resource(client, "v1", "pods").list()


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_page_cut_in_the_middle(library: str, framing: str) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Length": "100000"} if framing == "length" else {}
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        await answer.write(POD_LIST[:-20].encode())
        assert request.transport is not None
        request.transport.close()
        return answer

    async with serve(cut) as server, Client.from_url(server.url, library=library) as client:
        pods = ListWatch.for_resource(client, "v1", "pods", "default")
        with pytest.raises(TransportError, match=r"^list pods in default: the response broke off"):
            await pods.list()
        with pytest.raises(TransportError, match=r"broke off"):
            await client.get("/api/v1/pods")


async def test_a_page_that_ends_too_early(library: str) -> None:
    async def end(request: web.Request) -> web.StreamResponse:
        return json_of(POD_LIST[:-20])

    async with serve(end) as server, Client.from_url(server.url, library=library) as client:
        with pytest.raises(TransportError, match=r"list pods: the answer breaks off after"):
            await ListWatch.for_resource(client, "v1", "pods").list()


async def test_a_watch_cut_inside_a_line(library: str) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        answer = await begin(request)
        await answer.write(EVENT + b"junk\n" + EVENT[:20])
        return answer

    async with serve(cut) as server, Client.from_url(server.url, library=library) as client:
        pods = ListWatch.for_resource(client, "v1", "pods")
        stream: Any = await pods.watch(ListOptions(resource_version="5"))
        assert [event.type for event in await anext(stream)] == ["ADDED", NO_EVENT]
        with pytest.raises(
            TransportError,
            match=r"^watch pods at resourceVersion 5: the stream was cut in the middle of a line",
        ):
            await anext(stream)
        await stream.aclose()


async def test_a_line_of_megabytes(library: str) -> None:
    line = EVENT.replace(b'"name"', b'"x":"%s","name"' % (b"x" * 8_000_000))
    size = len(line) - len(b'{"type":"ADDED","object":}\n')

    async def answer_large(request: web.Request) -> web.StreamResponse:
        answer = await begin(request)
        await answer.write(EVENT + line + EVENT)
        return answer

    async with serve(answer_large) as server, Client.from_url(server.url, library=library) as client:
        stream: Any = await ListWatch.for_resource(client, "v1", "pods").watch(ListOptions())
        sizes = [len(event.object) async for batch in stream for event in batch]
        assert sizes[1] == size
        await stream.aclose()


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://portal:99999/", "the server redirects to an unusable URL: http://portal:99999/"),
        ("ftp://a/b", "the server redirects to an unusable URL: ftp://a/b"),
        ("ftp://ada:secret@a/b", "the server redirects to an unusable URL: ftp://a/b"),
        ("/api", "the server redirects too many times, the last time from http://127.*/api$"),
    ],
)
async def test_unusable_redirects_are_transport_errors(library: str, location: str, message: str) -> None:
    """A portal in front of the server may redirect for a while, so these are TransportErrors."""

    async def redirect(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": location})

    async with serve(redirect) as server, Client.from_url(server.url, library=library) as client:
        for ask in (client.get, client.stream):
            with pytest.raises(TransportError, match=rf"^{server.url}: {message}") as caught:
                await ask("/api")
            assert "secret" not in "".join(traceback.format_exception(caught.value))


async def test_a_proxy_that_refuses(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No error contains the proxy's password."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(status=407)

    async with serve(refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ada:secret@"))
        async with Client.from_url("https://api.example.com", library=library) as client:
            by = rf"requests go through the proxy {proxy.url} from the environment"
            said = rf"the proxy refused to connect: 407 Proxy Authentication Required; {by}$"
            with pytest.raises(TransportError, match=said) as caught:
                await client.get("/api")
    assert "secret" not in "".join(traceback.format_exception(caught.value))


async def test_silence_is_an_idle_timeout(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def fall_silent(request: web.Request) -> web.StreamResponse:
        answer = await begin(request)
        await answer.write(EVENT)
        await over.wait()
        return answer

    async with serve(fall_silent) as server, Client.from_url(server.url, library=library) as client:
        stream = await client.stream("/api/v1/pods", idle_timeout=0.05)
        assert await anext(stream) == EVENT
        with pytest.raises(IdleTimeoutError, match=r"fell silent"):
            await anext(stream)
        await stream.aclose()
        with pytest.raises(IdleTimeoutError):
            await client.get("/api/v1/pods", timeout=0.5)
        over.set()


async def test_an_answer_that_never_begins(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def say_nothing(request: web.Request) -> web.StreamResponse:
        await over.wait()
        return web.Response()

    monkeypatch.setattr(library_transport, "READ_TIMEOUT", 0.5)
    async with serve(say_nothing) as server, Client.from_url(server.url, library=library) as client:
        with pytest.raises(TransportError, match=r"no answer within 0.5 seconds"):
            await client.stream("/api/v1/pods")
        with pytest.raises(TransportError, match=r"no answer within 0.5 seconds"):
            await client.get("/api/v1/pods", timeout=0.5)
        over.set()


async def test_a_proxy_that_is_not_there(library: str, tmp_path: Path) -> None:
    """The error says that the proxy is unreachable, not the server."""
    by: Any = {"proxy-url": "http://ada:secret@127.0.0.1:1"}
    path = write_kubeconfig(tmp_path / "config", "https://api.example.com", {"token": "t"}, **by)
    said = r"cannot connect to the proxy: .*; requests go through the proxy http://127\.0\.0\.1:1 from proxy-url$"
    async with Client.from_kubeconfig(path=path, library=library) as client:
        with pytest.raises(TransportError, match=said):
            await client.get("/api")


async def test_long_headers(library: str) -> None:
    """Authenticating proxies send them; their cookies are secret."""

    async def answer(request: web.Request) -> web.StreamResponse:
        size = LONGEST_HEADER if request.path == "/far" else 100_000
        return web.Response(text="{}", headers={"Set-Cookie": f"secret={'x' * size}"})

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        assert await client.get_json("/api") == {}
        with pytest.raises(TransportError, match=r"not valid HTTP \(LineTooLong\)"):
            await client.get("/far")


async def test_silent_proxy(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:{1}".format(*proxy.sockets[0].getsockname()))
        monkeypatch.setattr(library_transport, "READ_TIMEOUT", 0.3)
        async with asyncio.timeout(30), Client.from_url("https://api.example.com", library=library) as client:
            for ask in (client.get("/api", timeout=0.2), client.stream("/api")):
                with pytest.raises(
                    TransportError, match=r"no connection within 0\.[23] seconds; requests go through"
                ):
                    await ask
        over.set()


async def test_an_error_whose_body_never_ends(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def dawdle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=503)
        await answer.prepare(request)
        await answer.write(b"overloaded")
        await over.wait()
        return answer

    monkeypatch.setattr(library_transport, "READ_TIMEOUT", 1.0)
    async with serve(dawdle) as server, Client.from_url(server.url, library=library) as client:
        errors = await asyncio.gather(
            client.stream("/api"),
            client.get("/api", timeout=1),
            client.send(Change("POST"), "/api", timeout=1),
            return_exceptions=True,
        )
        over.set()
    assert [str(error) for error in errors] == ["503 ServiceUnavailable: overloaded"] * 3


async def test_watches_do_not_delay_calls(library: str) -> None:
    over = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return json_of(POD_LIST)
        answer = await begin(request)
        await answer.write(EVENT)
        await over.wait()
        return answer

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        pods = ListWatch.for_resource(client, "v1", "pods")
        streams: list[Any] = await asyncio.gather(*(pods.watch(ListOptions()) for _ in range(200)))
        await asyncio.gather(*(anext(stream) for stream in streams))
        assert await client.get("/api/v1/pods") == POD_LIST.encode()
        assert len((await pods.list()).items) == 1
        await asyncio.gather(*(stream.aclose() for stream in streams))
        over.set()


async def test_closing_ends_what_is_open(library: str) -> None:
    over = asyncio.Event()

    async def keep_open(request: web.Request) -> web.StreamResponse:
        answer = await begin(request)
        await answer.write(EVENT)
        await over.wait()
        return answer

    async with serve(keep_open) as server:
        async with Client.from_url(server.url, library=library) as client:
            stream = await client.stream("/api/v1/pods")
            assert await anext(stream) == EVENT
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
        with pytest.raises(TransportError, match=r"broke off"):
            await waiting
        await stream.aclose()
        over.set()


async def test_closing_ends_requests_that_wait_for_an_answer(library: str) -> None:
    arrived, over = asyncio.Event(), asyncio.Event()

    async def say_nothing(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await over.wait()
        return web.Response()

    async with serve(say_nothing) as server:
        async with Client.from_url(server.url, library=library) as client:
            waiting = asyncio.ensure_future(client.get("/api/v1/pods"))
            await arrived.wait()
        with pytest.raises(TransportError):
            await waiting
        over.set()


async def test_client_reconnects_after_a_server_restart(library: str) -> None:
    async with serve(answer_pods) as server, Client.from_url(server.url, library=library) as client:
        for _ in range(3):
            await client.get("/api/v1/pods")
        connections = {request.transport for request in server.requests}
        assert len(connections) == 1


async def test_credentials_in_netrc_are_not_sent(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with serve(answer_pods) as server, Client.from_url(server.url, library=library) as client:
        await client.get("/api/v1/pods")
        assert "Authorization" not in server.requests[0].headers


async def test_cookies_are_not_kept(library: str) -> None:
    """If a proxy sets a new cookie in each response, requests would grow too large for it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of("{}", headers={"Set-Cookie": f"number-{len(server.requests)}=1; Path=/"})

    async with serve(answer) as server:
        url = server.url.replace("127.0.0.1", "localhost")  # an address has no cookies
        async with Client.from_url(url, library=library) as client:
            for _ in range(2):
                await client.get("/api")
        assert ["Cookie" in request.headers for request in server.requests] == [False, False]


async def test_a_proxy_of_the_environment_is_used(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(answer_pods) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "excepted.example.com")
        async with Client.from_url("http://api.example.com", library=library) as client:
            assert await client.get("/api/v1/pods") == POD_LIST.encode()
        assert proxy.requests[0].headers["Host"] == "api.example.com"


async def test_proxy_of_an_unsupported_kind(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://localhost:1080")
    with pytest.raises(ConfigError, match=r"only http and https proxies"):
        await Client.from_url("http://api.example.com", library=library).open()


async def test_sockets_notice_the_death_of_their_peer(library: str) -> None:
    import socket

    over = asyncio.Event()

    async def keep_open(request: web.Request) -> web.StreamResponse:
        answer = await begin(request)
        await over.wait()
        return answer

    async with serve(keep_open) as server, Client.from_url(server.url, library=library) as client:
        stream: Any = await client.stream("/api/v1/pods")
        sock = stream._response.connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 30
        await stream.aclose()
        over.set()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://x",
        "http://",
        "https:///path",
        "http://[::1",
        "http://a:99999",
        "http://\udcff",
        None,
        5,
    ],
)
def test_invalid_url_is_refused_at_once(url: Any) -> None:
    with pytest.raises(ConfigError, match=r"URL"):
        Client.from_url(url)


async def test_password_in_the_url_is_sent_and_not_shown(library: str) -> None:
    async with serve(answer_pods) as server:
        url = server.url.replace("//", "//ada:lovelace@")
        async with Client.from_url(url, library=library) as client:
            await client.get("/api")
            assert (client.server, repr(client)) == (server.url, f"<Client {server.url}>")
        assert server.tokens == ["Basic " + base64.b64encode(b"ada:lovelace").decode()]
    async with Client.from_url(url, library=library) as client:
        with pytest.raises(TransportError, match=rf"^{server.url}: cannot connect"):
            await client.get("/api")
    with pytest.raises(ConfigError, match="got 'ftp://x'"):
        Client.from_url("ftp://ada:lovelace@x")


@pytest.mark.parametrize("rest", ["/", "?pretty=1", "/?pretty=1", "#top", "//"])
async def test_query_and_fragment_of_the_url_are_not_used(rest: str, library: str) -> None:
    async with serve(answer_pods) as server, Client.from_url(server.url + rest, library=library) as client:
        assert await client.get("/api/v1/pods") == POD_LIST.encode()
        assert client.server == server.url


def test_unknown_libraries_and_clients_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"library must be one of"):
        Client.in_cluster(library="requests")
    with pytest.raises(ConfigError, match=r"expected a Client, or an ApiClient"):
        Client.of(object())
    with pytest.raises(ConfigError, match=r"got str$"):
        Client.wrap("http://x")
    with pytest.raises(ConfigError, match=r"plural"):
        ListWatch.for_resource(Client.from_url("http://x"), "v1", "Pod")


def test_synchronous_client_is_recognised() -> None:
    with pytest.raises(
        ConfigError, match=r"got kubernetes\.client\.api_client\.ApiClient, the synchronous one$"
    ):
        Client.of(pytest.importorskip("kubernetes.client").ApiClient())


async def test_custom_transport() -> None:
    class Canned:
        server, namespace = "test:", "default"

        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def get(self, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
            return b'{"path":"%s"}' % path.encode()

        async def send(self, change: Any, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
            return bytes(change.body)

        async def stream(
            self, path: str, query: Any = (), *, idle_timeout: float | None = None, accept: str = ""
        ) -> Chunks:
            return Chunks([POD_LIST.encode()])

    transport: Transport = Canned()
    async with Client(transport) as client:
        assert await client.get_json("/x") == {"path": "/x"}
        assert len((await ListWatch.for_resource(client, "v1", "pods").list()).items) == 1
        assert Client.of(client) is client
        assert repr(client) == "<Client test:>"


def test_nothing_is_loaded_before_the_first_use() -> None:
    code = """
import sys
from aioinformer import Client, ListWatch
for client in (Client.from_url("http://x"), Client.from_kubeconfig(), Client.in_cluster()):
    ListWatch.for_resource(client, "v1", "pods")
loaded = {"aiohttp", "kubernetes", "kubernetes_asyncio", "yaml", "email", "html"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("timeout", [-1, float("nan"), None])
async def test_invalid_timeouts_are_refused(timeout: Any) -> None:
    async with Client.from_url("http://127.0.0.1:1") as client:
        for ask in client.get, client.get_json, partial(client.send, Change("POST", b"{}")):
            with pytest.raises(ConfigError, match="timeout must be a number of seconds"):
                await ask("/", timeout=timeout)
