"""Cuts metadata.managedFields out of an object's JSON."""

from __future__ import annotations

import msgspec

from .nesting import DECODE_ERRORS, reader_of

_FIELD = b'"managedFields":'
_COMMA = ord(",")


class _Managed(msgspec.Struct, gc=False):
    managedFields: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _ManagedOnly(msgspec.Struct, gc=False):
    metadata: _Managed | None = None


_read_managed = reader_of(_ManagedOnly)
_read_parts = reader_of(dict[str, msgspec.Raw])


def without_managed_fields(raw: bytes) -> bytes:
    """Return an object's bytes without metadata.managedFields; the same bytes if there are none, or no object."""
    try:
        metadata = _read_managed(raw).metadata
        return raw if metadata is None else cut_out(raw, bytes(metadata.managedFields))
    except DECODE_ERRORS:
        return raw


def cut_out(raw: bytes, managed: bytes) -> bytes:
    """Cut these managed fields out of an object's bytes; return the bytes if there are none.

    Raises:
        DECODE_ERRORS: The bytes are not an object with these managed fields.
    """
    if not managed:
        return raw
    begin = raw.find(_FIELD)
    end = begin + len(_FIELD) + len(managed)
    if begin > 0 and raw.startswith(managed, begin + len(_FIELD)) and _is_in_metadata(raw[:begin]):
        if raw[end] == _COMMA:
            return raw[:begin] + raw[end + 1 :]
        if raw[begin - 1] == _COMMA:
            return raw[: begin - 1] + raw[end:]
    parts = _read_parts(raw)
    metadata = _read_parts(parts["metadata"])
    del metadata["managedFields"]
    parts["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return bytes(memoryview(msgspec.json.encode(parts)))  # a copy: what msgspec returns keeps a larger buffer


def _is_in_metadata(front: bytes) -> bool:
    """Return whether the front of an object ends where a field of its metadata begins.

    If so, ``"":0}}`` completes it to JSON. If it ends elsewhere, the result is not JSON, has no metadata, or has the
    managed fields already.
    """
    try:
        metadata = _read_managed(front + b'"":0}}').metadata
    except DECODE_ERRORS:
        return False
    return metadata is not None and not bytes(metadata.managedFields)
