"""Watches over WebSockets, as browsers and fabric8 ask for them: each event is a message."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer._core.tasks import run_until_first

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.testing.http.watches import Sink


def wants_websocket(http: web.BaseRequest) -> bool:
    """Return whether a request asks for a WebSocket."""
    is_upgrade = "upgrade" in http.headers.get("Connection", "").lower()
    return is_upgrade and http.headers.get("Upgrade", "").lower() == "websocket"


async def run_on_websocket(
    http: web.BaseRequest, run: Callable[[Sink], Awaitable[None]]
) -> web.WebSocketResponse:
    """Accept a WebSocket, and write to it until the watch or the client ends it."""
    websocket = web.WebSocketResponse()
    await websocket.prepare(http)
    await run_until_first(partial(_write, run, websocket), partial(_ignore_received, websocket))
    await websocket.close()
    return websocket


class _Messages:
    """Sends each line as a message of text, with its line feed, like kube-apiserver."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._websocket = websocket

    async def write(self, data: bytes) -> None:
        for line in data.splitlines(keepends=True):
            await self._websocket.send_str(line.decode())


async def _write(run: Callable[[Sink], Awaitable[None]], websocket: web.WebSocketResponse) -> None:
    await run(_Messages(websocket))


async def _ignore_received(websocket: web.WebSocketResponse) -> None:
    async for _ in websocket:
        pass  # answers pings; the iteration ends when the client closes
