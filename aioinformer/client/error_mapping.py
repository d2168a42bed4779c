"""Convert errors of aiohttp, kubernetes_asyncio and the network into errors of this package."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from ..errors import (
    AioInformerError,
    ApiError,
    DecodeError,
    TransportError,
)
from ..objects.excerpts import begins
from ..objects.nesting import DECODE_ERRORS, decode_any
from ..objects.protobuf import status_of

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""Reasons for responses that are not a Status (apimachinery ``NewGenericServerResponse``)."""

_LONGEST_MESSAGE = 300

_CREDENTIALS = re.compile(r"^([^/?#]*//)?.*@", re.DOTALL)
_WORD = re.compile(r"\S+")


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error for a response whose status is not 2xx.

    Args:
        status: The HTTP status.
        body: A Status, or a proxy's text or page: then its text, shortened, is the message.
        retry_after: The Retry-After header: seconds, or a date.
    """
    try:
        said = status_of(body) or decode_any(body)
    except DECODE_ERRORS:
        said = None
    if isinstance(said, dict) and said.get("kind") == "Status":
        error = ApiError.from_status(said)
        error.status = error.status or status
    else:
        error = ApiError(status, _REASONS.get(status, ""), _text_of(body))
    seconds = _seconds(retry_after)
    if seconds is not None and error.retry_after is None:
        error.details["retryAfterSeconds"] = seconds
    return error


def invalid_event(line: Any) -> DecodeError:
    """Return the error for a line of a watch that is not an event."""
    return DecodeError(f"a line of {len(line)} bytes is not a watch event; {begins(line)}")


def status_error(status: Any) -> ApiError:
    """Return the error for an ERROR event, whose object should be a Status."""
    if isinstance(status, bytes):
        with suppress(*DECODE_ERRORS):
            status = decode_any(status)
    if isinstance(status, Mapping) and status.get("kind", "Status") == "Status":
        return ApiError.from_status(status)
    return ApiError(0, "", f"the watch sent an ERROR event that is not a Status: {status!r:.200}")


def network_error(error: Any) -> AioInformerError | None:
    """Return this package's error for a library's error, or None if the network did not cause it.

    OSError, TimeoutError and aiohttp.ClientError become TransportErrors; the ApiException of kubernetes_asyncio,
    kubernetes.aio and kubernetes becomes an ApiError. Does not import these libraries.
    """
    if isinstance(error, AioInformerError):
        return None
    if _is_unverified(error):
        return TransportError(
            f"the server's certificate cannot be verified: {message_of(error.certificate_error)}. In the kubeconfig's "
            "cluster, set certificate-authority to the CA that signed it and tls-server-name to a name in it"
        )
    if isinstance(error, TimeoutError):
        return TransportError(f"timed out: {message_of(error)}")
    if isinstance(error, _class("aiohttp", "ClientConnectorError")):
        plain = getattr(error.os_error, "reason", "") == "WRONG_VERSION_NUMBER"
        hint = ": the server does not speak TLS; should the URL begin with http://?" if plain else ""
        proxy = " to the proxy" if isinstance(error, _class("aiohttp", "ClientProxyConnectionError")) else ""
        return TransportError(f"cannot connect{proxy}: {message_of(error.os_error)}{hint}")
    if isinstance(error, _class("aiohttp", "RedirectClientError")):
        return TransportError(f"the server redirects to an unusable URL: {message_of(error)}")
    if isinstance(error, _class("aiohttp", "TooManyRedirects")):
        last = without_credentials(_shorten(str(error.history[-1].url)))
        return TransportError(f"the server redirects too many times, the last time from {last}")
    if isinstance(error, _class("aiohttp", "ClientHttpProxyError")):
        reason = _shorten(_without_credentials_within(error.message))
        return TransportError(f"the proxy refused to connect: {error.status} {reason}")
    parser_error = _class("aiohttp.http_exceptions", "HttpProcessingError")
    if isinstance(error, (_class("aiohttp", "ClientResponseError"), parser_error)):
        while isinstance(error.__cause__, parser_error):
            error = error.__cause__
        # Its text quotes the response, which may hold a cookie.
        return TransportError(f"the response is not valid HTTP ({type(error).__name__})")
    if _holds_header_lines(error):
        return TransportError("the connection ended within the response headers")
    if isinstance(error, (OSError, _class("aiohttp", "ClientError"))):
        return TransportError(message_of(error))
    for package in ("kubernetes_asyncio", "kubernetes.aio", "kubernetes"):
        if isinstance(error, _class(f"{package}.client.exceptions", "ApiException")):
            return _of_api_exception(error)
    return None


def convert_error(error: BaseException, what: str) -> AioInformerError | None:
    """Return this package's error for an error, with the request in its message; None for unrelated errors.

    Args:
        error: An error of this package or of a library.
        what: The request. It is not added twice.
    """
    converted = error if isinstance(error, AioInformerError) else network_error(error)
    if isinstance(converted, ApiError):
        converted.context = converted.context or what
    elif isinstance(converted, (TransportError, DecodeError)) and not str(converted).startswith(what):
        converted.args = (f"{what}: {converted}",)
    return converted


def raise_converted(error: Exception, what: str) -> NoReturn:
    """Raise this package's error for an error, with the request in its message; an unrelated error as it is.

    Args:
        error: An error of this package or of a library.
        what: The request.
    """
    converted = convert_error(error, what)
    if converted is None or converted is error:
        raise error
    raise converted from error


def safe_cause(error: Any) -> BaseException | None:
    """Return what can be the ``__cause__`` of our error without exposing secrets, or None.

    Several aiohttp errors hold the request with its Authorization header, the proxy's password, response headers with
    cookies, or a line of the body, and show it in their repr.
    """
    kept: BaseException | None = error
    if _is_unverified(error):
        kept = error.certificate_error
    elif isinstance(error, _class("aiohttp", "ClientConnectorError")):
        kept = error.os_error
    elif (
        _holds_header_lines(error)
        or isinstance(
            error,
            (
                _class("aiohttp", "ClientResponseError"),
                _class("aiohttp", "InvalidURL"),
                _class("aiohttp", "RedirectClientError"),
                _class("aiohttp.http_exceptions", "HttpProcessingError"),
            ),
        )
        or _without_credentials_within(str(error)) != str(error)
    ):
        kept = None
    return kept


@contextmanager
def name_request(what: str) -> Iterator[None]:
    """Convert the errors of a request into errors of this package that name the request."""
    try:
        yield
    except Exception as error:
        converted = convert_error(error, what)
        if converted is None or converted is error:
            raise
        raise converted from safe_cause(error)


@contextmanager
def network_errors() -> Iterator[None]:
    """Convert network errors into errors of this package; other errors pass unchanged."""
    try:
        yield
    except Exception as error:
        if (converted := network_error(error)) is None:
            raise
        raise converted from safe_cause(error)


def without_credentials(url: str) -> str:
    """Return a URL for messages, without the name and password before an ``@``."""
    return _CREDENTIALS.sub(r"\1", url)


def message_of(error: BaseException) -> str:
    """Return the message of a library's error in one line, without passwords in URLs."""
    message = str(error)
    if isinstance(error, (_class("aiohttp", "InvalidURL"), _class("aiohttp", "RedirectClientError"))):
        return _shorten(without_credentials(message))
    return _shorten(_without_credentials_within(message)) or type(error).__name__


