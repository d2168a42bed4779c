"""For aiohttp.web: informers that start and end with an application, probes, and streams of a feed."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import Any, TypeVar

from aiohttp import ClientConnectionResetError, WSCloseCode, web

from .._core.tasks import run_until_first
from ..errors import AioInformerError, SelectorError
from .feed import ChangeFeed
from .service import WebInformers
from .streams import HEADERS, HasFeed, Streams
from .subscription import Subscription

T = TypeVar("T")


def setup(app: web.Application, informers: WebInformers, *, prefix: str = "") -> None:
    """Run informers with an application, end their streams at its shutdown, and answer probes.

    Args:
        app: The application, before its start.
        informers: The informers.
        prefix: What the paths ``/readyz``, ``/livez`` and ``/metrics`` begin with.
    """

    async def end_streams(app: web.Application) -> None:
        informers.end_streams()

    async def probe(request: web.Request) -> web.Response:
        status, body, content_type = informers.respond(
            request.path.rpartition("/")[2], request.headers.get("Accept", "")
        )
        headers = {"Cache-Control": "no-store", "Content-Type": content_type}
        return web.Response(status=status, body=body, headers=headers)

    app.cleanup_ctx.append(informers.lifespan)
    app.on_shutdown.append(end_streams)
    app.add_routes([web.get(f"{prefix}/{name}", probe) for name in ("readyz", "livez", "metrics")])


async def stream_changes(
    request: web.Request, source: ChangeFeed[T] | HasFeed[T], **options: Any
) -> web.StreamResponse:
    """Stream a feed to a browser: as server-sent events, or through a WebSocket if the request asks for one.

        async def events(request: web.Request) -> web.StreamResponse:
            return await stream_changes(request, pods, label_selector="app=web")

    Args:
        request: The request. Its parameters narrow the selection: see Streams.
        source: A ChangeFeed, or a WebInformer.
        **options: As for Streams.

    Raises:
        HTTPBadRequest: A selector of the request is not valid.
        HTTPServiceUnavailable: The informers do not run.
    """
    streams = Streams(source, **options)
    try:
        subscription = streams.subscribe(request.query, request.headers.get("Last-Event-ID", ""))
    except SelectorError as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    except AioInformerError as error:
        raise web.HTTPServiceUnavailable(text=str(error)) from error
    socket = web.WebSocketResponse(heartbeat=30.0)
    if socket.can_prepare(request):
        await socket.prepare(request)
        return await _send_messages(socket, streams, subscription)
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    with suppress(ClientConnectionResetError):  # the browser is gone
        async with aclosing(streams.server_sent_events(subscription)) as chunks:
            async for chunk in chunks:
                await response.write(chunk)
    return response


async def _send_messages(
    socket: web.WebSocketResponse, streams: Streams[T], subscription: Subscription[T]
) -> web.WebSocketResponse:
    async def send() -> None:
        async with aclosing(streams.messages(subscription)) as texts:
            async for text in texts:
                await socket.send_str(text)

    async def wait_closed() -> None:
        async for _ in socket:
            pass  # a message that the browser sends

    with suppress(ClientConnectionResetError):
        await run_until_first(send, wait_closed)
    await socket.close(code=WSCloseCode.GOING_AWAY)
    return socket
