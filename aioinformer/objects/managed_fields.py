"""Objects without metadata.managedFields, which are a third of a pod and which nobody reads who does not apply.

client-go has ``TransformStripManagedFields``. Here they are cut out of the bytes, in the same pass that reads the
name: some microseconds, and whatever is decoded later has less to do.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from .decoders import FromBytes, without_managed_fields
from .kube_object import (
    Head,
    KubeObject,
    encode,
    is_made_its_own_way,
    read_head,
)
from .meta import TypeMeta
from .nesting import DECODE_ERRORS
from .protobuf import ProtobufForm

_FIELD = b'"managedFields":'
_COMMA = ord(",")


class _LeanHead(Head, gc=False):
    managedFields: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _LeanHeadOnly(msgspec.Struct, gc=False):
    metadata: _LeanHead


class _Managed(msgspec.Struct, gc=False):
    managedFields: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _ManagedOnly(msgspec.Struct, gc=False):
    metadata: _Managed | None = None


_decode_head = msgspec.json.Decoder(_LeanHeadOnly).decode
_decode_managed = msgspec.json.Decoder(_ManagedOnly).decode
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def lean_from_bytes(object_type: type[Any], from_bytes: FromBytes) -> FromBytes:
    """A decoder of objects without managed fields.

    Args:
        object_type: What it gives. A Struct that names the field keeps it, any other has never decoded it.
        from_bytes: Decodes the object type.
    """

    def kube_object(raw: bytes, type_meta: TypeMeta | None) -> Any:
        try:
            head = _decode_head(raw).metadata
            lean = _without(raw, bytes(head.managedFields))
        except DECODE_ERRORS:
            return object_type.of(without_managed_fields(raw), read_head(raw), type_meta)
        return object_type.of(lean, head, type_meta)

    def other(raw: bytes, type_meta: TypeMeta | None) -> Any:
        try:
            metadata = _decode_managed(raw).metadata
            if metadata is not None:
                raw = _without(raw, bytes(metadata.managedFields))
        except DECODE_ERRORS:
            raw = without_managed_fields(raw)
        return from_bytes(raw, type_meta)

    if issubclass(object_type, KubeObject):
        return other if is_made_its_own_way(object_type) else kube_object
    return from_bytes if issubclass(object_type, msgspec.Struct) else other


def drop_managed_fields(obj: Any) -> Any:
    """An object without managed fields: itself, or a copy of what had them. Structs pass as they are."""
    if isinstance(obj, KubeObject):
        if isinstance(obj._form, ProtobufForm):
            return obj._form.without_managed_fields(obj)
        raw = obj.raw
        lean = lean_from_bytes(type(obj), type(obj).from_bytes)(raw, obj._type_meta)
        return obj if lean.raw is raw else lean
    if isinstance(obj, msgspec.Struct):
        return obj
    metadata: Any
    if isinstance(obj, Mapping):
        metadata = obj.get("metadata")
        if not isinstance(metadata, Mapping) or "managedFields" not in metadata:
            return obj
        return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    metadata = getattr(obj, "metadata", None)
    if getattr(metadata, "managed_fields", None) is None:
        return obj
    lean = copy.copy(obj)
    lean.metadata = copy.copy(metadata)
    lean.metadata.managed_fields = None
    return lean


def _without(raw: bytes, managed: bytes) -> bytes:
    """The bytes of an object without its managed fields, which are these; as they are if there are none."""
    if not managed:
        return raw
    begin = raw.find(_FIELD)
    end = begin + len(_FIELD) + len(managed)
    if begin > 0 and raw.startswith(managed, begin + len(_FIELD)) and _is_in_metadata(raw[:begin]):
        if raw[end] == _COMMA:
            return raw[:begin] + raw[end + 1 :]
        if raw[begin - 1] == _COMMA:
            return raw[: begin - 1] + raw[end:]
    parts = _decode_parts(raw)
    metadata = _decode_parts(parts["metadata"])
    del metadata["managedFields"]
    parts["metadata"] = msgspec.Raw(encode(metadata))
    return encode(parts)


def _is_in_metadata(front: bytes) -> bool:
    """Whether the front of an object ends where a field of its metadata begins: then so little makes it whole.

    If it ended in something else that this makes whole, the managed fields would be in front, or no metadata.
    """
    try:
        metadata = _decode_managed(front + b'"":0}}').metadata
    except DECODE_ERRORS:
        return False
    return metadata is not None and not bytes(metadata.managedFields)
