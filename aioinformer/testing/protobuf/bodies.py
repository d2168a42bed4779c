"""Request bodies in protobuf, which Go clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.objects.protobuf import MAGIC, PROTOBUF_ERRORS, read_envelope
from aioinformer.objects.protobuf.messages import message
from aioinformer.objects.protobuf.schema import message_of
from aioinformer.testing.errors import StatusError, bad_request

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object


def read_object(body: bytes, api_version: str, kind: str) -> Object:
    """Return the object in a body, with the empty fields that Go always writes.

    Args:
        body: The whole body.
        api_version: The apiVersion of an object that does not name one.
        kind: The kind of an object that does not name one.

    Raises:
        StatusError: 400 for invalid protobuf, 415 for an unknown kind.
    """
    unrecognized = f"the object provided is unrecognized (must be of type {kind})"
    if body in (b"", MAGIC):
        raise bad_request(f"{unrecognized}: empty body")
    try:
        type_meta, begin, end = read_envelope(body, 0, len(body))
        api_version, kind = type_meta.api_version or api_version, type_meta.kind or kind
        # Go clients send DeleteOptions with the group of the resource.
        name = message_of("v1" if kind == "DeleteOptions" else api_version, kind)
        if name is None:
            raise StatusError(
                415,
                message=f"the embedded API server cannot read protobuf of the kind {kind} of {api_version}: send JSON, "
                "as `kubectl apply -f` and `kubectl create -f` do",
            )
        fields = message(name).read(body, begin, end)
    except PROTOBUF_ERRORS as error:
        raise bad_request(f"{unrecognized}: invalid protobuf: {error}") from error
    return {"kind": kind, "apiVersion": api_version, **fields}
