"""The Transport that reads a Kubernetes library's configuration, renews credentials and sends requests."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from ssl import SSLCertVerificationError
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakSet

import anyio

from .._core.callables import require_plain
from .._core.certificates import expiry_of
from .._core.forks import Process, current_process, require_same_process
from .._core.loops import require_running_loop
from .._core.tasks import finish
from ..errors import ApiError, ClientClosedError, ConfigError, TransportError, WrongEventLoopError
from ..metrics import CERTIFICATE_EXPIRY, Sample
from .credentials import (
    TOKEN_FILE_PERIOD,
    Access,
    ConfigSource,
    check_url,
    read_token,
)
from .error_mapping import (
    add_detail,
    convert_error,
    message_of,
    safe_cause,
    without_credentials,
)
from .libraries import Library, to_thread
from .request_counts import NO_ANSWER, RequestCounts
from .response import ResponseStream, encoding_of, error_of
from .transport import JSON, READ_TIMEOUT, Change, HttpRequest, Query
from .warning_headers import WarningHandler, report_warnings, warnings_of

if TYPE_CHECKING:
    from .sessions import Sessions

logger = logging.getLogger(__name__)

LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of the largest response that ``get`` and ``send`` return."""

_RENEW_AGAIN = 10.0
"""Seconds between a failed renewal of credentials and the next one."""

_NO_ANSWER = "no answer within {:g} seconds".format
_NO_CREDENTIALS = "no answer within {:g} seconds: the credentials were not loaded in time".format


class _Deadline:
    """The deadline of a request that begins now, for both loading the credentials and the response."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = require_running_loop("a Client").time() + seconds

    @property
    def remaining(self) -> float:
        """The seconds remaining."""
        return self._end - asyncio.get_running_loop().time()

    @contextmanager
    def enforce(self, message: Callable[[float], str]) -> Iterator[None]:
        """Cancel the block at the deadline, and raise a TransportError with this message for the seconds allowed."""
        with anyio.move_on_after(self.remaining) as scope:
            yield
        if scope.cancelled_caught:
            raise TransportError(message(self._seconds))


@dataclass(slots=True, eq=False)
class _Opened:
    """A loaded configuration and its sessions. Each renewal makes a new one."""

    access: Access
    identity: bytes
    sessions: Sessions
    renew_at: float
    expires: float
    certificate_expires: float | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @property
    def server(self) -> str:
        """The server's URL without credentials, for messages."""
        return without_credentials(str(self.access.configuration.host))

    def credentials(self) -> object:
        """Return a value that identifies the credentials; None for a wrapped ApiClient, whose hook can change them."""
        if not self.identity:
            return None
        return self.identity, self.access.configuration.api_key.get("BearerToken")


