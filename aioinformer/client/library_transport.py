"""The Transport over a Kubernetes library: opening, renewing credentials, asking."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING
from weakref import WeakSet

import anyio

from .._core.tasks import finish
from ..errors import ApiError, ClientClosedError, ConfigError, TransportError, WrongEventLoopError
from ..handlers import require_plain
from .credentials import (
    TOKEN_FILE_PERIOD,
    Access,
    Source,
    check_url,
    read_token,
)
from .error_mapping import (
    cause_of,
    ours,
    say_more,
    without_credentials,
    words_of,
)
from .libraries import Library, to_thread
from .response import ResponseStream, encoding_of, error_of
from .transport import JSON, READ_TIMEOUT, Change, HttpRequest, Query
from .warning_headers import WarningHandler, hand_on, warnings_of

if TYPE_CHECKING:
    from .sessions import Sessions

logger = logging.getLogger(__name__)

LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of an answer that is read as a whole."""

_RENEW_AGAIN = 10.0

_NO_ANSWER = "no answer within {:g} seconds".format
_NO_CREDENTIALS = "no answer within {:g} seconds, as there were no credentials yet to ask with".format


class _Deadline:
    """When a request, which is made now, is given up, whatever it waits for: the credentials or the answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = asyncio.get_running_loop().time() + seconds

    @property
    def left(self) -> float:
        """Seconds until it."""
        return self._end - asyncio.get_running_loop().time()

    @contextmanager
    def awaiting(self, too_late: Callable[[float], str]) -> Iterator[None]:
        """Around what is waited for; raises a TransportError that says what has not come in so many seconds."""
        with anyio.move_on_after(self.left) as scope:
            yield
        if scope.cancelled_caught:
            raise TransportError(too_late(self._seconds))


@dataclass(slots=True, eq=False)
class _Opened:
    """What requests are made with; another one after each renewal."""

    access: Access
    identity: bytes
    sessions: Sessions
    renew_at: float
    expires: float
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @property
    def server(self) -> str:
        """Its URL, for messages."""
        return without_credentials(str(self.access.configuration.host))

    def credentials(self) -> object:
        """What is shown; None for a wrapped ApiClient, whose own hook gives that with each request."""
        if not self.identity:
            return None
        return self.identity, self.access.configuration.api_key.get("BearerToken")


class LibraryTransport:
    """Requests by kubernetes_asyncio or kubernetes.aio: its configuration, authentication and session.

    Args:
        source: Where the configuration comes from.
        library: Which library.
        keep_connections: Whether connections outlast their requests, and ``close`` is needed.
        wall: The wall clock, by which credentials expire.
        on_warning: Called with each warning of the server; None to log each once.

    Raises:
        ConfigError: ``on_warning`` is async.
    """

    def __init__(
        self,
        source: Source,
        library: Library,
        *,
        keep_connections: bool = True,
        wall: Callable[[], float] = time.time,
        on_warning: WarningHandler | None = None,
    ) -> None:
        self._source = source
        self._library = library
        self._keep_connections = keep_connections
        self._wall = wall
        if on_warning is not None:
            require_plain("on_warning", on_warning)
        self._on_warning = on_warning
        self._opened: _Opened | None = None
        self._sessions: WeakSet[Sessions] = WeakSet()  # those that were retired, too: their streams hold them
        self._closed = False
        self._loading: asyncio.Task[_Opened | ConfigError] | None = None
        self._waiting = 0

    @property
    def server(self) -> str:
        return self._opened.server if self._opened else ""

    @property
    def namespace(self) -> str:
        return self._opened.access.namespace if self._opened else "default"

    async def open(self) -> None:
        """Read the configuration; after ``close``, open again.

        Raises:
            ConfigError: It cannot work.
        """
        self._closed = False
        try:
            await self._ready()
        except asyncio.CancelledError:
            if self._opened is None and not self._waiting:
                await self._end_loading()  # who was not let in closes nothing
            raise

    async def close(self) -> None:
        """Close every connection. Requests under way fail, later ones raise ConfigError. Idempotent.

        Raises:
            WrongEventLoopError: It is of another event loop, which is running, and goes on to be used there.
        """
        if self._opened is not None and self._opened.loop.is_running():
            self._require_loop_of(self._opened)
        self._closed = True
        self._opened = None
        async with AsyncExitStack() as closing:
            for sessions in self._sessions:
                closing.push_async_callback(sessions.close)
            await self._end_loading()

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """The whole body of an answer; see ``Transport.get``."""
        return await _read(await self._ask(HttpRequest(path, query, timeout), _Deadline(timeout)))

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Ask for a change; see ``Transport.send``."""
        deadline = _Deadline(timeout)
        body = await self._ask(HttpRequest(path, query, None, change=change), deadline)
        with deadline.awaiting(_NO_ANSWER):
            return await _read(body)

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ResponseStream:
        """The body of an answer as it arrives; see ``Transport.stream``."""
        request = HttpRequest(path, query, idle_timeout, is_stream=True, accept=accept)
        return await self._ask(request, _Deadline(READ_TIMEOUT))

    async def _ask(self, request: HttpRequest, deadline: _Deadline) -> ResponseStream:
        """The answer, if it is 2xx.

        A 401, or a certificate that cannot be verified, has the configuration read anew; if there are other credentials
        now, or other authorities, it asks once more (client-go ``token_source.go``, ``ca_rotation.go``).
        """
        with deadline.awaiting(_NO_CREDENTIALS):
            opened = await self._ready()
        shown = opened.credentials()
        try:
            return await self._ask_once(opened, request, deadline)
        except (ApiError, TransportError) as refused:
            if not self._source.is_renewable or not _may_be_cured(refused):
                raise
            if isinstance(refused, ApiError):
                opened.access.renew_at = -math.inf  # a certificate says nothing against our credentials
            try:
                with deadline.awaiting(_NO_ANSWER):
                    opened = await self._renew(opened)
            except (ConfigError, TransportError) as error:  # or its time is over, and the renewal goes on
                say_more(refused, f"the credentials could not be renewed: {error}")
                raise refused from error
            if shown is not None and shown == opened.credentials():
                raise
        return await self._ask_once(opened, request, deadline)

    async def _ask_once(self, opened: _Opened, request: HttpRequest, deadline: _Deadline) -> ResponseStream:
        sessions = opened.sessions
        progress = sessions.begin()
        try:
            with deadline.awaiting(progress.too_late):
                response = await sessions.ask(request, opened.access, progress)
        except BaseException as error:
            from aiohttp import RedirectClientError  # it is loaded by now

            await sessions.release()
            if isinstance(error, ValueError) and not isinstance(error, (OSError, RedirectClientError)):
                raise ConfigError(f"the request cannot be made: {words_of(error)}") from cause_of(error)
            found = ours(error, opened.server)
            if sessions.via and isinstance(found, TransportError):
                say_more(found, sessions.via)
            if found is None or found is error:
                raise
            raise found from cause_of(error)
        body = ResponseStream(response, sessions, request.idle_timeout)
        if warned := response.headers.getall("Warning", ()):
            hand_on(opened.server, warnings_of(warned), self._on_warning)
        if 200 <= response.status < 300:
            if encoding := encoding_of(response):
                await body.aclose()
                raise TransportError(
                    f"the answer is encoded as {encoding!r}, though the request asks for no encoding: see what is "
                    "between here and the API server, such as a proxy"
                )
            return body
        try:
            refused = await error_of(response, body, deadline.left)
            if refused.status == 401 and opened.access.origin:
                say_more(refused, opened.access.origin)
            raise refused
        finally:
            await body.aclose()

    async def _ready(self) -> _Opened:
        """What to ask with, its credentials current."""
        opened = self._opened
        if opened is None:
            return await self._renew(None)
        self._require_loop_of(opened)
        now = self._wall()
        if now < opened.renew_at:
            return opened
        if now < opened.expires:
            self._begin_loading()  # nobody need wait for it
            return opened
        try:
            return await self._renew(opened)
        except ClientClosedError:
            raise
        except ConfigError:
            return opened  # it may still do: if not, the server says so

    def _require_loop_of(self, opened: _Opened) -> None:
        """Where connections are kept, they are their event loop's."""
        if self._keep_connections and opened.loop is not asyncio.get_running_loop():
            raise WrongEventLoopError(
                f"the client of {self.server} was opened in another event loop; close it there, or make another one"
            )

    async def _renew(self, stale: _Opened | None) -> _Opened:
        """Something newer than ``stale``. One load serves all who wait, who share its failure too."""
        while True:
            if self._closed:
                raise ClientClosedError("the client is closed")
            if self._opened is not None and self._opened is not stale:
                return self._opened
            loading = self._begin_loading()
            self._waiting += 1
            try:
                await asyncio.wait((loading,))
            finally:
                self._waiting -= 1
                if not self._waiting and not self._keep_connections:
                    await self._end_loading()  # nobody else will
            if not loading.cancelled():
                break
        outcome = loading.result()
        if isinstance(outcome, ConfigError):
            raise type(outcome)(str(outcome)) from outcome
        return outcome

    def _begin_loading(self) -> asyncio.Task[_Opened | ConfigError]:
        """The task that reads the configuration. It outlives those who wait for it: they may have less time than it."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load_next())
        elif self._loading.get_loop() is not asyncio.get_running_loop():
            raise WrongEventLoopError("the client is being opened in another event loop")
        return self._loading

    async def _end_loading(self) -> None:
        loading = self._loading
        if loading is not None and not loading.done():
            if loading.get_loop() is asyncio.get_running_loop():
                await finish(loading)
            else:
                self._loading = None  # that loop has ended, or is none of ours

    async def _load_next(self) -> _Opened | ConfigError:
        stale = self._opened
        try:
            self._opened = await self._load(stale)
        except ConfigError as error:
            if stale is not None and self._wall() >= stale.renew_at:
                stale.renew_at = self._wall() + _RENEW_AGAIN
                logger.warning("%s: credentials could not be renewed: %s", self.server, error)
            return error
        return self._opened

    async def _load(self, stale: _Opened | None) -> _Opened:
        if stale is None:
            await to_thread(self._library.load)
        elif stale.access.token_file is not None and self._wall() >= stale.renew_at:
            # The minute is over: only the token file can have changed, unless it is not there any more.
            with suppress(ConfigError):
                stale.access.set_token(await to_thread(read_token, stale.access.token_file))
                renew_at = self._wall() + TOKEN_FILE_PERIOD
                return _Opened(stale.access, stale.identity, stale.sessions, renew_at, stale.access.expires)
        access = await self._source.load(self._library, self._wall)
        try:
            return await self._open(access, stale)
        except ConfigError as error:
            if not access.name:
                raise
            raise ConfigError(f"{access.name}: {error}") from error

    async def _open(self, access: Access, stale: _Opened | None) -> _Opened:
        from .proxies import proxy_for  # this and aiohttp the library has loaded by now
        from .sessions import Sessions

        configuration = access.configuration
        check_url(configuration.host)
        proxy = proxy_for(configuration.host, configuration.proxy)
        identity = b"" if access.api_client else await to_thread(_identity, access)
        if stale is not None and stale.identity == identity:
            # The server and the certificates are the same, so the connections stay.
            return _Opened(access, identity, stale.sessions, access.renew_at, access.expires)
        ssl_context = await to_thread(access.ssl_context)
        sessions = Sessions(configuration, ssl_context, proxy, keep=self._keep_connections)
        if proxy:
            named = "proxy-url" if configuration.proxy else "the environment"
            sessions.via = f"it is asked by the proxy {without_credentials(proxy)}, which {named} names"
        self._sessions.add(sessions)
        if stale is not None:
            await stale.sessions.retire()
        return _Opened(access, identity, sessions, access.renew_at, access.expires)


def _may_be_cured(error: ApiError | TransportError) -> bool:
    """Whether another reading of the configuration may help: to other credentials, or to other authorities."""
    if isinstance(error, ApiError):
        return error.status == 401
    return isinstance(error.__cause__, SSLCertVerificationError)


async def _read(body: ResponseStream) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in body:
            chunks.append(chunk)
            size += len(chunk)
            if size > LONGEST_ANSWER:
                chunks.clear()  # whoever keeps the error keeps this frame
                raise TransportError(f"the answer is longer than {LONGEST_ANSWER} bytes")
        return b"".join(chunks)
    finally:
        await body.aclose()


def _identity(access: Access) -> bytes:
    """What tells two servers, or two ways of showing who we are to them but by token, apart. Blocks."""
    configuration = access.configuration
    digest = hashlib.sha256(repr((access.headers, access.tls)).encode())
    names = ("host", "tls_server_name", "proxy")
    digest.update(repr([getattr(configuration, name, None) for name in names]).encode())
    for content in access.tls.read():
        digest.update(hashlib.sha256(content).digest())
    return digest.digest()
