"""HTTP answers: headers, objects, statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.http.negotiation import encoding_of_status
from aioinformer.testing.rules.scale import scale_of
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.testing.errors import StatusError
    from aioinformer.testing.http.encodings import Encoding
    from aioinformer.testing.http.views import View
    from aioinformer.testing.objects import Object
    from aioinformer.testing.requests import Request
    from aioinformer.testing.storage.storage import StoredObject

_WARNINGS_LENGTH = 4096
_SHORTENED_WARNING = 256
"""Characters of all warnings, and of one if all are longer."""


def headers(content_type: str) -> dict[str, str]:
    """Return the headers of an answer."""
    return {"Content-Type": content_type, "Cache-Control": "no-cache, private"}


def headers_of(view: View, *, stream: bool = False) -> dict[str, str]:
    """Return the headers of an answer with objects."""
    sent = headers(view.encoding.stream_type if stream else view.encoding.media_type)
    if view.resource.warning:
        sent["Warning"] = _warning_header(view.resource.warning)
    return sent


def show(request: Request, view: View, stored: StoredObject, status: int = 200) -> web.Response:
    """Return an answer with an object in the form that the client requested."""
    if request.subresource == "scale":
        return respond(view.encoding, scale_of(view.resource, load(view.resource, stored)), status)
    return web.Response(body=view.one(stored), status=status, headers=headers_of(view))


def respond(encoding: Encoding, obj: Object, status: int) -> web.Response:
    """Return an answer with any other object."""
    return web.Response(body=encoding.body(obj), status=status, headers=headers(encoding.media_type))


def success(encoding: Encoding, status: int = 200, **details: str) -> web.Response:
    """Return an answer with a `Status` of success."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    given = {name: value for name, value in details.items() if value}
    if given:
        body["details"] = given
    if status != 200:
        body["code"] = status
    return respond(encoding, body, status)


def refusal(http: web.BaseRequest, error: StatusError) -> web.Response:
    """Return an answer with a `Status` of failure."""
    response = respond(encoding_of_status(accept_of(http)), error.status, error.code)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    warn(response, error.warnings)
    return response


def warn(response: web.StreamResponse, texts: Iterable[str]) -> None:
    """Add warnings to an answer: each once, and shortened and left out as the real server does if there are many."""
    texts = dict.fromkeys(texts)
    is_too_long = sum(map(len, texts)) > _WARNINGS_LENGTH
    written = 0
    for text in texts:
        if written >= _WARNINGS_LENGTH:
            break
        shown = text[:_SHORTENED_WARNING] if is_too_long else text
        written += len(shown)
        response.headers.add("Warning", _warning_header(shown))


def _warning_header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'


def accept_of(http: web.BaseRequest) -> str:
    """Return the Accept header of a request."""
    return http.headers.get("Accept", "")


def hang_up(http: web.BaseRequest, *, flush: bool) -> None:
    """Close a connection: immediately, or with `flush` after the written data is sent."""
    transport = http.transport
    if transport is None:
        return
    if flush:
        transport.close()
    else:
        transport.abort()