def _without_credentials_within(text: str) -> str:
    """Return a text without the names and passwords of the URLs in it. Linear in the text's length."""

    def bare(word: re.Match[str]) -> str:
        begin, end = word[0].find("//"), word[0].rfind("@")
        return word[0][: begin + 2] + word[0][end + 1 :] if 0 <= begin < end else word[0]

    return _WORD.sub(bare, text)


def add_detail(error: ApiError | TransportError, what: str) -> None:
    """Append a detail to an error's message."""
    if isinstance(error, ApiError):
        error.message = f"{error.message}; {what}" if error.message else what
    else:
        error.args = (f"{error}; {what}",)


def _of_api_exception(error: Any) -> ApiError:
    body = error.body if error.body is not None else b""
    headers = error.headers or {}
    converted = api_error(
        int(error.status or 500),
        body if isinstance(body, bytes) else str(body).encode(),
        headers.get("Retry-After"),
    )
    converted.message = converted.message or str(error.reason or "")
    return converted


def _is_unverified(error: Any) -> bool:
    """Return whether an error says that the server's certificate cannot be verified."""
    return isinstance(error, _class("aiohttp", "ClientConnectorCertificateError"))


def _holds_header_lines(error: Any) -> bool:
    """Return whether an error holds the response headers that had arrived, in place of a text."""
    return isinstance(error, _class("aiohttp", "ServerDisconnectedError")) and not isinstance(
        error.message, str
    )


def _class(module: str, name: str) -> Any:
    """Return a class of a module if that was imported; else ``()``, for an isinstance that is false."""
    return getattr(sys.modules.get(module), name, ())


def _text_of(body: bytes) -> str:
    """Return the readable text of a body that is not JSON."""
    text = body[:20_000].decode("utf-8", "replace")
    if "<" in text:
        import html  # only proxies send pages, and rarely

        # An element that is not closed extends to the end: searching for each end again would take seconds.
        text = re.sub(r"(?is)<(script|style|head)\b.*?(?:</\1>|(?=<body\b)|\Z)|<[^<>]*>", " ", text).strip()
        text = html.unescape(text[:4_000])  # "&#" with more than 4300 digits is a ValueError
    return _shorten(text)


def _shorten(text: str) -> str:
    """Return a text in one line, cut after 300 characters."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


def _seconds(retry_after: str | None) -> float | None:
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    import email.utils  # dates are rare

    try:
        date = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, date - time.time())
