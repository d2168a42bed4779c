"""What requests bring along: JSON, YAML or protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing import protobuf
from aioinformer.testing.encodings import JSON, PROTOBUF
from aioinformer.testing.errors import bad_request, too_large, unsupported_media_type
from aioinformer.testing.objects import LARGEST_BODY, parse, parse_yaml

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType


async def read_body(http: web.BaseRequest) -> bytes:
    """The body of a request, up to the server's limit.

    Raises:
        StatusError: 413.
    """
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise too_large(f"limit is {LARGEST_BODY}")
    return bytes(body)


async def read_object(http: web.BaseRequest, resource: ResourceType) -> Object:
    """The object that a request brings along, in any form that is taken.

    Raises:
        StatusError: 400 for what is no object, 415 for another form, and for protobuf of a kind that is not known.
    """
    body = await read_body(http)
    unrecognized = f"the object provided is unrecognized (must be of type {resource.kind})"
    refusal = f"{unrecognized}: couldn't get version/kind; json parse error"
    obj = value_in(body, http, resource.api_version, resource.kind, refusal)
    if not isinstance(obj, dict):
        raise bad_request(unrecognized)
    return obj


def value_in(
    body: bytes, http: web.BaseRequest, api_version: str, kind: str, refusal: str = "json parse error"
) -> Any:
    """What the body of a request says, in any form that is taken.

    Args:
        body: All of it.
        http: Says in which form it is; JSON if it does not say, as for the real server.
        api_version: What it should be of.
        kind: Likewise.
        refusal: How the message for what is no JSON begins.

    Raises:
        StatusError: 400 for what is not of its form, 415 for another form, and for protobuf of a kind that is not
            known.
    """
    match http.content_type if http.headers.get("Content-Type") else JSON.media_type:
        case JSON.media_type:
            return parse(body, refusal)
        case "application/yaml":
            return parse_yaml(body)
        case PROTOBUF.media_type:
            return protobuf.read_object(body, api_version, kind)
        case _:
            raise unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: "
                f"{JSON.media_type}, application/yaml, {PROTOBUF.media_type}"
            )
