"""What goes wrong on the way to the API server, as the errors of this package."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from ..errors import (
    AioInformerError,
    ApiError,
    DecodeError,
    TransportError,
)
from ..objects.decoders import DECODE_ERRORS
from ..objects.excerpts import begins
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
"""Reasons for answers that bring none of their own (apimachinery ``NewGenericServerResponse``)."""

_LONGEST_MESSAGE = 300

_PICTURE = ":\n\n"
"""Where aiohttp's parser begins to draw the bytes that it cannot read."""

_CREDENTIALS = re.compile(r"^([^/?#]*//)?.*@", re.DOTALL)
_WORD = re.compile(r"\S+")


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that an answer other than 2xx stands for.

    Args:
        status: The HTTP status.
        body: A Status, or whatever a proxy had to say; its text is then the message, shortened.
        retry_after: The header of this name: seconds, or a date.
    """
    try:
        said = status_of(body) or msgspec.json.decode(body)
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


def no_event(line: Any) -> DecodeError:
    """What is to be said of a line that says no event."""
    return DecodeError(f"a line of {len(line)} bytes that says no event; {begins(line)}")


def status_error(status: Any) -> ApiError:
    """The error that an ERROR event stands for, whose object should be a Status."""
    if isinstance(status, bytes):
        with suppress(*DECODE_ERRORS):
            status = msgspec.json.decode(status)
    if isinstance(status, Mapping) and status.get("kind", "Status") == "Status":
        return ApiError.from_status(status)
    return ApiError(0, "", f"the watch sent an ERROR that is no Status: {status!r:.200}")


def network_error(error: Any) -> AioInformerError | None:
    """The error of this package that a library's error stands for; None if it is no business of the network.

    OSError, TimeoutError and aiohttp.ClientError are TransportErrors; the ApiException of kubernetes_asyncio,
    kubernetes.aio and kubernetes is an ApiError. Libraries that were never imported are not imported here.
    """
    if isinstance(error, AioInformerError):
        return None
    if _is_unverified(error):
        return TransportError(
            f"the server's certificate cannot be verified: {words_of(error.certificate_error)}. In the kubeconfig's "
            "cluster, certificate-authority names who signed it, and tls-server-name whom it was issued to"
        )
    if isinstance(error, TimeoutError):
        return TransportError(f"timed out: {words_of(error)}")
    if isinstance(error, _class("aiohttp", "ClientConnectorError")):
        plain = getattr(error.os_error, "reason", "") == "WRONG_VERSION_NUMBER"
        hint = ": what answers there speaks no TLS; is it http://?" if plain else ""
        proxy = " to the proxy" if isinstance(error, _class("aiohttp", "ClientProxyConnectionError")) else ""
        return TransportError(f"cannot connect{proxy}: {words_of(error.os_error)}{hint}")
    if isinstance(error, _class("aiohttp", "RedirectClientError")):
        return TransportError(f"the server redirects to what cannot be asked: {words_of(error)}")
    if isinstance(error, _class("aiohttp", "TooManyRedirects")):
        last = without_credentials(_shortened(str(error.history[-1].url)))
        return TransportError(f"the server redirects again and again, at last from {last}")
    if isinstance(error, _class("aiohttp", "ClientHttpProxyError")):
        return TransportError(f"the proxy does not connect: {error.status} {words_of(error)}")
    if isinstance(error, _class("aiohttp", "ClientResponseError")):
        what = words_of(error).partition(" when reading")[
            0
        ]  # of a header that is too long, and may be a cookie
        return TransportError(f"the answer is not HTTP as it should be: {what}")
    if _holds_header_lines(error):
        return TransportError("the answer broke off within its header lines")
    if isinstance(error, _class("aiohttp.http_exceptions", "HttpProcessingError")):
        return TransportError(f"not HTTP as it should be: {_shortened(error.message.partition(_PICTURE)[0])}")
    if isinstance(error, (OSError, _class("aiohttp", "ClientError"))):
        return TransportError(words_of(error))
    for package in ("kubernetes_asyncio", "kubernetes.aio", "kubernetes"):
        if isinstance(error, _class(f"{package}.client.exceptions", "ApiException")):
            return _of_api_exception(error)
    return None


def ours(error: BaseException, what: str) -> AioInformerError | None:
    """This error, or what it stands for, saying once what was asked for; None for what is not ours to name."""
    found = error if isinstance(error, AioInformerError) else network_error(error)
    if isinstance(found, ApiError):
        found.context = found.context or what
    elif isinstance(found, (TransportError, DecodeError)) and not str(found).startswith(what):
        found.args = (f"{what}: {found}",)
    return found


def cause_of(error: Any) -> BaseException | None:
    """What may be kept of a library's error, as the cause of ours: nothing that quotes more than its message does.

    Several of aiohttp's hold the request with its Authorization, a proxy with its password, header lines of the answer
    with their cookies, or a line of its body, and their repr shows it.
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
def asking(what: str) -> Iterator[None]:
    """Around a request: its errors say what was asked for, and those of libraries are turned into ours."""
    try:
        yield
    except Exception as error:
        found = ours(error, what)
        if found is None or found is error:
            raise
        raise found from cause_of(error)


