"""The connections to one server: a session for calls and one for streams."""

from __future__ import annotations

import io
from collections import ChainMap
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

import aiohttp

from ..errors import TransportError
from .connections import Connector
from .error_mapping import network_errors
from .libraries import Library, user_agent
from .resolver import Resolver
from .sockets import Sockets
from .transport import CONNECT_TIMEOUT, Change, HttpRequest

READ_BUFFER = 256 * 1024
"""Bytes that a connection reads ahead, twice over: what a chunk of a stream has at most."""

LONGEST_HEADER = 1024 * 1024
"""Bytes of a header line: proxies that authenticate set cookies beyond aiohttp's 8190. Go takes 10 MB of them."""

_LARGE = 1024 * 1024
"""Bytes beyond which aiohttp wants to be given a body that it can write in pieces."""

LIBRARY_POOL_SIZE = 100
"""``connection_pool_maxsize`` of a Configuration that does not set it, in both libraries: no limit here."""


class Progress:
    """What a request waits for.

    Attributes:
        wait: What it does not have yet, for messages: ``"answer"`` once it has a connection.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.wait = "answer"

    def too_late(self, seconds: float) -> str:
        """Say what has not come within so many seconds."""
        said = f"no {self.wait} within {seconds:g} seconds"
        if self.wait == "connection" and (host := self._resolver.pending):
            said += f": the host name {host} is not resolved yet"
        return said


_PROGRESS: ContextVar[Progress] = ContextVar("progress")


class Sessions:
    """Two aiohttp sessions under one ApiClient's configuration and SSLContext, opened when first used.

    A watch holds its connection for minutes: streams have a session of their own without a limit, so they never
    keep calls waiting. Calls have no limit either, as in Go, unless the configuration's ``connection_pool_maxsize``
    sets one. What the library's own session would do and nobody wants is left out here: cookies, credentials
    out of ``~/.netrc``, connections without keepalive, compressed answers.

    Args:
        library: Whose ApiClient it is.
        api_client: Gives configuration, headers and how to ask. Its own session is not used.
        ssl_context: For both sessions.
        proxy: For both sessions, unless the ApiClient has one.
        keep: Whether connections outlast their requests. If not, or after ``retire``, the sessions close when the
            last request that holds them ends.

    Attributes:
        via: By which proxy they ask, for messages; ``""`` for none.
    """

    def __init__(
        self, library: Library, api_client: Any, ssl_context: Any, proxy: str | None, *, keep: bool
    ) -> None:
        self._library = library
        self._api_client = api_client
        self._ssl_context = ssl_context
        self._proxy = proxy
        self._keep = keep
        self._held = 0
        self._responses: set[aiohttp.ClientResponse] = set()
        self._closed = False
        self._clients: dict[bool, Any] = {}
        self.via = ""
        self._sockets = Sockets()
        self._resolver = Resolver()

    async def ask(self, request: HttpRequest, progress: Progress) -> aiohttp.ClientResponse:
        """Ask; the answer, its body not yet read. To be called while holding.

        Args:
            request: What for.
            progress: What ``hold`` returned for it.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT, sock_read=request.read_timeout
        )
        headers = {"Accept": request.accept, "Accept-Encoding": "identity"}
        client = self._client(request.is_stream)
        if request.change is not None:
            client = self._library.over(_Sending(client.rest_client.pool_manager, request.change), client)
        outer = _PROGRESS.set(progress)
        try:
            response = await self._library.get(client, request.path, request.query, headers, timeout)
        finally:
            _PROGRESS.reset(outer)
        assert isinstance(response, aiohttp.ClientResponse)
        self._responses.add(response)
        return response

    def hold(self) -> Progress:
        """A request begins; return what says how far it is."""
        self._held += 1
        return Progress(self._resolver)

    async def release(self, response: aiohttp.ClientResponse | None = None) -> None:
        """A request has ended; its answer, if there was one, is closed."""
        if response is not None:
            response.close()
            self._responses.discard(response)
        self._held -= 1
        if not self._held and not self._keep:
            await self._close_sessions()

    async def retire(self) -> None:
        """Serve the requests that hold these sessions, then close."""
        self._keep = False
        if not self._held:
            await self._close_sessions()

    async def close(self) -> None:
        """Close now. Requests that hold these sessions fail."""
        self._closed = True
        for response in self._responses:
            response.close()  # its session's close() would let its reader wait forever
        await self._close_sessions()

    async def _close_sessions(self) -> None:
        """Close them all, whatever becomes of one: a cancellation ends but the wait for it."""
        sockets, self._sockets = self._sockets, Sockets()  # for sessions that are opened meanwhile
        async with AsyncExitStack() as closing:
            closing.push_async_callback(sockets.close)  # comes last
            for client in self._clients.values():
                closing.push_async_callback(client.rest_client.pool_manager.close)
            self._clients.clear()

    def _client(self, streaming: bool) -> Any:
        """The ApiClient over one of the sessions."""
        if self._closed:
            raise TransportError("the client is closed")
        client = self._clients.get(streaming)
        if client is None:
            client = self._library.over(self._session(streaming), self._api_client)
            if str(client.user_agent).startswith("OpenAPI-Generator"):
                client.default_headers = ChainMap({"User-Agent": user_agent()}, client.default_headers)
            self._clients[streaming] = client
        return client

    def _session(self, streaming: bool) -> aiohttp.ClientSession:
        configuration = self._api_client.configuration
        limit = configuration.connection_pool_maxsize or 0
        if streaming or limit == LIBRARY_POOL_SIZE:
            limit = 0
        connector = Connector(
            limit=limit,
            ssl=self._ssl_context or True,
            resolver=self._resolver,
            socket_factory=self._sockets,
        )
        own = getattr(configuration, "client_session_kwargs", None) or {}
        return aiohttp.ClientSession(
            connector=connector,
            headers=own.get("headers"),
            proxy=self._proxy,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,  # a megabyte that nobody asked to be compressed may be a gigabyte
            read_bufsize=READ_BUFFER,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
            trace_configs=[_noting_progress(limit), *(getattr(configuration, "trace_configs", None) or ())],
        )


def _noting_progress(limit: int) -> aiohttp.TraceConfig:
    """Have a session's requests say what they wait for."""

    def waiting_for(wait: str) -> Any:
        async def note(*_: object) -> None:
            _PROGRESS.get().wait = wait

        return note

    tracing = aiohttp.TraceConfig()
    queued = f"free connection (connection_pool_maxsize allows {limit}, and other requests hold them)"
    tracing.on_connection_queued_start.append(waiting_for(queued))
    tracing.on_connection_create_start.append(waiting_for("connection"))
    tracing.on_connection_create_end.append(waiting_for("answer"))
    tracing.on_connection_reuseconn.append(waiting_for("answer"))
    return tracing


class _Sending:
    """A session that sends a change as it is. The library takes it for a GET: it would write the body anew."""

    def __init__(self, session: aiohttp.ClientSession, change: Change) -> None:
        self._session = session
        self._change = change

    async def request(self, **asked: Any) -> aiohttp.ClientResponse:
        method, body, content_type = self._change
        asked["headers"]["Content-Type"] = content_type
        asked["method"] = method
        asked["data"] = io.BytesIO(body) if len(body) > _LARGE else body or None
        # A redirect would be followed by a GET, whose answer is not what was written.
        return await self._session.request(**asked, allow_redirects=False, middlewares=(_once,))


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from sending a PUT or DELETE again when its connection breaks: it may have been done."""
    with network_errors():  # aiohttp would know its own
        return await handler(request)
