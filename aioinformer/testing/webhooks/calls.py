"""HTTPS requests to webhooks, with the errors as client-go words them."""

from __future__ import annotations

import base64
import io
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from aioinformer.testing.storage.builtin import ENDPOINT_SLICES, SERVICES
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.objects import Object

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of the largest answer of a webhook that is read."""

_STATUSES = {
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_CERTIFICATES = {
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: "certificate signed by unknown authority",
    19: "certificate signed by unknown authority",
    20: "certificate signed by unknown authority",
    21: "certificate signed by unknown authority",
}
"""Go's words for OpenSSL's codes."""


class CallError(Exception):
    """A webhook was not reached, or did not answer 200."""


class Caller:
    """Sends reviews to webhooks. Its connections belong to the event loop of the first call.

    Args:
        cluster: Has the Services that webhooks name.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, client_config: Object, review: Object, timeout: int) -> bytes:
        """Return the body of a webhook's answer.

        Args:
            client_config: Where it is.
            review: What it is asked.
            timeout: Seconds.

        Raises:
            CallError: It was not reached, or did not answer 200.
        """
        shown, address, server_name = self._address(client_config)
        query = f"timeout={timeout}s"
        body = msgspec.json.encode(review)
        try:
            async with self._open_session().post(
                f"{address}{'&' if urlsplit(address).query else '?'}{query}",
                data=io.BytesIO(body),
                headers={"Content-Type": "application/json", "Accept": "application/json, */*"},
                ssl=self._context(client_config.get("caBundle") or ""),
                server_hostname=server_name,
                timeout=aiohttp.ClientTimeout(total=timeout),
                allow_redirects=False,
            ) as response:
                said = bytearray()
                async for chunk in response.content.iter_any():
                    said += chunk
                    if len(said) > LARGEST_ANSWER:
                        raise CallError(
                            f'Post "{shown}?{query}": the answer is larger than {LARGEST_ANSWER} bytes'
                        )
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(f'Post "{shown}?{query}": {_reason(error)}') from error
        if response.status == 200:
            return bytes(said)
        text = said.decode(errors="replace").strip()
        raise CallError(_STATUSES.get(response.status) or _server_error(response.status, text))

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            # A webhook may restart at any time, so no connection is used twice.
            connector = aiohttp.TCPConnector(force_close=True, limit=0)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            try:
                pem = base64.b64decode(bundle).decode("ascii", "ignore")
                context = ssl.create_default_context(cadata=pem or None)
            except (ValueError, ssl.SSLError) as error:
                raise CallError(
                    "unable to load root certificates: unable to parse bytes as PEM block"
                ) from error
            self._contexts[bundle] = context
        return context

    def _address(self, client_config: Object) -> tuple[str, str, str | None]:
        """Return a webhook's URL, the URL to connect to, and the name that its certificate must have."""
        if url := client_config.get("url"):
            return url, url, None
        service = client_config["service"]
        namespace, name, port = service["namespace"], service["name"], service["port"]
        path = "/" + (service.get("path") or "").removeprefix("/")
        server_name = f"{name}.{namespace}.svc"
        shown = f"https://{server_name}:{port}{path}"
        host, target = self._endpoint(namespace, name, port)
        return shown, f"https://{host}:{target}{path}", server_name

    def _endpoint(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Return the address and port behind a Service, from its EndpointSlices: this server has no Service network."""
        stored = self._cluster.find(SERVICES, namespace, name)
        if stored is None:
            raise CallError(f'service "{name}" not found')
        spec = load(SERVICES, stored).get("spec") or {}
        if spec.get("type") == "ExternalName":
            return spec.get("externalName", ""), port
        wanted = next(
            (declared for declared in spec.get("ports") or () if declared.get("port") == port), None
        )
        if wanted is None:
            raise CallError(f'no service port {port} found for service "{name}"')
        for listed in self._cluster.collection(ENDPOINT_SLICES).in_namespace(namespace):
            if listed.labels.get("kubernetes.io/service-name") != name:
                continue
            endpoint_slice = load(ENDPOINT_SLICES, listed)
            for target in endpoint_slice.get("ports") or ():
                if (target.get("name") or "") != (wanted.get("name") or ""):
                    continue
                for endpoint in endpoint_slice.get("endpoints") or ():
                    if (endpoint.get("conditions") or {}).get("ready", True) and endpoint.get("addresses"):
                        return endpoint["addresses"][0], target["port"]
        raise CallError(f'no endpoints available for service "{name}"')


def _reason(error: Exception) -> str:
    """Return why a request failed, in Go's words where they are known."""
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case aiohttp.ClientConnectorCertificateError():
            why = error.certificate_error
            known = _CERTIFICATES.get(getattr(why, "verify_code", 0))
            return f"tls: failed to verify certificate: x509: {known or getattr(why, 'verify_message', why)}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError():
            cause = error.os_error
            said = "connection refused" if isinstance(cause, ConnectionRefusedError) else str(cause)
            return f"dial tcp {error.host}:{error.port}: connect: {said}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
    return str(error) or type(error).__name__


def _server_error(status: int, text: str) -> str:
    if status >= 500 and text:
        shown = msgspec.json.encode(text).decode()
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    if status >= 500:
        return 'an error on the server ("unknown") has prevented the request from succeeding'
    return f"the server responded with the status code {status} but did not return more information ({text})"


def decode_answer(said: bytes, kind: type[Any]) -> Any:
    """Return a webhook's answer.

    Raises:
        CallError: It is no such review.
    """
    try:
        return msgspec.json.decode(said, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CallError(f"couldn't get version/kind; json parse error: {error}") from error
