"""WebhookServer: webhooks over HTTPS, with certificates that are read again when their files change."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import stat
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from ..._core.bounded_server import Body, BoundedServer
from ..._core.certificates import expiry_of
from ..._core.tasks import finish
from ...errors import ConfigError
from ...metrics import CERTIFICATE_EXPIRY, Sample
from .app import LARGEST_CONVERSION, WebhookApp

logger = logging.getLogger(__name__)

POLL = 10.0
"""Seconds between checks of the certificate's files."""
MOST_CONNECTIONS = 300
"""Each API server keeps one for each of its requests that waits for a webhook; each takes a third of a megabyte."""
DRAIN = 5.0
"""Seconds in which the API server learns that a pod ends."""
_WRONG_TIME = (9, 10)
"""OpenSSL's codes for a certificate that is not valid yet, or no longer."""


class WebhookServer:
    """Serves webhooks over HTTPS while its block runs.

    Args:
        app: The webhooks.
        port: The port; 0 for a free one.
        cert: The file of the certificate, with its chain, in PEM.
        key: The file of the private key, in PEM.
        host: The address to listen on; None for all.
        poll: Seconds between checks of both files. A new certificate is used for new connections.
        drain: Seconds for which leaving the block still accepts connections, because the API server learns of the end
            of a pod a little later; None for 5 in a pod, and 0 elsewhere. Cancellation cuts it short.

    Attributes:
        port: The port.

    Raises:
        ConfigError: Entering raises one if the files are no certificate and key, or the port is in use.
    """

    def __init__(
        self,
        app: WebhookApp,
        *,
        port: int,
        cert: str | os.PathLike[str],
        key: str | os.PathLike[str],
        host: str | None = None,
        poll: float = POLL,
        drain: float | None = None,
    ) -> None:
        self._drain = default_drain() if drain is None else drain
        self.port = port
        self._app = app
        self._host = host
        self._certificate = _Certificate(os.fspath(cert), os.fspath(key))
        self._poll = poll
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._certificate.load()
        self._certificate.warn_if_invalid()
        async with AsyncExitStack() as starting:
            server = BoundedServer(
                self._serve, name="webhooks", connections=MOST_CONNECTIONS, most_bytes=LARGEST_CONVERSION
            )
            starting.push_async_callback(server.close, 5.0)
            self.port = await server.listen(
                self._host, self.port, "--webhook-port", tls=lambda: self._certificate.context
            )
            watching = asyncio.create_task(self._watch(), name="<WebhookServer> certificate")
            starting.push_async_callback(finish, watching)
            self._stack = starting.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None or issubclass(kind, asyncio.CancelledError):
                await asyncio.sleep(self._drain)
        finally:
            await self._stack.aclose()

    @property
    def certificate_problem(self) -> str:
        """Why the API server does not accept the certificate; ``""`` if its time and its key are right."""
        return self._certificate.problem

    @property
    def certificate_expires(self) -> float | None:
        """When the certificate expires, in seconds since 1970; None if that is not known."""
        return self._certificate.expires

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the certificate."""
        return self._certificate.samples()

    async def _serve(self, request: web.BaseRequest, body: Body) -> web.Response:
        answer = await self._app.answer(
            request.method,
            request.path,
            request.query_string,
            request.headers.get("Content-Type", ""),
            body,
        )
        return web.Response(
            status=answer.status, body=answer.body, headers={"Content-Type": answer.content_type}
        )

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            self._certificate.reload()
            self._certificate.warn_if_invalid()


def default_drain() -> float:
    """Return for how many seconds webhooks are served after the end began: no API server is to learn it elsewhere."""
    return DRAIN if os.environ.get("KUBERNETES_SERVICE_HOST") else 0.0


class _Certificate:
    """A certificate's files, and the TLS context that has their last good content."""

    def __init__(self, cert: str, key: str) -> None:
        self._cert, self._key = cert, key
        self._seen: list[tuple[int, int, int]] = []
        self._is_broken = False
        self.problem = self._pem = ""
        self._reads = self._failed_reads = 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def load(self) -> None:
        """Read the files.

        Raises:
            ConfigError: They are no certificate and key.
        """
        self._reads += 1
        try:
            seen = self._times()
            pem = Path(self._cert).read_text("ascii", "ignore")  # comments may be in any language
            # A new context: one keeps a chain for each type of key, and goes on serving the former.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._cert, self._key)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            self._failed_reads += 1
            raise ConfigError(
                f"the TLS certificate {self._cert} with the key {self._key} cannot be used: "
                f"{getattr(error, 'strerror', None) or error}"
            ) from error
        self._seen, self._pem, self.context = seen, pem, context
        self._warn_if_writable()

    def _warn_if_writable(self) -> None:
        """Log which of the files other users may write, and so answer in the place of the webhooks."""
        if os.name == "nt":  # it has no such permissions
            return
        for path in dict.fromkeys((self._cert, self._key)):
            if os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                logger.warning("%s may be written by other users: chmod go-w %s", path, path)

    def warn_if_invalid(self) -> None:
        """Log once why no client accepts the certificate at this time."""
        why = _invalidity(self._pem, self.context)
        problem = why and (
            f"the TLS certificate {self._cert} cannot be used ({why}): the API server calls no webhooks until it is "
            "renewed"
        )
        if problem and problem != self.problem:
            logger.warning("%s", problem)
        self.problem = problem

    def reload(self) -> None:
        """Read the files again if they have changed. While they cannot be used, their last content is."""
        try:
            if self._times() == self._seen:
                return
            self.load()
        except (OSError, ConfigError) as error:
            if not self._is_broken:
                logger.warning("%s; the last certificate is served until the files can be used", error)
            self._is_broken = True
            return
        self._is_broken = False
        logger.info("the TLS certificate %s has changed: new connections get the new one", self._cert)

    @property
    def expires(self) -> float | None:
        """When the certificate that is served expires, in seconds since 1970; None if that is not known."""
        return expiry_of(self._pem.encode())

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics; the names that controller-runtime has are its own."""
        yield Sample("certwatcher_read_certificate_total", "counter", {}, self._reads)
        yield Sample("certwatcher_read_certificate_errors_total", "counter", {}, self._failed_reads)
        if (expires := self.expires) is not None:
            yield Sample(CERTIFICATE_EXPIRY, "gauge", {"certificate": "webhook"}, expires)

    def _times(self) -> list[tuple[int, int, int]]:
        return [
            (status.st_mtime_ns, status.st_ino, status.st_size)
            for status in map(os.stat, (self._cert, self._key))
        ]


def _invalidity(pem: str, server: ssl.SSLContext) -> str:
    """Return why no client accepts a certificate at this time; ``""`` if its time and its key are right.

    ssl reads no dates from a file. So a client that trusts this certificate alone shakes hands with the server.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cadata=pem)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for end in (*ends, *ends):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            return error.verify_message if error.verify_code in _WRONG_TIME else ""
        except ssl.SSLError as error:  # such as a key of a curve that TLS does not have
            return str(error)
    return ""
