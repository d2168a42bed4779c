"""What every answer over HTTP is made of: headers, objects, statuses, and the body of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import load, raw
from aioinformer.testing.scale import scale_of
from aioinformer.testing.views import PlainView, negotiate

if TYPE_CHECKING:
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredObject

JSON = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_BODY_LIMIT = 3 * 1024 * 1024


async def read_body(http: web.BaseRequest) -> bytes:
    """The body, up to the real server's limit.

    Raises:
        StatusError: 413.
    """
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > _BODY_LIMIT:
            message = f"Request entity too large: limit is {_BODY_LIMIT}"
            raise StatusError(413, "RequestEntityTooLarge", message)
    return bytes(body)


def show(
    http: web.BaseRequest, request: Request, resource: ResourceType, stored: StoredObject, status: int = 200
) -> web.Response:
    """An object, as the client wants to see it."""
    if request.subresource == "scale":
        return as_json(scale_of(resource, load(resource, stored)), status)
    view = negotiate(http.headers.get("Accept", ""), resource, request.query.get("includeObject", ""))
    body = raw(resource, stored) if isinstance(view, PlainView) else view.one(stored)
    return web.Response(body=body, status=status, headers=JSON)


def as_json(value: Any, status: int = 200) -> web.Response:
    """Anything else."""
    return web.Response(body=msgspec.json.encode(value) + b"\n", status=status, headers=JSON)


def success(status: int = 200, **details: str) -> web.Response:
    """A `Status` that says that all went well."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    given = {name: value for name, value in details.items() if value}
    if given:
        body["details"] = given
    if status != 200:
        body["code"] = status
    return as_json(body, status)


def refusal(error: StatusError) -> web.Response:
    """A `Status` that says what is wrong."""
    headers = dict(JSON)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return web.Response(body=error.body(), status=error.code, headers=headers)


def hang_up(http: web.BaseRequest, *, flush: bool) -> None:
    """Close a connection: at once, or after what was written has gone out."""
    transport = http.transport
    if transport is None:
        return
    if flush:
        transport.close()
    else:
        transport.abort()
