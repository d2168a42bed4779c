"""Bodies of requests: JSON, YAML or protobuf."""

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
    """Read the body of a request.

    Raises:
        StatusError: 413 if the body exceeds the server's limit.
    """
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise too_large(f"limit is {LARGEST_BODY}")
    return bytes(body)


def object_in(body: bytes, http: web.BaseRequest, resource: ResourceType) -> Object:
    """Return the object in the body of a request.

    Raises:
        StatusError: 400 for an invalid object, 415 for another media type or protobuf of an unknown kind.
    """
    refusal = unrecognized(resource.kind)
    obj = value_in(body, http, resource.api_version, resource.kind, refusal)
    if not isinstance(obj, dict):
        raise bad_request(refusal.partition(":")[0])
    return obj


def unrecognized(kind: str) -> str:
    """Return the start of the real server's message for a body that is no JSON."""
    return f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error"


def value_in(
    body: bytes, http: web.BaseRequest, api_version: str, kind: str, refusal: str = "json parse error"
) -> Any:
    """Return the decoded body of a request.

    Args:
        body: The whole body.
        http: The request, whose Content-Type names the format; the default is JSON, as on the real server.
        api_version: The expected apiVersion.
        kind: The expected kind.
        refusal: The start of the message for invalid JSON.

    Raises:
        StatusError: 400 for a malformed body, 415 for another media type or protobuf of an unknown kind.
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
