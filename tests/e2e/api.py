"""Requests to the embedded or the real API server, in JSON or protobuf."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp
import yaml

from aioinformer.client.sockets import Sockets

from ..testing.protobuf.reading import PROTOBUF, decode, read_frames

Object = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"

INITIALIZING = b"storage is (re)initializing"
"""What a kube-apiserver answers with 429 while the watch cache of a changed definition starts."""

START_PAUSE = 0.2
"""Seconds between two requests to such a collection."""

LARGE = 1 << 20
"""Bytes above which aiohttp wants a body as a file."""


class Resource(NamedTuple):
    """A collection of the API."""

    api_version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        within = f"/namespaces/{namespace}" if namespace is not None and self.namespaced else ""
        return f"{root}{within}/{self.plural}" + (f"/{name}" if name else "")


CONFIGMAPS = Resource("v1", "configmaps")
PODS = Resource("v1", "pods")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)
DEFINITIONS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)


class Answer(NamedTuple):
    """An answer, read to its end."""

    status: int
    body: Any
    content_type: str = ""
    raw: bytes = b""
    warnings: tuple[str, ...] = ()


class Refused(Exception):  # noqa: N818 - what it is
    """The server refused a request."""


class API:
    """Sends requests to a server as the administrator. An async context manager.

    Args:
        url: The server.
        token: A bearer token.
        ssl_context: What its certificate is verified with.
    """

    def __init__(self, url: str, token: str | None, ssl_context: ssl.SSLContext | None) -> None:
        self.url = url
        self._sockets = Sockets()
        self._session = aiohttp.ClientSession(
            url,
            connector=self._sockets.connector(ssl=ssl_context or True),
            headers={"User-Agent": "tests"} | ({"Authorization": f"Bearer {token}"} if token else {}),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await self._sockets.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return any answer, except that of a collection that still starts: ask again then."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Accept": accept} | ({} if data is None else {"Content-Type": content_type})
        sent |= headers or {}
        response, said = await self._read(method, path, data, params=query or {}, headers=sent)
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        warnings = tuple(response.headers.getall("Warning", ()))
        return Answer(response.status, _parse(said, kind), kind, said, warnings)

    async def _read(
        self, method: str, path: str, data: bytes | None = None, **options: Any
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Send a request, again while its collection still starts, and read the answer to its end."""
        while True:
            large = io.BytesIO(data) if data is not None and len(data) > LARGE else None
            async with self._session.request(method, path, data=large or data, **options) as response:
                said = await response.read()
            if not (response.status == 429 and INITIALIZING in said):
                return response, said
            await asyncio.sleep(START_PAUSE)

    async def do(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """Send a request that must succeed and return the answer."""
        answer = await self.ask(method, path, body, query, content_type=content_type, accept=accept)
        if answer.status not in (200, 201, 202):
            raise Refused(f"{method} {path}: {answer.status} {answer.body}")
        assert isinstance(answer.body, dict), answer
        return answer.body

    async def events(self, path: str, query: dict[str, str], accept: str = JSON) -> Answer:
        """Return all events of a watch until the server ends it, or its refusal."""
        params, headers = {"watch": "true", **query}, {"Accept": accept}
        response, said = await self._read("GET", path, params=params, headers=headers)
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.status != 200:
            return Answer(response.status, _parse(said, kind), kind)
        events = read_frames(said) if kind == PROTOBUF else [json.loads(line) for line in said.splitlines()]
        return Answer(200, events, kind)

    @asynccontextmanager
    async def watch(self, path: str, query: dict[str, str]) -> AsyncIterator[AsyncIterator[Object]]:
        """The events of a watch as they come."""
        async with self._session.get(path, params={"watch": "true", **query}) as response:
            assert response.status == 200, await response.text()

            async def events() -> AsyncIterator[Object]:
                async for line in response.content:
                    yield json.loads(line)

            yield events()

    def websocket(
        self, path: str, resource_version: str
    ) -> AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]:
        """A watch over a WebSocket."""
        query = {"watch": "true", "resourceVersion": resource_version}
        return self._session.ws_connect(path, params=query, origin=self.url)  # Go refuses one without


def _parse(said: bytes, kind: str) -> Any:
    if kind == JSON:
        return json.loads(said) if said else None
    if kind == PROTOBUF:
        return decode(said)
    if kind == YAML:
        return yaml.safe_load(said)
    return said.decode(errors="replace")
