"""From bytes to the object types that are not this package's: dicts, Structs and models."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, get_origin, is_typeddict

import msgspec

from ..errors import ConfigError, DecodeError
from .excerpts import begins, described
from .meta import TypeMeta
from .nesting import DECODE_ERRORS as DECODE_ERRORS
from .nesting import decode_any, decode_parts, decode_typed, end_of_brackets

FromBytes = Callable[[bytes, TypeMeta | None], Any]
"""Decodes one object, of this apiVersion and kind where the bytes do not say; raises nothing but DecodeError."""


class _Line(msgspec.Struct):
    object: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode


def without_rest(raw: bytes) -> bytes | None:
    """What is left of an object that could not be decoded without the fields behind it; None where there are none.

    Watches give them: who cuts an object out of its line, down to the closing brace, does not look for where it ends.
    """
    try:
        alone = bytes(_decode_line(b'{"object":%s}' % raw).object)
    except RecursionError:
        end = end_of_brackets(raw, 0)
        return raw[:end] if end and raw[end:].lstrip().startswith(b",") else None
    except DECODE_ERRORS:
        return None
    return alone if len(alone) < len(raw) else None


def class_of(object_type: Any) -> Any:
    """The class that objects of a type are instances of: dict for ``dict[str, Any]`` and for a TypedDict."""
    found = get_origin(object_type) or object_type
    return dict if is_typeddict(found) else found


def decoder_of(wanted: Any) -> FromBytes:
    """The decoder of an object type.

    Args:
        wanted: dict, a ``msgspec.Struct``, or a kubernetes_asyncio (or ``kubernetes.aio``) or pydantic model class.

    Raises:
        ConfigError: It is no such type, or a Struct that msgspec cannot decode.
    """
    if not isinstance(class_of(wanted), type):
        raise ConfigError(f"an object type is a class, not {wanted!r}")
    return _decoder_of(wanted)  # classes are hashable


_METADATA = (
    ". A Metadata(msgspec.Struct, rename='camel') that does for all that reads objects has `name: str`, "
    '`namespace: str = ""`, `uid: str = ""`, `resource_version: str = ""`, `generation: int = 0`, '
    "`labels: dict[str, str] = {}`, `annotations: dict[str, str] = {}`, `finalizers: list[str] = []`, "
    "`deletion_timestamp: str | None = None`, `owner_references: list[dict[str, Any]] = []`"
)


def require_cacheable(wanted: Any) -> None:
    """Find out that objects of a type could not be cached, for want of what a cache reads of them.

    Raises:
        ConfigError: It is a Struct or model without metadata, or a Struct without a name in it, or with a version that
            is never set.
    """
    struct = class_of(wanted)
    is_struct = issubclass(struct, msgspec.Struct)
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)} if is_struct else {}
    if "metadata" not in (fields if is_struct else getattr(struct, "openapi_types", ("metadata",))):
        raise ConfigError(
            f"{struct.__name__} needs a field metadata, with a name in it{_METADATA if is_struct else ''}"
        )
    if not is_struct:
        return
    if fields["metadata"].name != "metadata":
        raise ConfigError(f"{struct.__name__}.{fields['metadata'].name} must be called metadata")
    meta = fields["metadata"].type
    if isinstance(meta, type) and issubclass(meta, msgspec.Struct):
        names = {field.name: field.encode_name for field in msgspec.structs.fields(meta)}
        where = f"{struct.__name__}.metadata ({meta.__name__})"
        lacks = []
        if "name" not in names.values():
            lacks.append(
                f"{where} needs a field name: give metadata a Struct of your own, with name among its fields{_METADATA}"
            )
        if "resource_version" in names and "resourceVersion" not in names.values():
            lacks.append(
                f'{where} needs resourceVersion for the name of resource_version in JSON: rename="camel" gives it'
            )
        if lacks:
            raise ConfigError("; ".join(lacks))


@lru_cache(maxsize=256)
def _decoder_of(wanted: Any) -> FromBytes:
    object_type = class_of(wanted)
    if object_type is dict:
        return _dict_from_bytes
    if issubclass(object_type, msgspec.Struct):
        return _guarded(_struct_decoder(wanted), object_type)
    if hasattr(object_type, "model_validate"):  # asked first: kubernetes.aio's models have openapi_types too
        return _guarded(_pydantic_decoder(object_type), object_type)
    if hasattr(object_type, "openapi_types"):
        return _guarded(_openapi_decoder(object_type), object_type)
    raise ConfigError(
        f"{object_type.__name__} is no object type: use KubeObject, dict, a msgspec.Struct or a model class"
    )


def _guarded(from_bytes: FromBytes, object_type: type[Any]) -> FromBytes:
    """The decoder with whatever it raises as a DecodeError."""

    def decode(raw: bytes, type_meta: TypeMeta | None) -> Any:
        try:
            return from_bytes(raw, type_meta)
        except DecodeError:
            raise
        except Exception as error:  # models raise whatever their generator thought of
            raise DecodeError(f"not a {object_type.__name__}: {_said(error)}; {described(raw)}") from error

    return decode


def _said(error: Exception) -> str:
    """What an error says, without the values that it quotes, where that is known."""
    errors: Any = getattr(error, "errors", None)
    if callable(errors):  # pydantic's
        try:
            listed: Any = errors(include_input=False)
            found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in listed[:3]]
        except Exception:  # another one's, of that name
            return type(error).__name__
        return f"{type(error).__name__}({'; '.join(found)})"
    return f"{error!r:.200}"


def _dict_from_bytes(raw: bytes, type_meta: TypeMeta | None) -> dict[str, Any]:
    try:
        fields = decode_any(raw)
    except DECODE_ERRORS as error:
        raise DecodeError(f"not JSON: {error}; {described(raw)}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("metadata"), dict):
        raise DecodeError(f"object without metadata: {begins(raw)}")
    return with_type_meta(fields, type_meta)


def _struct_decoder(struct: type[msgspec.Struct]) -> FromBytes:
    try:
        decoder = msgspec.json.Decoder(struct)
    except Exception as error:  # annotations are evaluated, which may raise anything
        raise ConfigError(f"msgspec cannot decode {struct.__name__}: {error}") from error
    says_type = bool({field.encode_name for field in msgspec.structs.fields(struct)} & {"apiVersion", "kind"})
    decode = decoder.decode

    def from_bytes(raw: bytes, type_meta: TypeMeta | None) -> Any:
        if says_type:
            raw = _with_type_meta(raw, type_meta)
        try:
            return decode(raw)
        except DECODE_ERRORS:
            return decode_typed(decoder, raw)

    return from_bytes


def without_managed_fields(raw: bytes) -> bytes:
    """Return an object that msgspec refuses without metadata.managedFields; what cannot be read, as it is."""
    try:
        fields = decode_parts(raw)
        if isinstance(metadata := fields.get("metadata"), dict):
            metadata.pop("managedFields", None)
        return msgspec.json.encode(fields)
    except DECODE_ERRORS:
        return raw


def api_client_of(model: Any) -> Any:
    """An ApiClient of a model class's package, not initialised: what turns models into JSON and back reads none of it.

    Raises:
        ConfigError: It is no model of kubernetes_asyncio.
    """
    package = model.__module__.partition(".models")[0]
    try:
        api_client = importlib.import_module(f"{package}.api_client").ApiClient
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{model.__qualname__} is not a model of kubernetes_asyncio: {error}") from error
    return api_client.__new__(api_client)


def _openapi_decoder(model: Any) -> FromBytes:
    deserialize = api_client_of(model).deserialize

    def decode(raw: bytes, type_meta: TypeMeta | None) -> Any:
        raw = _with_type_meta(raw, type_meta)
        try:
            instance = deserialize(SimpleNamespace(data=raw), model)
        except RecursionError:
            instance = deserialize(SimpleNamespace(data=without_managed_fields(raw)), model)
        if getattr(instance, "metadata", None) is None:
            raise DecodeError(f"object without metadata: {begins(raw)}")
        return instance

    return decode


def _pydantic_decoder(model: Any) -> FromBytes:
    from_dict = getattr(model, "from_dict", None)

    def decode(raw: bytes, type_meta: TypeMeta | None) -> Any:
        if from_dict is not None:
            # Generated models forbid fields that they do not know, which a newer server sends: this drops them.
            instance = from_dict(_dict_from_bytes(raw, type_meta))
        else:
            raw = _with_type_meta(raw, type_meta)
            try:
                instance = model.model_validate_json(raw)
            except ValueError:  # also of what is nested deeply, and of half a surrogate pair
                instance = model.model_validate(_dict_from_bytes(raw, None))
        if getattr(instance, "metadata", None) is None:
            raise DecodeError(f"object without metadata: {begins(raw)}")
        return instance

    return decode


def with_type_meta(fields: dict[str, Any], type_meta: TypeMeta | None) -> dict[str, Any]:
    """An object's fields, with its collection's apiVersion and kind for what it does not say itself."""
    if type_meta is None:
        return fields
    return {"apiVersion": type_meta.api_version, "kind": type_meta.kind, **fields}


def _with_type_meta(raw: bytes, type_meta: TypeMeta | None) -> bytes:
    """The bytes with the collection's in front: of fields that are there twice the last counts, which is its own."""
    alone = raw.lstrip(b" \t\r\n")
    if type_meta is None or not alone.startswith(b"{"):
        return raw
    head = msgspec.json.encode({"apiVersion": type_meta.api_version, "kind": type_meta.kind})
    return head[:-1] + b"," + alone[1:]
