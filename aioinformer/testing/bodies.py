"""What requests bring along: JSON, YAML or protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing import protobuf
from aioinformer.testing.encodings import JSON, PROTOBUF
from aioinformer.testing.errors import StatusError, bad_request, unsupported_media_type
from aioinformer.testing.objects import parse, parse_yaml

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_LIMIT = 3 * 1024 * 1024


async def read_body(http: web.BaseRequest) -> bytes:
    """The body of a request, up to the server's limit.

    Raises:
        StatusError: 413.
    """
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > _LIMIT:
            raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_LIMIT}")
    return bytes(body)


async def read_object(http: web.BaseRequest, resource: ResourceType) -> Object:
    """The object that a request brings along, in any form that is taken.

    Raises:
        StatusError: 400 for what is no object, 415 for another form, and for protobuf of a kind that is not known.
    """
    body = await read_body(http)
    unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
    match http.content_type:
        case JSON.media_type | "application/octet-stream":
            obj = parse(body, f"{unrecognized}: couldn't get version/kind; json parse error")
        case "application/yaml":
            obj = parse_yaml(body)
        case PROTOBUF.media_type:
            obj = protobuf.read_object(body, resource.api_version, resource.kind)
        case _:
            raise unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: "
                f"{JSON.media_type}, application/yaml, {PROTOBUF.media_type}"
            )
    if not isinstance(obj, dict):
        raise bad_request(unrecognized)
    return obj


def value_in(body: bytes, content_type: str, api_version: str, kind: str) -> Any:
    """What a body says that is nothing to keep: options, a binding, a scale.

    Args:
        body: All of it.
        content_type: In which form it is; JSON if not protobuf.
        api_version: What it should be of.
        kind: Likewise.

    Raises:
        StatusError: 400 for what is neither.
    """
    if content_type == PROTOBUF.media_type:
        return protobuf.read_object(body, api_version, kind)
    return parse(body)