@contextmanager
def network_errors() -> Iterator[None]:
    """Around what is anybody's: what the network raises is turned into ours, all else is as it was."""
    try:
        yield
    except Exception as error:
        if (found := network_error(error)) is None:
            raise
        raise found from cause_of(error)


def without_credentials(url: str) -> str:
    """A URL for messages: what may be a name and a password before an ``@`` is left out."""
    return _CREDENTIALS.sub(r"\1", url)


def words_of(error: BaseException) -> str:
    """What a library's error says, in one line, without what may be a password in a URL of it."""
    # Some of aiohttp's draw a picture of the bytes that they cannot read.
    said = str(getattr(error, "message", "") or error)
    if isinstance(error, (_class("aiohttp", "InvalidURL"), _class("aiohttp", "RedirectClientError"))):
        return _shortened(without_credentials(said))
    return _shortened(_without_credentials_within(said)) or type(error).__name__


def _without_credentials_within(text: str) -> str:
    """A text without the name and password of any URL in it. It may be long: each word is looked through once."""

    def bare(word: re.Match[str]) -> str:
        begin, end = word[0].find("//"), word[0].rfind("@")
        return word[0][: begin + 2] + word[0][end + 1 :] if 0 <= begin < end else word[0]

    return _WORD.sub(bare, text)


def say_more(error: ApiError | TransportError, what: str) -> None:
    """Have an error say something more."""
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
    """Whether a library's error says that a server's certificate cannot be verified."""
    return isinstance(error, _class("aiohttp", "ClientConnectorCertificateError"))


def _holds_header_lines(error: Any) -> bool:
    """Whether the message of a library's error is what had come of an answer."""
    return isinstance(error, _class("aiohttp", "ServerDisconnectedError")) and not isinstance(
        error.message, str
    )


def _class(module: str, name: str) -> Any:
    """A class of a module if that was imported, else one that nothing is an instance of."""
    return getattr(sys.modules.get(module), name, ())


def _text_of(body: bytes) -> str:
    """What a body that is not JSON says to people."""
    text = body[:20_000].decode("utf-8", "replace")
    if "<" in text:
        import html  # for the pages of proxies, which are rare

        # What is not closed goes to the end: to look for the end of each anew would take seconds.
        text = re.sub(r"(?is)<(script|style|head)\b.*?(?:</\1>|(?=<body\b)|\Z)|<[^<>]*>", " ", text).strip()
        text = html.unescape(text[:4_000])  # &# and more than 4300 digits is a ValueError
    return _shortened(text)


def _shortened(text: str) -> str:
    """In one line."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


def _seconds(retry_after: str | None) -> float | None:
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    import email.utils  # for dates, which are rare

    try:
        date = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, date - time.time())
