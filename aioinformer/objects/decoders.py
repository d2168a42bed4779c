"""Decoders for object types other than KubeObject: dicts, Structs and models."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, get_origin, is_typeddict

import msgspec

from ..errors import ConfigError, DecodeError
from .deep_parts import DeepParts
from .excerpts import begins, describe
from .managed_bytes import without_managed_fields
from .meta import TypeMeta
from .mismatch import mismatch_of
from .models import decode_hook
from .nesting import DECODE_ERRORS as DECODE_ERRORS
from .nesting import decode_any, end_of_brackets, reader_of, tidy
from .reading_types import without_limits, without_patterns

FromBytes = Callable[[bytes, TypeMeta | None], Any]
"""Decodes one object. apiVersion and kind are for bytes without them. Raises only DecodeError."""


class _Line(msgspec.Struct):
    object: msgspec.Raw


_read_line = reader_of(_Line)


def without_rest(raw: bytes) -> bytes | None:
    """Cut off the fields that follow an object; None if nothing follows it.

    The event decoder takes an object from its line up to the line's closing brace without a search for the object's
    end, so a line with fields after ``object`` gives such bytes.
    """
    end = end_of_brackets(raw, len(raw) - len(raw.lstrip()))
    if not end or end == len(raw):
        return None
    try:
        last = bytes(_read_line(b'{"object":0%s}' % raw[end:]).object)
    except DECODE_ERRORS:
        return None
    return raw[:end] if last == b"0" else last  # of two objects the last counts, as in Go


def class_of(object_type: Any) -> Any:
    """Return the class of a type's objects: dict for ``dict[str, Any]`` and for a TypedDict."""
    origin = get_origin(object_type) or object_type
    return dict if is_typeddict(origin) else origin


def decoder_of(wanted: Any) -> FromBytes:
    """Return the decoder of an object type.

    Args:
        wanted: dict, a ``msgspec.Struct``, or a kubernetes_asyncio (or ``kubernetes.aio``) or pydantic model class.

    Raises:
        ConfigError: It is another type, or a Struct that msgspec cannot decode.
    """
    if not isinstance(class_of(wanted), type):
        raise ConfigError(f"an object type is a class, not {wanted!r}")
    return _decoder_of(wanted)  # classes are hashable


_METADATA = (
    ". A Metadata(msgspec.Struct, rename='camel') that has all the fields that aioinformer reads: `name: str`, "
    '`namespace: str = ""`, `uid: str = ""`, `resource_version: str = ""`, `generation: int = 0`, '
    "`labels: dict[str, str] = {}`, `annotations: dict[str, str] = {}`, `finalizers: list[str] = []`, "
    "`deletion_timestamp: str | None = None`, `owner_references: list[dict[str, Any]] = []`"
)


