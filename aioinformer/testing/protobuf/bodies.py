"""Bodies in protobuf, which is what Go clients send of what they make themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.objects.protobuf import MAGIC, PROTOBUF_ERRORS, read_envelope
from aioinformer.objects.protobuf.messages import message
from aioinformer.objects.protobuf.schema import message_of, schema
from aioinformer.testing.errors import bad_request, unsupported_media_type

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

_NOTHING: tuple[Any, ...] = (None, "", 0, {})
"""What fields that are no pointers in Go say that were not set."""


def read_object(body: bytes, api_version: str, kind: str) -> Object:
    """The object in a body, as a file would have it: without what Go writes of any object though it is empty.

    Args:
        body: All of it.
        api_version: What the object is of, where it does not say.
        kind: Likewise.

    Raises:
        StatusError: 400 for what is no protobuf, 415 for a kind that is not known.
    """
    unrecognized = f"the object provided is unrecognized (must be of type {kind})"
    if body in (b"", MAGIC):
        raise bad_request(f"{unrecognized}: empty body")
    try:
        type_meta, begin, end = read_envelope(body, 0, len(body))
        api_version, kind = type_meta.api_version or api_version, type_meta.kind or kind
        # Go clients say of options that they are of the group that they are for.
        name = message_of("v1" if kind == "DeleteOptions" else api_version, kind)
        if name is None:
            raise unsupported_media_type(
                f"the embedded API server reads no protobuf of the kind {kind} of {api_version}: send JSON, as "
                "`kubectl apply -f` and `kubectl create -f` do"
            )
        fields = message(name).read(body, begin, end)
    except PROTOBUF_ERRORS as error:
        raise bad_request(f"{unrecognized}: it is no protobuf: {error}") from error
    _leave_out_zeros(fields, name)
    return {"kind": kind, "apiVersion": api_version, **fields}


def _leave_out_zeros(fields: Object, name: str) -> None:
    """Leave out, in place, what JSON would show of a message though it is empty."""
    for field in schema().fields(name):
        if not field.name:
            _leave_out_zeros(fields, field.type)
            continue
        value = fields.get(field.name)
        if value and field.of in schema().messages:
            for part in value if field.is_list else value.values() if field.is_map else [value]:
                _leave_out_zeros(part, field.of)
        is_zero = value in _NOTHING or (field.of == "quantity" and value == "0")
        if value is None or (field.shown == "always" and is_zero):
            fields.pop(field.name, None)
