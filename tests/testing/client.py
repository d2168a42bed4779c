"""A small HTTP client for the API: JSON in and out, lines of watches."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from aioinformer.testing import APIServer

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Answer(NamedTuple):
    """A response that was read to its end."""

    status: int
    body: Any
    headers: Any
    raw: bytes


class Lines:
    """The lines of an open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.content = response.content

    async def next(self) -> dict[str, Any]:
        """The next event; fails at the end of the stream."""
        line = await self._response.content.readline()
        assert line.endswith(b"\n"), f"the stream ended: {line!r}"
        event: dict[str, Any] = json.loads(line)
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The next events as (type, name)."""
        return [short(await self.next()) for _ in range(count)]

    async def rest(self) -> list[dict[str, Any]]:
        """Every event until the stream ends by itself."""
        return [json.loads(line) for line in (await self.rest_raw()).splitlines()]

    async def drop(self, server: APIServer) -> list[dict[str, Any]]:
        """Have the server end the stream, and take every event until then."""
        server.faults.drop_watches()
        return await self.rest()

    async def rest_raw(self) -> bytes:
        """Everything until the stream ends by itself."""
        return await self._response.content.read()


def short(event: dict[str, Any]) -> tuple[str, str]:
    """An event as (type, name)."""
    return event["type"], event["object"].get("metadata", {}).get("name", "")


class APIClient:
    """Sends requests to the server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and read the answer."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {} if data is None else {"Content-Type": content_type}
        sent.update(headers or {})
        async with self.session.request(
            method,
            self.url + path,
            data=data if data is None else io.BytesIO(data),
            params=query,
            headers=sent,
        ) as response:
            raw = await response.read()
            kind = response.headers.get("Content-Type", "")
            parsed = json.loads(raw) if raw and kind.startswith("application/json") else None
            return Answer(response.status, parsed, response.headers, raw)

    async def get(self, path: str, headers: Mapping[str, str] | None = None, /, **query: str) -> Answer:
        """GET."""
        return await self.ask("GET", path, headers=headers, query=query)

    async def post(self, path: str, body: Any, /, **query: str) -> Answer:
        """POST."""
        return await self.ask("POST", path, body, query=query)

    async def put(self, path: str, body: Any, /, **query: str) -> Answer:
        """PUT."""
        return await self.ask("PUT", path, body, query=query)

    async def patch(self, path: str, body: Any, content_type: str = MERGE, /, **query: str) -> Answer:
        """PATCH."""
        return await self.ask("PATCH", path, body, content_type=content_type, query=query)

    async def delete(self, path: str, body: Any = None, /, **query: str) -> Answer:
        """DELETE."""
        return await self.ask("DELETE", path, body, query=query)

    @asynccontextmanager
    async def watch(
        self, path: str, headers: Mapping[str, str] | None = None, /, **query: str
    ) -> AsyncIterator[Lines]:
        """Open a watch."""
        async with self.session.get(
            self.url + path, params={"watch": "true", **query}, headers=headers
        ) as response:
            yield Lines(response)
