"""Bodies of requests: JSON, YAML or protobuf."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing import protobuf
from aioinformer.testing.errors import StatusError, bad_request, too_large
from aioinformer.testing.http.encodings import JSON, PROTOBUF
from aioinformer.testing.http.yaml_loader import yaml_loader
from aioinformer.testing.objects import LARGEST_BODY

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
    refusal = (
        f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get version/kind; json parse "
        "error"
    )
    obj = value_in(body, http, resource.api_version, resource.kind, refusal)
    if not isinstance(obj, dict | None):
        raise bad_request(refusal.partition(":")[0])
    return obj or {}


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
            raise StatusError(
                415,
                message="the body of the request was in an unknown format - accepted media types include: "
                f"{JSON.media_type}, application/yaml, {PROTOBUF.media_type}",
            )


def parse(body: bytes, refusal: str = "json parse error") -> Any:
    """Decode JSON from a client.

    Raises:
        StatusError: 400 for invalid JSON, with a message that starts with `refusal`.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"{refusal}: {error}") from error


def parse_yaml(body: bytes) -> Any:
    """Decode JSON or YAML from a client.

    Raises:
        StatusError: 400 for invalid YAML, for YAML that JSON cannot express, and for aliases that expand beyond the
            limit of a request.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        import yaml

    try:
        loader = yaml_loader()(body)
        node = loader.get_single_node()
        if node is None:
            return None
        _expanded_size(node, {})
        return msgspec.json.decode(msgspec.json.encode(loader.construct_document(node)))
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
    ) as error:  # ValueError: a number or time that Python cannot hold
        raise bad_request(f"error decoding YAML: {error}") from error


def _expanded_size(node: Any, known: dict[Any, int]) -> int:
    """Return about how many characters a YAML node has with its aliases expanded.

    Raises:
        StatusError: 400 if it exceeds the limit of a request or contains itself.
    """
    size = known.get(node, 0)
    if size > 0:
        return size
    if node in known:
        raise bad_request("error decoding YAML: yaml: anchor value contains itself")
    known[node] = 0
    value = node.value
    if isinstance(value, str):
        size = 1 + len(value)
    else:
        parts = value if node.id == "sequence" else chain.from_iterable(value)
        size = 1 + sum(_expanded_size(part, known) for part in parts)
    if size > LARGEST_BODY:
        raise bad_request("error decoding YAML: yaml: document contains excessive aliasing")
    known[node] = size
    return size
