"""Client: one API server, by the configuration and authentication that people already have."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Self

from .._core.checks import require_seconds
from ..errors import ConfigError, DecodeError, shortened
from ..objects.excerpts import begins
from ..objects.nesting import DECODE_ERRORS, decode_any
from .credentials import (
    InCluster,
    StaticURL,
    Wrapped,
    check_url,
)
from .error_mapping import asking
from .health import ServerHealth
from .kubeconfig import KubeConfig
from .libraries import KUBERNETES_ASYNCIO, library_named, library_of
from .library_transport import LibraryTransport
from .transport import JSON, READ_TIMEOUT, ByteStream, Change, Query, Transport
from .warning_headers import WarningHandler


class Client:
    """Asks one API server, and owns the connections to it: those of streams apart from those of calls.

    An async context manager. Entering reads the configuration, leaving closes all connections. Usable without
    entering too: then the first request opens it, and ``close`` is yours to call. Making one loads and reads
    nothing.

    Credentials are kept current: token and client certificate files are read again once a minute, exec plugins run
    again when what they gave is about to expire, and an answer of 401 renews them and asks once more. They are renewed
    once for all requests, which go on with the old ones until those have expired.

    A server warns of deprecated versions, unknown fields and the like in the headers of its answers. Each warning is
    logged once for each server, at WARNING; with ``on_warning`` it is given to that function instead, each time.

    Args:
        transport: Where the bytes come from.

    Raises:
        ConfigError: It is no Transport.
    """

    def __init__(self, transport: Transport) -> None:
        if not hasattr(transport, "stream"):
            raise ConfigError(
                f"a Client takes a Transport, not {shortened(transport)}: use Client.from_url(…), "
                "from_kubeconfig(), in_cluster() or wrap(api_client)"
            )
        self._transport = transport
        self._health = ServerHealth(transport)

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
            context: The context's name; None for what is the current one when the client is opened.
            path: The file; None for those in ``$KUBECONFIG``, else ``~/.kube/config``.
            library: ``"kubernetes_asyncio"``, or ``"kubernetes.aio"`` of the official package from 37 on.
            on_warning: Called with the text of each warning of the server, in the event loop; None to log it once.

        Raises:
            ConfigError: There is no such library. What is wrong with the file shows up when the client is opened.
        """
        return cls(LibraryTransport(KubeConfig(context, path), library_named(library), on_warning=on_warning))

    @classmethod
    def from_environment(
        cls, *, library: str = KUBERNETES_ASYNCIO, on_warning: WarningHandler | None = None
    ) -> Client:
        """Return a client for the cluster of this pod, or else of the kubeconfig.

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
        """Return a client for a URL. TLS is verified by the authorities that the machine trusts.

        Args:
            url: ``"http://127.0.0.1:8001"`` (of ``kubectl proxy``), ``"https://api.example.com:6443"``.
            token: A bearer token.
            library: As for ``from_kubeconfig``.
            on_warning: As for ``from_kubeconfig``.

        Raises:
            ConfigError: It is no URL.
        """
        check_url(url)
        source = StaticURL(url.rstrip("/"), token)
        return cls(LibraryTransport(source, library_named(library), on_warning=on_warning))

    @classmethod
    def wrap(cls, api_client: Any, *, on_warning: WarningHandler | None = None) -> Client:
        """An ApiClient of kubernetes_asyncio or kubernetes.aio: its configuration, headers and TLS.

        Its connections are left alone: this client makes and closes its own, and never closes the ApiClient. Of its
        configuration's ``client_session_kwargs`` the ``headers`` alone count. A ``connection_pool_maxsize`` other than
        100, the library's default, limits how many calls may be under way; watches do not count.

        Later changes of its default headers (``set_default_header``) and of its configuration's ``host`` and
        ``api_key`` take effect with the next request. For any other change, wrap it again. TLS settings come from the
        configuration's files, or from the SSLContext that an ApiClient of kubernetes.aio has.

        Args:
            api_client: What to wrap.
            on_warning: As for ``from_kubeconfig``.

        Raises:
            ConfigError: It is no such ApiClient.
        """
        return cls(LibraryTransport(Wrapped(api_client), library_of(api_client), on_warning=on_warning))

    @classmethod
    def of(cls, client: Any) -> Client:
        """Return a Client as it is, or wrap an ApiClient without keeping connections, so that it needs no closing.

        Raises:
            ConfigError: It is neither.
        """
        if isinstance(client, Client):
            return client
        return cls(LibraryTransport(Wrapped(client), library_of(client), keep_connections=False))

    @property
    def server(self) -> str:
        """The URL of the API server, without credentials, known once opened; ``""`` before."""
        return self._transport.server

    @property
    def namespace(self) -> str:
        """The namespace that the kubeconfig's context or the pod is in, known once opened; else ``"default"``."""
        return self._transport.namespace

    @property
    def transport(self) -> Transport:
        """Where the bytes come from."""
        return self._transport

    @property
    def health(self) -> ServerHealth:
        """The server's health, shared by all readers of this client: one of them probes a server that is down."""
        return self._health

    async def open(self) -> None:
        """Read the configuration.

        Raises:
            ConfigError: It cannot work.
        """
        await self._transport.open()

    async def close(self) -> None:
        """Close every connection. Idempotent; requests after it raise ConfigError.

        Raises:
            WrongEventLoopError: It was opened in another event loop, which is running: nothing is closed.
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
        """The body of an answer; see ``Transport.get``."""
        require_seconds("timeout", timeout)
        with self._health.noting_answers():
            return await self._transport.get(path, query, timeout=timeout)

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Ask for a change; see ``Transport.send``."""
        require_seconds("timeout", timeout)
        with self._health.noting_answers():
            return await self._transport.send(change, path, query, timeout=timeout)

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        """The body of an answer as it arrives; see ``Transport.stream``."""
        async with self._health.asking():
            return await self._transport.stream(path, query, idle_timeout=idle_timeout, accept=accept)

    async def get_json(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> Any:
        """The body of an answer, decoded. For small ones: decoding is one step on the event loop.

        Raises:
            ApiError: The server answered with anything but 2xx.
            TransportError: No usable answer came.
            DecodeError: The answer is not JSON.
            ConfigError: The configuration cannot work.
        """
        with asking(f"get {path}"):
            body = await self.get(path, query, timeout=timeout)
            try:
                return decode_any(body)
            except DECODE_ERRORS as error:
                raise DecodeError(f"the answer is not JSON: {error}; {begins(body)}") from error

    def __repr__(self) -> str:
        return f"<Client {self.server or 'not opened'}>"
