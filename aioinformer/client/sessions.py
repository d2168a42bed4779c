"""The connections to one server: an aiohttp session for calls and another for streams."""

from __future__ import annotations

import io
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict

from .._core.cancellation import maybe_await
from ..errors import TransportError
from .error_mapping import network_errors
from .libraries import user_agent
from .resolver import Resolver
from .sockets import Sockets
from .transport import CONNECT_TIMEOUT, HttpRequest

if TYPE_CHECKING:
    from ssl import SSLContext

    from .credentials import Access

READ_BUFFER = 256 * 1024
"""aiohttp pauses reading when it has buffered twice as many bytes, so that is the largest chunk of a stream."""

LONGEST_HEADER = 1024 * 1024
"""Bytes of a header line. Authenticating proxies set cookies beyond aiohttp's limit of 8190; Go accepts 10 MB."""

LIBRARY_POOL_SIZE = 100
"""``connection_pool_maxsize`` of a Configuration that does not set it, in both libraries. It sets no limit here."""

IDLE_CONNECTION_SECONDS = 5.0
"""Seconds that an idle connection is kept.

A load balancer that ends an idle connection may send a 408 response first, and aiohttp would take that for the
response to the next request. Load balancers wait for much longer than this: a minute is usual.
"""

_LARGE_BODY = 1024 * 1024
"""Bytes above which a body is sent in pieces; aiohttp warns of larger bodies in one piece."""


