"""WebhookServer: webhooks over HTTPS, with certificates that are read again when their files change."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from ..._core.http_server import HTTPServer
from ..._core.tasks import finish
from ...errors import ConfigError
from ..listening import listen
from .app import WebhookApp

logger = logging.getLogger(__name__)

POLL = 10.0
"""Seconds between checks of the certificate's files."""
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
    ) -> None:
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
            server = HTTPServer(self._serve, access_log=None)
            runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=5.0)
            await runner.setup()
            starting.push_async_callback(runner.cleanup)
            context = self._certificate.context
            await listen(runner, self._host, self.port, "--webhook-port", ssl_context=context)
            self.port = runner.addresses[0][1]
            watching = asyncio.create_task(self._watch(), name="<WebhookServer> certificate")
            starting.push_async_callback(finish, watching)
            self._stack = starting.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        found = await self._app.answer(
            request.method,
            request.path,
            request.query_string,
            request.headers.get("Content-Type", ""),
            request.content.iter_any(),
        )
        response = web.Response(
            status=found.status, body=found.body, headers={"Content-Type": found.content_type}
        )
        if not request.content.is_eof():
            response.force_close()  # the rest of a body that is too large is not read
        return response

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            self._certificate.reload()
            self._certificate.warn_if_invalid()


class _Certificate:
    """A certificate's files, and the TLS context that has their last good content."""

    def __init__(self, cert: str, key: str) -> None:
        self._cert, self._key = cert, key
        self._seen: list[tuple[int, int, int]] = []
        self._is_broken = False
        self._warned = self._pem = ""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def load(self) -> None:
        """Read the files.

        Raises:
            ConfigError: They are no certificate and key.
        """
        try:
            seen = self._times()
            pem = Path(self._cert).read_text("ascii", "ignore")  # comments may be in any language
            # First elsewhere: a failure would leave the context with half of the pair.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._cert, self._key)
            self.context.load_cert_chain(self._cert, self._key)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise ConfigError(
                f"the TLS certificate {self._cert} with the key {self._key} cannot be used: "
                f"{getattr(error, 'strerror', None) or error}"
            ) from error
        self._seen, self._pem = seen, pem

    def warn_if_invalid(self) -> None:
        """Log once why no client accepts the certificate at this time."""
        why = _invalidity(self._pem, self.context)
        if why and why != self._warned:
            logger.warning(
                "the TLS certificate %s cannot be used (%s): the API server calls no webhooks until it is renewed",
                self._cert, why,
            )  # fmt: skip
        self._warned = why

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

    def _times(self) -> list[tuple[int, int, int]]:
        return [
            (found.st_mtime_ns, found.st_ino, found.st_size)
            for found in map(os.stat, (self._cert, self._key))
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
