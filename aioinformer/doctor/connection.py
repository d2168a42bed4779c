"""Whether the server is reached, speaks TLS that can be trusted, and what its clock shows."""

from __future__ import annotations

import socket
import ssl
import time
from asyncio import open_connection
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import anyio

from ..client.credentials import Access
from ..client.error_mapping import message_of, without_credentials
from ..client.libraries import to_thread
from ..client.proxies import proxy_for
from ..objects.nesting import DECODE_ERRORS, decode_any
from .findings import Finding, Level
from .times import describe_seconds, judge_expiry, validity_of

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/version"
"""Anonymous users may read it, and each answer has a date."""

LARGEST_ANSWER = 65_536
"""Bytes of the answer that are read."""

SLOW = 1.0
"""Seconds for a first answer from which on it is called slow."""

SKEW_WARNED = 10.0
SKEW_FAULT = 120.0
"""Seconds that two clocks may differ."""

_CHECK_CA = (
    "In the kubeconfig's cluster, set certificate-authority to the CA that signed the server's certificate"
)
_CERTIFICATE_FAULTS = {
    9: ("the server's certificate is not valid yet", "Compare the clocks of this machine and of the server"),
    10: (
        "the server's certificate has expired",
        "Renew it (kubeadm certs renew all), or compare the clocks of this machine and of the server",
    ),
    18: ("the server's certificate signs itself, and is not trusted", _CHECK_CA),
    19: ("the server's certificate is signed by a CA that is not trusted", _CHECK_CA),
    20: ("the server's certificate is signed by a CA that is not trusted", _CHECK_CA),
    21: ("the server's certificate is signed by a CA that is not trusted", _CHECK_CA),
    62: (
        "the server's certificate is not for this host",
        "Use a host name of the certificate in the URL, or set tls-server-name in the kubeconfig's cluster",
    ),
    64: (
        "the server's certificate is not for this address",
        "Use a name or address of the certificate in the URL, or set tls-server-name in the kubeconfig's cluster",
    ),
}
"""By OpenSSL's codes. 7, a signature that does not fit, comes from a CA of the same name."""
_CERTIFICATE_FAULTS[7] = _CERTIFICATE_FAULTS[20]


class Answer(NamedTuple):
    """The server's answer to a request without credentials.

    Attributes:
        status: The HTTP status.
        body: The beginning of the body.
        seconds: How long it took to arrive, with the connection.
        skew: Seconds that the server's clock is ahead of this one; None if the answer has no date.
        certificate: The server's verified certificate, as ``ssl`` describes it; empty if it is not verified, and for
            proxies.
    """

    status: int
    body: bytes
    seconds: float
    skew: float | None
    certificate: dict[str, Any]


async def ask(access: Access, wall: Callable[[], float]) -> Answer:
    """Send a request without credentials.

    Args:
        access: The server.
        wall: The wall clock.

    Raises:
        aiohttp.ClientError, OSError: There was no answer.
    """
    import aiohttp

    configuration = access.configuration
    url, name = without_credentials(configuration.host), getattr(configuration, "tls_server_name", None)
    context, proxy = await to_thread(access.ssl_context), proxy_for(configuration.host, configuration.proxy)
    certificate = {} if proxy else await _certificate_of(url, context, name)
    began = time.perf_counter()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
        session.get(
            f"{url}{PATH}", ssl=context, server_hostname=name, proxy=proxy, allow_redirects=False
        ) as response,
    ):
        received, seconds = wall(), time.perf_counter() - began
        body = await response.content.read(LARGEST_ANSWER)
        date = _time_of(response.headers.get("Date", ""))
        skew = None if date is None else date + 0.5 - received  # the date has whole seconds
        return Answer(response.status, body, seconds, skew, certificate)


async def _certificate_of(url: str, context: ssl.SSLContext, name: str | None) -> dict[str, Any]:
    """Return the server's certificate if it is verified; aiohttp does not keep it.

    Raises:
        OSError: The server is not reached, or its certificate is refused.
    """
    parts = urlsplit(url)
    if parts.scheme != "https":
        return {}
    _, writer = await open_connection(parts.hostname, parts.port or 443, ssl=context, server_hostname=name)
    certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
    writer.transport.abort()
    return certificate


def _time_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None


