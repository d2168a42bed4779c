"""ASGI applications: a stream of changes, and probes. They work in Starlette, FastAPI, Litestar and others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from .._core.tasks import run_until_first
from ..errors import AioInformerError, SelectorError
from .streams import HEADERS, Streams
from .subscription import Subscription

if TYPE_CHECKING:
    from .service import WebInformers

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

TEXT: Headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]

_HEADERS: Headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

BAD_DATA, GOING_AWAY, TRY_AGAIN = 1008, 1001, 1013
"""Codes that close a WebSocket."""


class ChangeStream(Streams[T]):
    """An ASGI application that streams a feed to browsers: server-sent events, or a WebSocket.

        app.router.routes.append(Route("/pods/events", ChangeStream(pods)))

    To choose objects by request, create it in the route: for Starlette and FastAPI as a ``ChangeStreamResponse`` of
    ``aioinformer.web.starlette``; for a WebSocket, ``await ChangeStream(pods)(ws.scope, ws.receive, ws.send)``.

    Arguments are as for Streams. An invalid selector in a request gets 400, a WebSocket is closed with 1008.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket, until the client disconnects or the feed ends."""
        answer = self._answer_websocket if scope["type"] == "websocket" else self._answer_http
        await answer(scope, receive, send)

    async def _answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, "use GET", [*TEXT, (b"allow", b"GET, HEAD")])
            return
        try:
            subscription = self._subscribed(scope)
        except AioInformerError as error:
            await respond(send, 400 if isinstance(error, SelectorError) else 503, str(error))
            return
        await send({"type": "http.response.start", "status": 200, "headers": list(self.response_headers())})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
            return
        await _until_disconnected(partial(self._send_events, subscription, send), receive, "http.disconnect")

    async def _send_events(self, subscription: Subscription[T], send: Send) -> None:
        async with aclosing(self.server_sent_events(subscription)) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body"})

    async def _answer_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return
        await send({"type": "websocket.accept"})
        try:
            subscription = self._subscribed(scope)
        except AioInformerError as error:
            await _close(send, BAD_DATA if isinstance(error, SelectorError) else TRY_AGAIN, str(error))
            return
        await _until_disconnected(
            partial(self._send_messages, subscription, send), receive, "websocket.disconnect"
        )

    async def _send_messages(self, subscription: Subscription[T], send: Send) -> None:
        async with aclosing(self.messages(subscription)) as texts:
            async for text in texts:
                await send({"type": "websocket.send", "text": text})
        await _close(send, GOING_AWAY, "the feed has ended")

    def response_headers(self) -> Headers:
        """Return the headers of the response."""
        return _HEADERS

    def _subscribed(self, scope: Scope) -> Subscription[T]:
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        headers: dict[bytes, bytes] = dict(scope["headers"])
        return self.subscribe(query, headers.get(b"last-event-id", b"").decode("latin-1"))


class Probes:
    """An ASGI application that answers ``/readyz``, ``/livez`` and ``/metrics``, whatever its path begins with.

    Ready: every informer has synced and none is out of date. Alive: no watch is stalled, and no informer has ended.

    Args:
        informers: What to report.
    """

    def __init__(self, informers: WebInformers) -> None:
        self._informers = informers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await _close(send, BAD_DATA, "use HTTP")
            return
        accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
        name = scope["path"].rstrip("/").rpartition("/")[2]
        status, body, content_type = self._informers.respond(name, accept)
        headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-store")]
        await respond(send, status, body, headers, is_head=scope["method"] == "HEAD")


async def respond(
    send: Send, status: int, text: str | bytes, headers: Headers = TEXT, *, is_head: bool = False
) -> None:
    """Send a short text as the whole response."""
    body = text.encode() if isinstance(text, str) else text
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": b"" if is_head else body})


async def _close(send: Send, code: int, reason: str) -> None:
    short = reason.encode()[:120].decode(errors="ignore")  # what fits into a frame
    await send({"type": "websocket.close", "code": code, "reason": short})


async def _until_disconnected(stream: Callable[[], Any], receive: Receive, disconnect: str) -> None:
    """Run a stream until it ends or the client is gone."""

    async def wait_disconnected() -> None:
        while (await receive())["type"] != disconnect:
            pass  # a message that the client sends

    with suppress(OSError):  # the server says so where it notices first that the client is gone
        await run_until_first(stream, wait_disconnected)