class Progress:
    """What a request is waiting for.

    Attributes:
        wait: What is missing, for messages: ``"answer"`` once the request has a connection.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.wait = "answer"

    def too_late(self, seconds: float) -> str:
        """Return the error message for a request that missed its deadline."""
        message = f"no {self.wait} within {seconds:g} seconds"
        if self.wait == "connection" and (host := self._resolver.pending):
            message += f": the host name {host} is not resolved yet"
        return message


class Sessions:
    """Two aiohttp sessions with one SSLContext, opened when first used.

    A watch occupies its connection for minutes. Streams have a session of their own without a limit, so they never
    delay calls. Calls have no limit either, as in Go, unless ``connection_pool_maxsize`` of the configuration sets one.
    The sessions send no cookies, use no credentials from ``~/.netrc`` and accept no compressed answers.

    Args:
        configuration: The library's Configuration: gives pool size, trace configs and session headers.
        ssl_context: For both sessions.
        proxy: For both sessions; None for none.
        keep: Whether connections outlast their requests. If not, or after ``retire``, the sessions close when the
            last request ends.

    Attributes:
        via: A note about the proxy, for messages; ``""`` for none.
    """

    def __init__(
        self, configuration: Any, ssl_context: SSLContext | None, proxy: str | None, *, keep: bool
    ) -> None:
        self._configuration = configuration
        self._ssl_context = ssl_context
        self._proxy = proxy
        self._keep = keep
        self._requests = 0
        self._responses: set[aiohttp.ClientResponse] = set()
        self._closed = False
        self._by_kind: dict[bool, aiohttp.ClientSession] = {}
        self.via = ""
        self._sockets = Sockets()
        self._resolver = Resolver()

    def begin(self) -> Progress:
        """Count a request that begins; ``release`` ends it. Return its progress."""
        self._requests += 1
        return Progress(self._resolver)

    async def ask(self, request: HttpRequest, access: Access, progress: Progress) -> aiohttp.ClientResponse:
        """Send a request, and return the response, its body not yet read.

        Args:
            request: What to send.
            access: The server and the credentials.
            progress: What ``begin`` returned for this request.
        """
        configuration = access.configuration
        url = f"{configuration.host}{request.path}"
        if request.query:
            url += f"?{urlencode(request.query)}"
        options: dict[str, Any] = {"method": "GET"}
        if request.change is not None:
            method, body, _ = request.change
            # aiohttp would follow a redirect with a GET, which changes nothing.
            options = {"method": method, "allow_redirects": False}
            options["data"] = io.BytesIO(body) if len(body) > _LARGE_BODY else body or None
        response = await self._session(request.is_stream).request(
            url=url,
            headers=await _headers(request, access),
            proxy=self._proxy,
            proxy_headers=configuration.proxy_headers or None,
            server_hostname=configuration.tls_server_name or None,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            trace_request_ctx=progress,
            **options,
        )
        self._responses.add(response)
        return response

    async def release(self, response: aiohttp.ClientResponse | None = None) -> None:
        """End a request, and close its response if there was one."""
        if response is not None:
            response.close()
            self._responses.discard(response)
        self._requests -= 1
        if not self._requests and not self._keep:
            await self._close_sessions()

    async def retire(self) -> None:
        """Close as soon as no request uses these sessions."""
        self._keep = False
        if not self._requests:
            await self._close_sessions()

    async def close(self) -> None:
        """Close now. Requests under way fail."""
        self._closed = True
        for response in self._responses:
            response.close()  # closing the session alone would leave its reader waiting forever
        await self._close_sessions()

    async def _close_sessions(self) -> None:
        """Close both sessions, also if one fails or the wait is cancelled."""
        sockets, self._sockets = self._sockets, Sockets()  # sessions may open meanwhile
        async with AsyncExitStack() as closing:
            closing.push_async_callback(sockets.close)  # runs last
            for session in self._by_kind.values():
                closing.push_async_callback(session.close)
            self._by_kind.clear()

    def _session(self, streaming: bool) -> aiohttp.ClientSession:
        """Return the session for streams, or the one for calls."""
        if self._closed:
            raise TransportError("the client is closed")
        session = self._by_kind.get(streaming)
        if session is None:
            session = self._by_kind[streaming] = self._open(streaming)
        return session

    def _open(self, streaming: bool) -> aiohttp.ClientSession:
        configuration = self._configuration
        limit = configuration.connection_pool_maxsize or 0
        if streaming or limit == LIBRARY_POOL_SIZE:
            limit = 0
        connector = self._sockets.connector(
            limit=limit,
            ssl=self._ssl_context or True,
            resolver=self._resolver,
            keepalive_timeout=IDLE_CONNECTION_SECONDS,
        )
        own = getattr(configuration, "client_session_kwargs", None) or {}
        return aiohttp.ClientSession(
            connector=connector,
            headers=own.get("headers"),
            response_class=_Response,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,  # a megabyte of unrequested compression may be a gigabyte
            read_bufsize=READ_BUFFER,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
            trace_configs=[_record_progress(limit), *(getattr(configuration, "trace_configs", None) or ())],
        )


class _Response(aiohttp.ClientResponse):
    """A response that prevents aiohttp from sending a write twice.

    aiohttp sends a PUT or DELETE again if its connection breaks, but the server may have executed it already.
    """

    async def start(self, connection: Any) -> Self:
        if self.method == "GET":
            await super().start(connection)
        else:
            with network_errors():  # aiohttp does not retry after errors of this package
                await super().start(connection)
        return self


async def _headers(request: HttpRequest, access: Access) -> CIMultiDict[str]:
    """Return the headers of a request, with the current credentials."""
    headers = CIMultiDict({"Accept": request.accept, "Accept-Encoding": "identity"})
    headers.update(access.headers)
    if headers.get("User-Agent", "OpenAPI-Generator").startswith("OpenAPI-Generator"):
        headers["User-Agent"] = user_agent()
    # A coroutine since kubernetes_asyncio 36.
    settings: Any = await maybe_await(access.configuration.auth_settings())
    authorization = settings.get("BearerToken")
    if authorization and authorization["value"]:
        headers[authorization["key"]] = authorization["value"]
    if request.change is not None:
        headers["Content-Type"] = request.change.content_type
    return headers


def _record_progress(limit: int) -> aiohttp.TraceConfig:
    """Return a TraceConfig that records in a request's Progress what it waits for."""

    def record(wait: str) -> Any:
        async def on_event(_session: object, context: Any, _params: object) -> None:
            context.trace_request_ctx.wait = wait

        return on_event

    tracing = aiohttp.TraceConfig()
    queued = f"free connection (connection_pool_maxsize allows {limit}, and other requests hold them)"
    tracing.on_connection_queued_start.append(record(queued))
    tracing.on_connection_create_start.append(record("connection"))
    tracing.on_connection_create_end.append(record("answer"))
    tracing.on_connection_reuseconn.append(record("answer"))
    return tracing