async def speaks_tls(url: str) -> bool:
    """Return whether the server of a URL with http:// speaks TLS."""
    parts = urlsplit(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        _, writer = await open_connection(parts.hostname, parts.port or 80, ssl=context)
    except OSError:
        return False
    writer.transport.abort()
    return True


def explain_failure(error: BaseException, url: str, *, speaks_tls: bool) -> Finding:
    """Return why there was no answer.

    Args:
        error: Of ``ask``.
        url: The server's.
        speaks_tls: Whether a server with an http:// URL speaks TLS.
    """
    cause = cause_of(error)
    host = urlsplit(url).hostname or ""

    def fault(check: str, what: str, do: str) -> Finding:
        return Finding(check, Level.FAULT, what, do)

    if isinstance(cause, ssl.SSLCertVerificationError):
        what, do = _CERTIFICATE_FAULTS.get(
            cause.verify_code, ("the server's certificate cannot be verified", _CHECK_CA)
        )
        return fault("tls", f"{what}: {cause.verify_message or message_of(cause)}", do)
    if speaks_tls:
        return fault("tls", f"{url} speaks TLS, and its URL begins with http://", "Write https:// in the URL")
    if isinstance(cause, ssl.SSLError):
        if cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            do = "Write http:// in the URL, or the port of the API server, such as 6443"
            return fault("tls", f"{url} does not speak TLS", do)
        do = "Look at the server's log: it may refuse the client certificate or the version of TLS"
        return fault("tls", f"TLS fails: {message_of(cause)}", do)
    if isinstance(cause, socket.gaierror):
        do = "Check the host in the URL, and this machine's DNS"
        return fault("server", f"the host {host} cannot be resolved: {message_of(cause)}", do)
    if isinstance(cause, ConnectionRefusedError):
        do = "Start the server, or correct the port in the URL"
        return fault("server", f"{url} refuses connections: nothing listens there", do)
    if isinstance(cause, TimeoutError):
        do = "Check the address, firewalls and proxies on the way; kubectl get --raw /version shows the same"
        return fault("server", f"{url} does not answer", do)
    text = f"{url}: {type(cause).__name__}: {message_of(cause)}"
    return fault("server", text, "Check the address and the proxies on the way")


def cause_of(error: BaseException) -> BaseException:
    """Return the error of the operating system or of OpenSSL inside an error of aiohttp."""
    for name in ("certificate_error", "os_error"):
        inner = getattr(error, name, None)
        if isinstance(inner, BaseException):
            return inner
    return error


def judge_answer(answer: Answer, url: str) -> Finding:
    """Return whether an API server answered."""
    if answer.status >= 500:
        do = "Wait until the server is up; behind a load balancer, look at its back ends"
        return Finding("server", Level.FAULT, f"{url} answers {answer.status}", do)
    if answer.status not in (401, 403) and version_in(answer.body) is None:
        do = "Check host, port and path of the URL: another program or a proxy answers there"
        return Finding(
            "server", Level.FAULT, f"{url} answers {answer.status}, but is no Kubernetes API server", do
        )
    text = f"{url} answers in {describe_seconds(answer.seconds)}"
    if answer.seconds > SLOW:
        do = "Look at the network, DNS and proxies on the way, and at the server's load"
        return Finding("server", Level.WARNING, text, do)
    return Finding("server", Level.OK, text)


def version_in(body: bytes) -> str | None:
    """Return the version in an answer to ``/version``; None if it has none."""
    try:
        content = decode_any(body)
    except DECODE_ERRORS:
        return None
    version = content.get("gitVersion") if isinstance(content, dict) else None
    return version if isinstance(version, str) else None


def judge_clock(skew: float | None) -> Finding:
    """Return whether the clocks of this machine and of the server agree.

    Args:
        skew: Seconds that the server's clock is ahead; None if it is not known.
    """
    if skew is None:
        return Finding("clock", Level.NOTE, "not checked: the server's answer has no date")
    if abs(skew) <= SKEW_WARNED:
        return Finding("clock", Level.OK, "this machine's clock agrees with the server's")
    direction = "behind" if skew > 0 else "ahead of"
    text = f"this machine's clock is {describe_seconds(skew)} {direction} the server's"
    do = "Let NTP set both: with a wrong clock, tokens and certificates count as expired or not yet valid"
    return Finding("clock", Level.FAULT if abs(skew) >= SKEW_FAULT else Level.WARNING, text, do)


def judge_tls(url: str, certificate: dict[str, Any], now: float, *, is_verified: bool) -> Finding:
    """Return whether the way to the server is encrypted, and for how long its certificate is valid."""
    if not url.startswith("https://"):
        return Finding("tls", Level.NOTE, "not encrypted: the URL begins with http://, as of kubectl proxy")
    if not is_verified:
        do = "Set certificate-authority in the kubeconfig's cluster, and remove insecure-skip-tls-verify"
        return Finding(
            "tls", Level.WARNING, "the server's certificate is not verified: others can read along", do
        )
    if not certificate:
        return Finding("tls", Level.OK, "the server's certificate is trusted")
    begins, ends = validity_of(certificate)
    do = "Renew it, such as by kubeadm certs renew all"
    return judge_expiry("tls", "the server's certificate", ends, now, do, lifetime=ends - begins)


async def connect(access: Access, wall: Callable[[], float], seconds: float) -> tuple[Answer | None, Finding]:
    """Return the server's answer, None if there was none; and whether it is an API server that is reached.

    Args:
        access: The server.
        wall: The wall clock.
        seconds: For the answer.
    """
    import aiohttp

    url = without_credentials(str(access.configuration.host))
    try:
        with anyio.fail_after(seconds):
            answer = await ask(access, wall)
    except (aiohttp.ClientError, OSError) as error:
        is_other_scheme = False
        if url.startswith("http://") and not isinstance(
            cause_of(error), (ConnectionRefusedError, TimeoutError)
        ):
            with anyio.move_on_after(seconds):
                is_other_scheme = await speaks_tls(url)
        return None, explain_failure(error, url, speaks_tls=is_other_scheme)
    if answer.status == 400 and b"HTTPS server" in answer.body and url.startswith("http://"):
        return None, explain_failure(OSError(), url, speaks_tls=True)
    return answer, judge_answer(answer, url)