class LibraryTransport:
    """Sends requests with the configuration and authentication of kubernetes_asyncio or kubernetes.aio.

    Args:
        source: The source of the configuration.
        library: The library that reads it.
        keep_connections: Whether connections outlast their requests, so that ``close`` is needed.
        wall: The wall clock that decides when credentials expire.
        on_warning: Called with each warning of the server; None to log each once.

    Raises:
        ConfigError: ``on_warning`` is async.
    """

    def __init__(
        self,
        source: ConfigSource,
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
        self._sessions: WeakSet[Sessions] = WeakSet()  # includes retired ones, as long as a stream uses them
        self._process: Process | None = None  # in which it was opened
        self._closed = False
        self._loading: asyncio.Task[_Opened | ConfigError] | None = None
        self._waiters = 0
        self._requests = RequestCounts()

    @property
    def server(self) -> str:
        return self._opened.server if self._opened else ""

    @property
    def namespace(self) -> str:
        return self._opened.access.namespace if self._opened else "default"

    @property
    def access(self) -> Access | None:
        """The server and the credentials, as the configuration was read last; None before ``open``."""
        return self._opened.access if self._opened else None

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the requests, with client-go's names, and when the client certificate expires."""
        yield from self._requests.samples(urlsplit(self.server).netloc)
        if self._opened is not None and (expires := self._opened.certificate_expires) is not None:
            yield Sample(CERTIFICATE_EXPIRY, "gauge", {"certificate": "client"}, expires)

    async def open(self) -> None:
        """Read the configuration. Reopens a closed transport.

        Raises:
            ConfigError: The configuration is unusable.
        """
        self._require_same_process()
        require_running_loop("a Client")
        self._closed = False
        try:
            await self._ready()
        except asyncio.CancelledError:
            if self._opened is None and not self._waiters:
                await self._end_loading()  # after a failed ``__aenter__`` there is no call of close()
            raise

    async def close(self) -> None:
        """Close every connection. Running requests fail, later ones raise ConfigError. Idempotent.

        Raises:
            WrongEventLoopError: Another running event loop opened it, or the parent process. The transport stays open.
        """
        self._require_same_process()  # closing the parent's connections would end them there, too
        if self._opened is not None and self._opened.loop.is_running():
            self._require_loop_of(self._opened)
        self._closed = True
        self._opened = self._process = None
        async with AsyncExitStack() as closing:
            for sessions in self._sessions:
                closing.push_async_callback(sessions.close)
            await self._end_loading()

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """Return the whole body of a response; see ``Transport.get``."""
        return await _read(await self._ask(HttpRequest(path, query, timeout), _Deadline(timeout)))

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Send a change; see ``Transport.send``."""
        deadline = _Deadline(timeout)
        body = await self._ask(HttpRequest(path, query, None, change=change), deadline)
        with deadline.enforce(_NO_ANSWER):
            return await _read(body)

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ResponseStream:
        """Return the body of a response as it arrives; see ``Transport.stream``."""
        request = HttpRequest(path, query, idle_timeout, is_stream=True, accept=accept)
        return await self._ask(request, _Deadline(READ_TIMEOUT))

    async def _ask(self, request: HttpRequest, deadline: _Deadline) -> ResponseStream:
        """Send a request, and return its 2xx response.

        After a 401 or an unverifiable certificate, reload the configuration, and retry once if the credentials or
        the certificate authorities have changed (client-go ``token_source.go``, ``ca_rotation.go``).
        """
        with deadline.enforce(_NO_CREDENTIALS):
            opened = await self._ready()
        sent = opened.credentials()
        try:
            return await self._ask_once(opened, request, deadline)
        except (ApiError, TransportError) as refused:
            if not self._source.is_renewable or not _may_need_reload(refused):
                raise
            if isinstance(refused, ApiError):
                opened.access.renew_at = -math.inf  # an unverifiable certificate leaves our credentials valid
            try:
                with deadline.enforce(_NO_ANSWER):
                    opened = await self._renew(opened)
            except (
                ConfigError,
                TransportError,
            ) as error:  # at the deadline the renewal continues for later requests
                add_detail(refused, f"the credentials could not be renewed: {error}")
                raise refused from error
            if sent is not None and sent == opened.credentials():
                raise
        return await self._ask_once(opened, request, deadline)

    async def _ask_once(self, opened: _Opened, request: HttpRequest, deadline: _Deadline) -> ResponseStream:
        sessions = opened.sessions
        progress = sessions.begin()
        method = "GET" if request.change is None else request.change.method
        began = time.perf_counter()
        try:
            with deadline.enforce(progress.too_late):
                response = await sessions.ask(request, opened.access, progress)
        except BaseException as error:
            self._requests.record(method, NO_ANSWER, time.perf_counter() - began)
            from aiohttp import RedirectClientError  # already imported

            await sessions.release()
            if isinstance(error, ValueError) and not isinstance(error, (OSError, RedirectClientError)):
                raise ConfigError(f"the request is invalid: {message_of(error)}") from safe_cause(error)
            converted = convert_error(error, opened.server)
            if sessions.via and isinstance(converted, TransportError):
                add_detail(converted, sessions.via)
            if converted is None or converted is error:
                raise
            raise converted from safe_cause(error)
        self._requests.record(method, str(response.status), time.perf_counter() - began)
        body = ResponseStream(response, sessions, request.idle_timeout)
        if headers := response.headers.getall("Warning", ()):
            report_warnings(opened.server, warnings_of(headers), self._on_warning)
        if 200 <= response.status < 300:
            if encoding := encoding_of(response):
                await body.aclose()
                raise TransportError(
                    f"the response is encoded as {encoding!r}, though the request does not accept that: check the "
                    "proxies and gateways between this client and the API server"
                )
            return body
        try:
            refused = await error_of(response, body, deadline.remaining)
            if refused.status == 401 and opened.access.origin:
                add_detail(refused, opened.access.origin)
            raise refused
        finally:
            await body.aclose()

    async def _ready(self) -> _Opened:
        """Return the configuration for a request, with current credentials."""
        self._require_same_process()
        opened = self._opened
        if opened is None:
            return await self._renew(None)
        self._require_loop_of(opened)
        now = self._wall()
        if now < opened.renew_at:
            return opened
        if now < opened.expires:
            self._begin_loading()  # in the background: the old credentials are still valid
            return opened
        try:
            return await self._renew(opened)
        except ClientClosedError:
            raise
        except ConfigError:
            return opened  # the server's clock may be behind; if not, it answers 401

    def _require_same_process(self) -> None:
        """Check that this process was not forked since the client was opened: the kept connections are the parent's.

        Raises:
            ForkedError: It was.
        """
        if self._keep_connections:
            require_same_process(self._process, f"the client of {self.server}")
        elif self._process is not None and self._process.was_forked:
            self._opened = self._loading = self._process = None  # its requests end in the parent
            self._sessions = WeakSet()

    def _require_loop_of(self, opened: _Opened) -> None:
        """Check that kept connections belong to the running event loop."""
        if self._keep_connections and opened.loop is not asyncio.get_running_loop():
            raise WrongEventLoopError(
                f"the client of {self.server} was opened in another event loop: close it there, or make another client"
            )

    async def _renew(self, stale: _Opened | None) -> _Opened:
        """Return a configuration newer than ``stale``. Concurrent calls share one load, and its failure."""
        while True:
            if self._closed:
                raise ClientClosedError("the client is closed")
            if self._opened is not None and self._opened is not stale:
                return self._opened
            loading = self._begin_loading()
            self._waiters += 1
            try:
                await asyncio.wait((loading,))
            finally:
                self._waiters -= 1
                if not self._waiters and not self._keep_connections:
                    await self._end_loading()  # such a transport is never closed
            if not loading.cancelled():
                break
        outcome = loading.result()
        if isinstance(outcome, ConfigError):
            raise type(outcome)(str(outcome)) from outcome
        return outcome

    def _begin_loading(self) -> asyncio.Task[_Opened | ConfigError]:
        """Return the task that loads the configuration. It continues after a waiting request is cancelled."""
        if self._loading is None or self._loading.done():
            self._loading, self._process = asyncio.create_task(self._load_next()), current_process()
        elif self._loading.get_loop() is not asyncio.get_running_loop():
            raise WrongEventLoopError("the client is being opened in another event loop")
        return self._loading

    async def _end_loading(self) -> None:
        loading = self._loading
        if loading is not None and not loading.done():
            if loading.get_loop() is asyncio.get_running_loop():
                await finish(loading)
            else:
                self._loading = None  # the task belongs to another loop, which has probably ended

    async def _load_next(self) -> _Opened | ConfigError:
        stale = self._opened
        try:
            self._opened = await self._load(stale)
        except ConfigError as error:
            if stale is not None and self._wall() >= stale.renew_at:
                stale.renew_at = self._wall() + _RENEW_AGAIN
                logger.warning(
                    "%s: the credentials could not be renewed, and the old ones stay in use; next try in %g s: %s",
                    self.server,
                    _RENEW_AGAIN,
                    error,
                )
            return error
        return self._opened

    async def _load(self, stale: _Opened | None) -> _Opened:
        if stale is None:
            await to_thread(self._library.load)
        elif stale.access.token_file is not None and self._wall() >= stale.renew_at:
            # The minute is over: read the token file alone, unless it is gone.
            with suppress(ConfigError):
                stale.access.set_token(await to_thread(read_token, stale.access.token_file))
                renew_at = self._wall() + TOKEN_FILE_PERIOD
                return replace(stale, renew_at=renew_at, expires=stale.access.expires)
        access = await self._source.load(self._library, self._wall)
        try:
            return await self._open(access, stale)
        except ConfigError as error:
            if not access.name:
                raise
            raise ConfigError(f"{access.name}: {error}") from error

    async def _open(self, access: Access, stale: _Opened | None) -> _Opened:
        from .proxies import proxy_for  # imports aiohttp, which the library has imported already
        from .sessions import Sessions

        configuration = access.configuration
        check_url(configuration.host)
        proxy = proxy_for(configuration.host, configuration.proxy)
        identity, certificate_expires = b"", None
        if not access.api_client:
            identity, certificate_expires = await to_thread(_identity, access)
        times = (access.renew_at, access.expires, certificate_expires)
        if stale is not None and stale.identity == identity:
            # The server and the certificates are the same: keep the connections.
            return _Opened(access, identity, stale.sessions, *times)
        ssl_context = await to_thread(access.ssl_context)
        sessions = Sessions(configuration, ssl_context, proxy, keep=self._keep_connections)
        if proxy:
            origin = "proxy-url" if configuration.proxy else "the environment"
            sessions.via = f"requests go through the proxy {without_credentials(proxy)} from {origin}"
        self._sessions.add(sessions)
        if stale is not None:
            await stale.sessions.retire()
        return _Opened(access, identity, sessions, *times)


def _may_need_reload(error: ApiError | TransportError) -> bool:
    """Return whether reloaded credentials or certificate authorities can fix this error."""
    if isinstance(error, ApiError):
        return error.status == 401
    return isinstance(error.__cause__, SSLCertVerificationError)


async def _read(body: ResponseStream) -> bytes:
    """Return a whole body, and close its stream."""
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in body:
            chunks.append(chunk)
            size += len(chunk)
            if size > LONGEST_ANSWER:
                chunks.clear()  # the error's traceback keeps this frame alive
                raise TransportError(f"the response is larger than {LONGEST_ANSWER} bytes")
        return b"".join(chunks)
    finally:
        await body.aclose()


def _identity(access: Access) -> tuple[bytes, float | None]:
    """Return a digest of the server, the TLS files and the fixed headers: all but the token. Blocks.

    It comes with the wall time at which the client certificate expires; None if there is none.
    """
    configuration = access.configuration
    digest = hashlib.sha256(repr((access.headers, access.tls)).encode())
    names = ("host", "tls_server_name", "proxy")
    digest.update(repr([getattr(configuration, name, None) for name in names]).encode())
    contents = access.tls.read()
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    _, certificate, _ = contents
    return digest.digest(), expiry_of(certificate)
