"""Objects that are kept as the protobuf that the server sent."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from ...errors import DecodeError
from ..kube_object import (
    ANNOTATIONS,
    LABELS,
    KubeObject,
    Wanted,
    encode,
)
from ..meta import TypeMeta
from . import metadata
from .envelope import head_of
from .messages import message
from .schema import message_of, schema
from .wire import PROTOBUF_ERRORS


class ProtobufForm:
    """The protobuf of one kind. Get one by ``form_of``.

    Args:
        type_meta: The kind.

    Raises:
        DecodeError: It is none that is known.

    Attributes:
        type_meta: The kind.
        head: How the envelope of its objects begins.
    """

    def __init__(self, type_meta: TypeMeta) -> None:
        found = message_of(*type_meta)
        if found is None:
            raise DecodeError(
                f"{type_meta.kind} of {type_meta.api_version} cannot be read as protobuf: it is no kind of "
                f"Kubernetes {schema().version}"
            )
        self.type_meta = type_meta
        self.head = head_of(type_meta)
        self._message = found

    def object_of(self, kept: bytes) -> KubeObject | DecodeError:
        """The object that these bytes are; in place of one that they are not the error, for who decodes it to raise.

        The lengths of its fields, and of its metadata what tells objects apart, are checked here; what is within other
        fields is where they are read.
        """
        try:
            name, namespace, uid, version, rest = metadata.read_head(kept)
        except PROTOBUF_ERRORS as error:
            found = DecodeError(f"not a Kubernetes object: {error}; it has {len(kept)} bytes")
            found.__cause__ = error.with_traceback(None)  # whose frames keep who gets this
            return found
        key = f"{namespace}/{name}" if namespace else name
        return KubeObject(kept, key, uid, version, self.type_meta, rest, None, self)

    def fields_of(self, obj: KubeObject, wanted: Wanted = ()) -> dict[str, Any]:
        kept = obj._kept
        try:
            if wanted is LABELS and (texts := metadata.texts(kept, metadata.LABELS, obj._labels)) is not None:
                return {"metadata": {"labels": texts}}
            if (
                wanted is ANNOTATIONS
                and (texts := metadata.texts(kept, metadata.ANNOTATIONS, obj._labels)) is not None
            ):
                return {"metadata": {"annotations": texts}}
            return message(self._message, wanted).read(kept, 0, len(kept))
        except PROTOBUF_ERRORS as error:
            raise DecodeError(f"not the protobuf of a {self.type_meta.kind}: {error}") from error

    def raw_of(self, obj: KubeObject) -> bytes:
        return encode(self.fields_of(obj))

    def uid_of(self, obj: KubeObject) -> str:
        return ""

    def version_of(self, obj: KubeObject) -> str:
        return ""

    def without_managed_fields(self, obj: KubeObject) -> KubeObject:
        """An object of this form without metadata.managedFields: itself, if it has none.

        Raises:
            DecodeError: Its metadata cannot be read.
        """
        try:
            lean, rest = metadata.without_managed_fields(obj._kept, obj._labels)
        except PROTOBUF_ERRORS as error:
            raise DecodeError(f"{obj.key}: its metadata cannot be read: {error}") from error
        return obj if lean is obj._kept else msgspec.structs.replace(obj, _kept=lean, _labels=rest)


@lru_cache(maxsize=256)
def form_of(type_meta: TypeMeta) -> ProtobufForm:
    """The form of a kind's objects.

    Raises:
        DecodeError: It is none that is known.
    """
    return ProtobufForm(type_meta)
