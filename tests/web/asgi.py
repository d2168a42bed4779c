"""A server of ASGI, played step by step: what the client receives, and when it reads or goes."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

import msgspec

from aioinformer._core.tasks import finish


class Request:
    """One request or WebSocket that an application serves.

    Args:
        app: The application.
        path: The path.
        last_event_id: The header of that name.
        kind: ``"http"`` or ``"websocket"``.
        method: The method.
        reads: Whether the client reads; else every send waits until ``read_all``.
        **query: The parameters of the URL.
    """

    def __init__(
        self,
        app: Any,
        path: str = "/events",
        *,
        last_event_id: str = "",
        kind: str = "http",
        method: str = "GET",
        reads: bool = True,
        **query: str,
    ) -> None:
        headers = [(b"last-event-id", last_event_id.encode())] if last_event_id else []
        self.scope = {
            "type": kind,
            "method": method,
            "path": path,
            "query_string": urlencode(query).encode(),
            "headers": headers,
        }
        self.sent: list[dict[str, Any]] = []
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._may_send = asyncio.Event()
        if reads:
            self._may_send.set()
        if kind == "websocket":
            self._received.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(app(self.scope, self._received.get, self._send))

    async def _send(self, message: Any) -> None:
        self.sent.append(dict(message))
        if message["type"] != "http.response.start":
            await self._may_send.wait()

    def disconnect(self) -> None:
        """Let the client go."""
        self._received.put_nowait({"type": f"{self.scope['type']}.disconnect"})

    def read_all(self) -> None:
        """Let the client read from now on."""
        self._may_send.set()

    async def end(self) -> None:
        await finish(self.task)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent[1:]).decode()

    @property
    def events(self) -> list[str]:
        """Type and key of each event, in the order of sending."""
        lines = (
            [message["text"] for message in self.sent if message["type"] == "websocket.send"]
            if self.scope["type"] == "websocket"
            else [line.removeprefix("data: ") for line in self.body.split("\n") if line.startswith("data: ")]
        )
        return [
            f"{event['type']} {event.get('key', '')}".strip() for event in map(msgspec.json.decode, lines)
        ]

    @property
    def last_id(self) -> str:
        """The id that a browser would send when it connects again."""
        return next((line[4:] for line in reversed(self.body.split("\n")) if line.startswith("id: ")), "")
