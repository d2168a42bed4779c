"""Request bodies in protobuf, which Go clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.objects.protobuf import MAGIC, PROTOBUF_ERRORS, read_envelope
from aioinformer.objects.protobuf.messages import message
from aioinformer.objects.protobuf.schema import message_of, schema
from aioinformer.testing.errors import bad_request, unsupported_media_type

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

_NOTHING: tuple[Any, ...] = (None, "", 0, {})
"""The values of unset fields that are no pointers in Go."""


def read_object(body: bytes, api_version: str, kind: str) -> Object:
    """Return the object in a body, without the empty fields that Go always writes.

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
            raise unsupported_media_type(
                f"the embedded API server cannot read protobuf of the kind {kind} of {api_version}: send JSON, as "
                "`kubectl apply -f` and `kubectl create -f` do"
            )
        fields = message(name).read(body, begin, end)
    except PROTOBUF_ERRORS as error:
        raise bad_request(f"{unrecognized}: invalid protobuf: {error}") from error
    _drop_zeros(fields, name)
    return {"kind": kind, "apiVersion": api_version, **fields}


def _drop_zeros(fields: Object, name: str) -> None:
    """Remove, in place, the empty fields that JSON would always show."""
    for field in schema().fields(name):
        if not field.name:
            _drop_zeros(fields, field.type)
            continue
        value = fields.get(field.name)
        if value and field.of in schema().messages:
            for part in value if field.is_list else value.values() if field.is_map else [value]:
                _drop_zeros(part, field.of)
        is_zero = value in _NOTHING or (field.of == "quantity" and value == "0")
        if value is None or (field.shown == "always" and is_zero):
            fields.pop(field.name, None)