def require_cacheable(wanted: Any) -> None:
    """Check that objects of a type have the fields that a cache reads.

    Raises:
        ConfigError: A Struct or model has no metadata, or a Struct's metadata has no name, or a resource_version that
            JSON never sets.
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
        missing = []
        if "name" not in names.values():
            missing.append(
                f"{where} needs a field name: give metadata a Struct of your own, with name among its fields{_METADATA}"
            )
        if "resource_version" in names and "resourceVersion" not in names.values():
            missing.append(
                f'{where} needs resourceVersion for the name of resource_version in JSON: rename="camel" gives it'
            )
        if missing:
            raise ConfigError("; ".join(missing))


@lru_cache(maxsize=256)
def _decoder_of(wanted: Any) -> FromBytes:
    object_type = class_of(wanted)
    if object_type is dict:
        return _dict_from_bytes
    if issubclass(object_type, msgspec.Struct):
        return _guard(_struct_decoder(wanted), object_type)
    if hasattr(object_type, "model_validate"):  # before openapi_types, which kubernetes.aio's models have too
        return _guard(_pydantic_decoder(object_type), object_type)
    if hasattr(object_type, "openapi_types"):
        return _guard(_openapi_decoder(object_type), object_type)
    raise ConfigError(
        f"{object_type.__name__} is no object type: use KubeObject, dict, a msgspec.Struct or a model class"
    )


def _guard(from_bytes: FromBytes, object_type: type[Any]) -> FromBytes:
    """Wrap a decoder so that it raises only DecodeError, and never because of metadata.managedFields."""

    def decode(raw: bytes, type_meta: TypeMeta | None) -> Any:
        try:
            return from_bytes(raw, type_meta)
        except Exception as error:  # models raise errors of any type
            if (lean := without_managed_fields(raw)) is not raw:  # no operator needs these fields
                with suppress(Exception):
                    return from_bytes(lean, type_meta)
            if isinstance(error, DecodeError):
                raise
            # Without the cause, whose text may have the object's values.
            mismatch = mismatch_of(error)
            text = f"not a {object_type.__name__}: {mismatch.text}; {describe(raw)}"
            raise DecodeError(text, field=mismatch.field, problem=mismatch.problem) from None

    return decode


def _dict_from_bytes(raw: bytes, type_meta: TypeMeta | None) -> dict[str, Any]:
    try:
        fields = decode_any(raw)
    except DECODE_ERRORS as error:
        raise DecodeError(f"not JSON: {error}; {describe(raw)}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("metadata"), dict):
        raise DecodeError(f"object without metadata: {begins(raw)}")
    return with_type_meta(fields, type_meta)


def _struct_decoder(struct: type[msgspec.Struct]) -> FromBytes:
    try:
        decode = msgspec.json.Decoder(without_patterns(struct), dec_hook=decode_hook).decode
        read = reader_of(without_limits(struct), decode_hook)
    except Exception as error:  # annotations are evaluated, which may raise anything
        raise ConfigError(f"msgspec cannot decode {struct.__name__}: {error}") from error
    has_type_fields = bool(
        {field.encode_name for field in msgspec.structs.fields(struct)} & {"apiVersion", "kind"}
    )

    def from_bytes(raw: bytes, type_meta: TypeMeta | None) -> Any:
        if has_type_fields:
            raw = _with_type_meta(raw, type_meta)
        try:
            return decode(raw)
        except DECODE_ERRORS:
            return read(raw)

    return from_bytes


def api_client_of(model: Any) -> Any:
    """Return an ApiClient of a model class's package that converts models from and to JSON and sends no requests.

    Raises:
        ConfigError: It is not a model of kubernetes_asyncio.
    """
    package = model.__module__.partition(".models")[0]
    try:
        api_client = importlib.import_module(f"{package}.api_client").ApiClient
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{model.__qualname__} is not a model of kubernetes_asyncio: {error}") from error

    class Converter(api_client):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            """Open no HTTP session: the conversion does not need one."""

    return Converter()


def _openapi_decoder(model: Any) -> FromBytes:
    deserialize = api_client_of(model).deserialize

    def decode(raw: bytes, type_meta: TypeMeta | None) -> Any:
        raw = tidy(_with_type_meta(raw, type_meta))
        try:
            instance = deserialize(SimpleNamespace(data=raw), model)
        except RecursionError:
            instance = DeepParts(raw).read(lambda shallow: deserialize(SimpleNamespace(data=shallow), model))
        if getattr(instance, "metadata", None) is None:
            raise DecodeError(f"object without metadata: {begins(raw)}")
        return instance

    return decode


def _pydantic_decoder(model: Any) -> FromBytes:
    from_dict = getattr(model, "from_dict", None)

    def decode(raw: bytes, type_meta: TypeMeta | None) -> Any:
        if from_dict is not None:
            # Generated models refuse unknown fields, which a newer server may send. from_dict drops them.
            instance = from_dict(_dict_from_bytes(raw, type_meta))
        else:
            raw = _with_type_meta(raw, type_meta)
            try:
                instance = model.model_validate_json(raw)
            except ValueError:  # such as deep nesting, or half a surrogate pair
                instance = model.model_validate(_dict_from_bytes(raw, None))
        if getattr(instance, "metadata", None) is None:
            raise DecodeError(f"object without metadata: {begins(raw)}")
        return instance

    return decode


def with_type_meta(fields: dict[str, Any], type_meta: TypeMeta | None) -> dict[str, Any]:
    """Return an object's fields, with apiVersion and kind of its collection if it has none."""
    if type_meta is None:
        return fields
    return {"apiVersion": type_meta.api_version, "kind": type_meta.kind, **fields}


def _with_type_meta(raw: bytes, type_meta: TypeMeta | None) -> bytes:
    """Put apiVersion and kind in front of the object's fields. If a field is there twice, the last one counts."""
    stripped = raw.lstrip(b" \t\r\n")
    if type_meta is None or not stripped.startswith(b"{"):
        return raw
    head = msgspec.json.encode({"apiVersion": type_meta.api_version, "kind": type_meta.kind})
    return head[:-1] + b"," + stripped[1:]
