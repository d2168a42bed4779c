"""Client: connections to one API server, configured by a kubeconfig, a pod, a URL or an ApiClient."""

from __future__ import annotations

import encodings.idna  # noqa: F401 -- the first look-up of a host imports it, which blocks the event loop
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import anyio

from .._core.checks import require_seconds
from .._core.loops import AsyncOnly
from ..errors import ConfigError, DecodeError, shorten
from ..metrics import Sample
from ..objects.api_resources import APIResource
from ..objects.excerpts import begins
from ..objects.nesting import DECODE_ERRORS, decode_any
from .credentials import (
    InCluster,
    StaticURL,
    Wrapped,
    check_url,
    without_query,
)
from .discovery import Discovery
from .error_mapping import name_request
from .health import ServerHealth
from .kubeconfig import KubeConfig
from .libraries import KUBERNETES_ASYNCIO, library_named, library_of
from .library_transport import LibraryTransport
from .transport import JSON, READ_TIMEOUT, ByteStream, Change, Query, Transport
from .warning_headers import WarningHandler


class Client(AsyncOnly):
    """Sends requests to one API server, and owns the connections to it: one pool for calls, one for streams.

    An async context manager: entering reads the configuration, leaving closes all connections. Without entering, the
    first request opens the client, and you call ``close``. The constructor reads no files and imports no libraries.

    Credentials are renewed automatically: token and client certificate files are read again once a minute, exec
    plugins run again before their credentials expire, and a 401 renews the credentials and retries once. All requests
    share one renewal, and use the old credentials until those expire.

    A server warns of deprecated versions or unknown fields in its response headers. Each warning is logged once per
    server, at WARNING; with ``on_warning``, that function is called with each warning instead.

    Args:
        transport: Sends the requests.

    Raises:
        ConfigError: ``transport`` is not a Transport.
    """

    def __init__(self, transport: Transport) -> None:
        if not hasattr(transport, "stream"):
            raise ConfigError(
                f"Client(…) expects a Transport, got {shorten(transport)}: use Client.from_url(…), "
                "from_kubeconfig(), in_cluster() or wrap(api_client)"
            )
        self._transport = transport
        self._health = ServerHealth(transport)
        self._resources: dict[str, APIResource] = {}

    @classmethod
    def from_kubeconfig(
        cls,
        context: str | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        library: str = KUBERNETES_ASYNCIO,
        on_warning: WarningHandler | None = None,
    ) -> Client:
        """Return a client for a kubeconfig: contexts, client certificates, tokens, token files, exec plugins, OIDC.

        Args:
            context: The context's name; None for the current context when the client is opened.
            path: The file; None for those in ``$KUBECONFIG``, else ``~/.kube/config``.
            library: ``"kubernetes_asyncio"``, or ``"kubernetes.aio"`` of the official package from 36.0.1 on.
            on_warning: Called on the event loop with the text of each warning; None to log each once.

        Raises:
            ConfigError: ``library`` is unknown. Errors in the file are raised when the client is opened.
        """
        return cls(LibraryTransport(KubeConfig(context, path), library_named(library), on_warning=on_warning))

    @classmethod
    def from_environment(
        cls, *, library: str = KUBERNETES_ASYNCIO, on_warning: WarningHandler | None = None
    ) -> Client:
        """Return a client for this pod's cluster, or outside a pod for the kubeconfig.

        In a pod (``$KUBERNETES_SERVICE_HOST`` and ``$KUBERNETES_SERVICE_PORT`` are set) it is ``in_cluster()``,
        elsewhere ``from_kubeconfig()``.

        Args:
            library: As for ``from_kubeconfig``.
            on_warning: As for ``from_kubeconfig``.
        """
        if os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT"):
            return cls.in_cluster(library=library, on_warning=on_warning)
        return cls.from_kubeconfig(library=library, on_warning=on_warning)

    @classmethod
    def in_cluster(
        cls, *, library: str = KUBERNETES_ASYNCIO, on_warning: WarningHandler | None = None
    ) -> Client:
        """Return a client for the cluster that this pod runs in, with its service account.

        Args:
            library: As for ``from_kubeconfig``.
            on_warning: As for ``from_kubeconfig``.
        """
        return cls(LibraryTransport(InCluster(), library_named(library), on_warning=on_warning))

    @classmethod
    def from_url(
        cls,
        url: str,
        token: str | None = None,
        *,
        library: str = KUBERNETES_ASYNCIO,
        on_warning: WarningHandler | None = None,
    ) -> Client:
        """Return a client for a URL. TLS is verified with the system's certificate authorities.

        Args:
            url: ``"http://127.0.0.1:8001"`` (of ``kubectl proxy``), ``"https://api.example.com:6443"``.
            token: A bearer token.
            library: As for ``from_kubeconfig``.
            on_warning: As for ``from_kubeconfig``.

        Raises:
            ConfigError: ``url`` is not an http or https URL.
        """
        check_url(url)
        source = StaticURL(without_query(url), token)
        return cls(LibraryTransport(source, library_named(library), on_warning=on_warning))

    @classmethod
    def wrap(cls, api_client: Any, *, on_warning: WarningHandler | None = None) -> Client:
        """Return a client with the configuration, headers and TLS of a kubernetes_asyncio or kubernetes.aio ApiClient.

        The client opens its own connections, and never uses or closes those of the ApiClient. It uses only ``headers``
        of the configuration's ``client_session_kwargs``. A ``connection_pool_maxsize`` other than 100, the library's
        default, limits the number of concurrent calls; watches do not count.

        Later changes of its default headers (``set_default_header``) and of its configuration's ``host`` and
        ``api_key`` take effect with the next request. After any other change, wrap the ApiClient again. TLS settings
        come from the configuration's files, or from the SSLContext of a kubernetes.aio ApiClient.

        Args:
            api_client: The ApiClient.
            on_warning: As for ``from_kubeconfig``.

        Raises:
            ConfigError: ``api_client`` is not such an ApiClient.
        """
        return cls(LibraryTransport(Wrapped(api_client), library_of(api_client), on_warning=on_warning))

    @classmethod
    def of(cls, client: Any) -> Client:
        """Return a Client unchanged, or wrap an ApiClient without keeping connections, so that it needs no ``close``.

        Raises:
            ConfigError: ``client`` is neither.
        """
        if isinstance(client, Client):
            return client
        return cls(LibraryTransport(Wrapped(client), library_of(client), keep_connections=False))

    @property
    def server(self) -> str:
        """The URL of the API server, without credentials; ``""`` before the client is opened."""
        return self._transport.server

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context or of the pod; ``"default"`` before the client is opened."""
        return self._transport.namespace

    @property
    def transport(self) -> Transport:
        """The Transport that sends the requests."""
        return self._transport

    @property
    def health(self) -> ServerHealth:
        """The server's health, shared by all readers of this client: one of them probes an unreachable server."""
        return self._health

    @property
    def discovery(self) -> Discovery:
        """Finds resources by name, such as ``"certificates.cert-manager.io"``, and remembers them for this client."""
        return Discovery(self, self._resources)  # kept here, it would be a reference cycle

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of its requests, if its Transport counts them. See docs/observability.md."""
        samples: Callable[[], Iterator[Sample]] | None = getattr(self._transport, "samples", None)
        if samples is not None:
            yield from samples()

    async def open(self) -> None:
        """Read the configuration.

        Raises:
            ConfigError: The configuration is unusable.
        """
        await self._transport.open()
        anyio.get_cancelled_exc_class()  # imports anyio's backend; later that would block the event loop for 20 ms

    async def close(self) -> None:
        """Close every connection. Idempotent; requests after it raise ConfigError.

        Raises:
            WrongEventLoopError: Another running event loop opened it. The client stays open.
            ForkedError: The parent process opened it, before a fork: its connections stay open.
        """
        await self._transport.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """Return the body of a response; see ``Transport.get``."""
        require_seconds("timeout", timeout)
        with self._health.record_answers():
            return await self._transport.get(path, query, timeout=timeout)

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Send a change; see ``Transport.send``."""
        require_seconds("timeout", timeout)
        with self._health.record_answers():
            return await self._transport.send(change, path, query, timeout=timeout)

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        """Return the body of a response as it arrives; see ``Transport.stream``."""
        async with self._health.request_stream():
            return await self._transport.stream(path, query, idle_timeout=idle_timeout, accept=accept)

    async def get_json(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> Any:
        """Return the decoded JSON body of a response. For small bodies: decoding blocks the event loop.

        Raises:
            ApiError: The server answered with another status than 2xx.
            TransportError: There was no complete response.
            DecodeError: The body is not JSON.
            ConfigError: The configuration is unusable.
        """
        with name_request(f"get {path}"):
            body = await self.get(path, query, timeout=timeout)
            try:
                return decode_any(body)
            except DECODE_ERRORS as error:
                raise DecodeError(f"the response is not JSON: {error}; {begins(body)}") from error

    def __repr__(self) -> str:
        return f"<Client {self.server or 'not opened'}>"
