"""ProtobufForm: the form of KubeObjects that keep the server's protobuf bytes."""

from __future__ import annotations

from contextlib import suppress
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
from .messages import Message, message
from .schema import message_of, schema
from .wire import PROTOBUF_ERRORS


class ProtobufForm:
    """The form of one kind's protobuf. Get one from ``form_of``.

    Args:
        type_meta: The kind.

    Raises:
        DecodeError: The schema does not have the kind.

    Attributes:
        type_meta: The kind.
        head: The first bytes of the envelope of its objects.
    """

    def __init__(self, type_meta: TypeMeta) -> None:
        known = message_of(*type_meta)
        if known is None:
            raise DecodeError(
                f"{type_meta.kind} of {type_meta.api_version} cannot be read as protobuf: it is no kind of "
                f"Kubernetes {schema().version}"
            )
        self.type_meta = type_meta
        self.head = head_of(type_meta)
        self._message = known

    def object_of(self, kept: bytes) -> KubeObject | DecodeError:
        """Return the object of protobuf bytes; or a DecodeError, which the codec raises later.

        The lengths of all top-level fields and the head of the metadata are checked here. Other fields are checked
        when they are read.
        """
        try:
            name, namespace, uid, version, rest = metadata.read_head(kept)
        except PROTOBUF_ERRORS as error:
            decode_error = DecodeError(f"not a Kubernetes object: {error}; it has {len(kept)} bytes")
            decode_error.__cause__ = error.with_traceback(
                None
            )  # its frames would keep the caller's objects in memory
            return decode_error
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
            return self._read(obj, message(self._message, wanted))
        except PROTOBUF_ERRORS as error:
            raise self._unreadable(error) from error

    def raw_of(self, obj: KubeObject) -> bytes:
        try:
            return encode(self._read(obj, message(self._message, embeds=True)))
        except PROTOBUF_ERRORS as error:
            raise self._unreadable(error) from error

    def _read(self, obj: KubeObject, reader: Message) -> dict[str, Any]:
        kept = obj._kept
        try:
            return reader.read(kept, 0, len(kept))
        except PROTOBUF_ERRORS:
            with suppress(*PROTOBUF_ERRORS):  # no operator needs metadata.managedFields
                lean, _ = metadata.without_managed_fields(kept, obj._labels)
                if lean is not kept:
                    return reader.read(lean, 0, len(lean))
            raise

    def _unreadable(self, error: Exception) -> DecodeError:
        return DecodeError(f"not the protobuf of a {self.type_meta.kind}: {error}")

    def uid_of(self, obj: KubeObject) -> str:
        return ""

    def version_of(self, obj: KubeObject) -> str:
        return ""

    def without_managed_fields(self, obj: KubeObject) -> KubeObject:
        """Return an object of this form without metadata.managedFields; itself if it has none.

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
    """Return the form of a kind's objects.

    Raises:
        DecodeError: The schema does not have the kind.
    """
    return ProtobufForm(type_meta)
