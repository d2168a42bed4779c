"""Keep keys unique for Structs that have no field for the namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_origin

import msgspec

from ..errors import DecodeError, KeyFuncError
from ..objects.codec import Codec, codec_for
from ..objects.keys import KeyFunc, key_and_version, namespace_of
from ..objects.kube_object import KubeObject
from ..objects.meta import TypeMeta

T = TypeVar("T")


def lacks_namespace(object_type: Any) -> bool:
    """Whether objects of this type have no namespace: Structs whose metadata Struct has no such field."""
    struct = get_origin(object_type) or object_type
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return False
    metadata = next(
        (field.type for field in msgspec.structs.fields(object_type) if field.encode_name == "metadata"), None
    )
    if not (isinstance(metadata, type) and issubclass(metadata, msgspec.Struct)):
        return False
    return all(field.encode_name != "namespace" for field in msgspec.structs.fields(metadata))


def namespace_read(list_watch: Any, object_type: Any) -> str:
    """Return the only namespace that is read; ``""`` for any, or if the objects have no field for it."""
    namespace = getattr(getattr(list_watch, "resource", None), "namespace", None)
    return namespace if isinstance(namespace, str) and not lacks_namespace(object_type) else ""


def codec_of_collection(
    object_type: type[T] | None, list_watch: Any, key_of: KeyFunc, *, drop_managed_fields: bool = False
) -> Codec[T]:
    """Return the codec of an object type, for a collection that may have several namespaces.

    Raises:
        ConfigError: As ``codec_for``.
    """
    codec = codec_for(object_type, drop_managed_fields=drop_managed_fields)
    is_one_namespace = getattr(getattr(list_watch, "resource", None), "namespace", None) is not None
    return (
        OneNamespaceCodec(codec, key_of) if lacks_namespace(object_type) and not is_one_namespace else codec
    )


class OtherNamespaceError(DecodeError):
    """An object is of another namespace, and its key has none: it would replace an object of the same name."""


class OneNamespaceCodec(Codec[T]):
    """Refuses objects whose key would collide with an object of another namespace.

    The first object decides: without a namespace the kind is cluster-scoped, and all objects pass. Otherwise only the
    first object's namespace passes.

    Args:
        codec: Decodes the objects.
        key_of: Returns an object's key.
    """

    def __init__(self, codec: Codec[T], key_of: KeyFunc) -> None:
        self.object_type = codec.object_type
        self.read_item = None  # lists must pass bytes, because the check needs the namespace
        self._inner = codec
        self._key_of = key_of
        self._namespace: str | None = None
        self._take: Callable[[Any, TypeMeta | None], T] = self._check

    def decode(self, value: Any, type_meta: TypeMeta | None = None) -> T:
        return self._take(value, type_meta)

    def _check(self, value: Any, type_meta: TypeMeta | None) -> T:
        is_encoded = isinstance(value, (bytes, bytearray, memoryview, DecodeError))
        whole = codec_for(KubeObject).decode(value) if is_encoded else value
        namespace = namespace_of(whole)
        is_other = bool(namespace) and self._namespace not in (None, namespace)
        if not namespace:
            self._take = self._inner.decode
        elif self._namespace is None:
            self._namespace = namespace
        try:
            obj = self._inner.decode(value, type_meta)
        except DecodeError:
            if is_other:
                self._require_namespace(key_and_version(whole)[0].rpartition("/")[2], namespace)
            raise
        if is_other:
            self._require_namespace(self._key_if_any(obj), namespace)
        return obj

    def _require_namespace(self, key: str, namespace: str) -> None:
        """Check that the key of an object of another namespace names that.

        Raises:
            OtherNamespaceError: It does not.
        """
        if key and "/" not in key:
            raise OtherNamespaceError(
                f"{key} of namespace {namespace} would replace the object of the same name in {self._namespace}: "
                f"the metadata of {getattr(self.object_type, '__name__', 'the objects')} needs a field namespace"
            )

    def _key_if_any(self, obj: Any) -> str:
        try:
            return self._key_of(obj)
        except KeyFuncError:
            return ""  # the store rejects it, with a message
