"""Codecs turn a ListerWatcher's values (bytes, dicts, instances) into the user's object type."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from ..errors import DecodeError
from .decoders import FromBytes, class_of, decoder_of, require_cacheable, with_type_meta, without_rest
from .kube_object import KubeObject, encode, is_kube_object_type
from .managed_fields import drop_managed_fields, lean_from_bytes
from .meta import TypeMeta

T = TypeVar("T")


class Codec(Generic[T]):
    """Decodes values into one object type. Get one from ``codec_for``.

    Args:
        from_bytes: Decodes one object; raises only DecodeError.

    Attributes:
        object_type: The type; None for a codec that passes everything through.
        read_item: The decoder that lists may use for their items (``ListOptions.read_item``), or None.
    """

    def __init__(
        self,
        object_type: type[T] | None,
        from_bytes: FromBytes | None,
        *,
        read_item: FromBytes | None = None,
    ) -> None:
        self.object_type = object_type
        self._from_bytes = from_bytes
        self.read_item = read_item

    def decode(self, value: Any, type_meta: TypeMeta | None = None) -> T:
        """Return a value as the object type. Instances of it are returned as they are.

        Args:
            value: JSON bytes, a dict, a KubeObject or an instance of the object type; or a DecodeError, if the list or
                watch could not read the object.
            type_meta: apiVersion and kind, used if the value does not have them.

        Raises:
            DecodeError: The value does not fit the object type.
        """
        if self._from_bytes is None:
            return value  # type: ignore[no-any-return]
        kind = type(value)
        if kind is bytes:
            try:
                return self._from_bytes(value, type_meta)  # type: ignore[no-any-return]
            except DecodeError:
                first_object = without_rest(value)
                if first_object is None:
                    raise
            return self._from_bytes(first_object, type_meta)  # type: ignore[no-any-return]
        assert self.object_type is not None
        if kind is KubeObject and self.object_type is kind:  # of protobuf
            return value  # type: ignore[no-any-return]
        if isinstance(value, self.object_type) and not isinstance(value, dict):
            return value
        if isinstance(value, KubeObject):
            return value.decode(self.object_type)
        if isinstance(value, dict):
            return self._decode_dict(value, type_meta)
        if isinstance(value, DecodeError):
            # A new error: raising the old one again would add frames to it that keep the event in memory.
            raise DecodeError(*value.args, field=value.field, problem=value.problem) from value.__cause__
        if isinstance(value, (bytearray, memoryview)):
            return self._from_bytes(bytes(value), type_meta)  # type: ignore[no-any-return]
        raise DecodeError(f"expected {self.object_type.__name__}, got {type(value).__name__}")

    def _decode_dict(self, fields: dict[str, Any], type_meta: TypeMeta | None) -> T:
        fields = with_type_meta(fields, type_meta)
        if self.object_type is dict:
            if not isinstance(fields.get("metadata"), dict):
                raise DecodeError(
                    f"object without metadata, but with {', '.join(map(str, fields))[:120] or 'nothing'}"
                )
            return fields  # type: ignore[return-value]
        assert self._from_bytes is not None
        return self._from_bytes(encode(fields), None)  # type: ignore[no-any-return]


class LeanCodec(Codec[T]):
    """A codec that drops metadata.managedFields."""

    def decode(self, value: Any, type_meta: TypeMeta | None = None) -> T:
        obj = super().decode(value, type_meta)
        return obj if type(value) is bytes else drop_managed_fields(obj)


def codec_for(object_type: type[T] | None, *, drop_managed_fields: bool = False) -> Codec[T]:
    """Return the codec of an object type.

    Args:
        object_type: KubeObject, dict, a ``msgspec.Struct`` with ``metadata``, a kubernetes_asyncio (or
            ``kubernetes.aio``) model class, or None to pass everything through.
        drop_managed_fields: Whether to drop metadata.managedFields.

    Raises:
        ConfigError: Objects of this type cannot be cached. The message names the missing field.
    """
    make = LeanCodec[T] if drop_managed_fields else Codec[T]
    if object_type is None:
        return make(None, None)
    kind: Any = class_of(object_type)
    if is_kube_object_type(object_type):
        from_bytes: FromBytes = object_type.from_bytes
    else:
        from_bytes = decoder_of(object_type)
        require_cacheable(object_type)
    if drop_managed_fields:
        from_bytes = lean_from_bytes(kind, from_bytes)
    # Models are slow to decode, so the reflector decodes them in slices. Lean KubeObjects would fragment the memory.
    made_lean = drop_managed_fields and is_kube_object_type(object_type)
    read_in_lists = issubclass(class_of(object_type), msgspec.Struct) and not made_lean
    return make(kind, from_bytes, read_item=from_bytes if read_in_lists else None)


def decode_bookmark(value: Any) -> Any:
    """Return a BOOKMARK's object: a KubeObject, or the instance that the watch gave.

    Raises:
        DecodeError: The object cannot be read.
    """
    is_encoded = isinstance(value, (bytes, bytearray, memoryview, dict, DecodeError))
    return codec_for(KubeObject).decode(value) if is_encoded else value
