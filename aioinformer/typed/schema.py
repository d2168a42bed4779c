"""Structural OpenAPI v3 schemas of Python types, as a CustomResourceDefinition has them."""

from __future__ import annotations

import inspect as python
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, get_args, get_origin

import msgspec
from msgspec import inspect

from .._core.go_syntax import parse
from ..objects.class_types import ModelType, RefusedType, type_info
from ..objects.models import decode_hook, is_model
from .annotations import EXTENSION, VALIDATIONS
from .defaults import default_of
from .scalars import ANYTHING, NO_LIST, SCALARS, Schema
from .unions import Member, find_conflicts, merge_members

logger = logging.getLogger(__name__)

_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    f"{EXTENSION}int-or-string": True,
}
_HOW_TO_TAG = "tag=True of Structs, Field(discriminator=...) of pydantic models; or use optional fields"
_LIST_TYPE, _MAP_KEYS = f"{EXTENSION}list-type", f"{EXTENSION}list-map-keys"

_EXTRA_KEYS = frozenset(
    [
        "title", "description", "format", "default", "enum", "nullable", "pattern", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
        "uniqueItems", "minProperties", "maxProperties", "not", "allOf", "anyOf", "oneOf", "externalDocs", "example",
    ]
)  # fmt: skip
"""Keys that ``Meta.extra_json_schema`` may give."""


class SchemaBuilder:
    """Makes schemas, and collects what cannot be one.

    Attributes:
        mistakes: What is wrong, each with the path of its field.
    """

    def __init__(self) -> None:
        self.mistakes: list[str] = []
        self._open: list[type] = []  # the classes that contain the current field

    def of_class(self, struct: type[msgspec.Struct]) -> Schema:
        """Return the schema of a Struct; empty if msgspec refuses the class."""
        try:
            info = type_info(struct)
        except Exception as error:  # annotations are evaluated, which may raise anything
            place, annotation = _find_unreadable(struct, struct.__name__)
            hint = ""
            if isinstance(error, NameError):
                hint = "; annotations may name what is defined in the module, not in a function"
            elif _has_model(annotation):
                hint = "; put a union of models into a model: class Either(RootModel[A | B])"
            self._mistake(
                place,
                f"msgspec cannot read the class: {error}{hint}",
            )
            return {}
        return self._of(info, struct.__name__)

    def _mistake(self, path: str, text: str) -> Schema:
        self.mistakes.append(f"{path}: {text}")
        return {}

    def _of(self, kind: inspect.Type, path: str) -> Schema:
        make = _MAKERS.get(type(kind))
        if make is not None:
            return make(self, kind, path)
        if type(kind) in SCALARS:
            return {**SCALARS[type(kind)], **self._text_limits(kind, path)}
        if isinstance(kind, inspect.CollectionType):
            return self._list(kind, path)
        cls = getattr(kind, "cls", None)
        name = cls.__name__ if isinstance(cls, type) else type(kind).__name__.removesuffix("Type").lower()
        return self._mistake(
            path, f"a schema has no {name}; use a Struct, list, dict, str, int, float or bool"
        )

    # -- scalars -------------------------------------------------------------------------------------------

    def _text_limits(self, kind: Any, path: str) -> Schema:
        if isinstance(kind, inspect.StrType) and kind.pattern:
            self._check_pattern(kind.pattern, path)
        if isinstance(kind, (inspect.BytesType, inspect.ByteArrayType)) and (
            kind.min_length or kind.max_length
        ):
            return self._mistake(path, "a schema cannot limit the length of bytes, only of a str")
        return _without_unset(
            minLength=getattr(kind, "min_length", None),
            maxLength=getattr(kind, "max_length", None),
            pattern=getattr(kind, "pattern", None),
        )

    def _check_pattern(self, pattern: str, path: str) -> None:
        try:
            parse(pattern)
        except NotImplementedError:
            return  # servers know it
        except ValueError as error:
            self._mistake(path, f"pattern: servers use Go's regular expressions and refuse this one: {error}")

    def _number(self, kind: Any, path: str) -> Schema:
        for name in ("ge", "gt", "le", "lt", "multiple_of"):
            limit = getattr(kind, name)
            if (
                limit is not None and not -(2**63) < float(limit) < 2**63
            ):  # they compare whole numbers as 64 bits
                self._mistake(
                    path, f"{name}={limit!r} is no number of 64 bits, so servers would refuse all values"
                )
        limits = _without_unset(minimum=kind.ge, maximum=kind.le, multipleOf=kind.multiple_of)
        if kind.gt is not None:
            limits |= {"minimum": kind.gt, "exclusiveMinimum": True}
        if kind.lt is not None:
            limits |= {"maximum": kind.lt, "exclusiveMaximum": True}
        return {"type": "integer" if isinstance(kind, inspect.IntType) else "number", **limits}

    def _enum(self, kind: inspect.EnumType, path: str) -> Schema:
        return self._one_of([member.value for member in kind.cls], path)

    def _literal(self, kind: inspect.LiteralType, path: str) -> Schema:
        return self._one_of((value for value in kind.values if value is not None), path)

    def _one_of(self, values: Iterable[Any], path: str) -> Schema:
        values = list(values)
        types = {type(value) for value in values}
        if types == {str}:
            return {"type": "string", "enum": values}
        if types == {int}:
            return {"type": "integer", "enum": values}
        return self._mistake(path, f"the values {values} must all be strings, or all be integers")

    # -- unions and annotations ----------------------------------------------------------------------------

    def _union(self, kind: inspect.UnionType, path: str) -> Schema:
        types = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
        names = {type(part) for part in types}
        if len(types) == 1:
            schema = self._of(types[0], path)
        elif names == {inspect.IntType, inspect.StrType}:
            schema = {**_INT_OR_STRING}
            for part in types:  # limits of numbers do not concern strings, nor the reverse
                schema |= {name: value for name, value in self._of(part, path).items() if name != "type"}
        elif names == {inspect.IntType, inspect.FloatType}:
            schema = self._number(next(part for part in types if isinstance(part, inspect.FloatType)), path)
        elif all(getattr(part, "tag_field", None) for part in types):
            schema = self._tagged(types, path)
        elif sum(hasattr(part, "fields") for part in types) > 1:
            return self._mistake(path, f"a union of classes needs a tag that tells them apart: {_HOW_TO_TAG}")
        else:
            return self._mistake(
                path,
                "a schema has one type for a field, or int | str: use optional fields, or Any and a Rule",
            )
        # Servers take no null for an enum, even a nullable one; of a field that is not nullable they drop it.
        is_nullable = len(types) < len(kind.types) and "enum" not in schema
        return {**schema, "nullable": True} if is_nullable else schema

    def _tagged(self, kinds: Sequence[Any], path: str) -> Schema:
        """Return the schema of a union of tagged classes."""
        members = [
            Member(kind.cls.__name__, kind.tag_field, kind.tag, self._object(kind, path)) for kind in kinds
        ]
        if not all(member.schema for member in members):
            return {}
        conflicts = [*find_conflicts(members)]
        for field, why in conflicts:
            self._mistake(f"{path}.{field}" if field else path, why)
        return {} if conflicts else merge_members(members)

    def _add_annotations(self, kind: inspect.Metadata, path: str) -> Schema:
        schema = self._of(kind.type, path)
        for name, value in (kind.extra_json_schema or {}).items():
            if name == "examples":
                schema["example"] = value[0]
            elif name in _EXTRA_KEYS or name.startswith(EXTENSION):
                schema[name] = value
            else:
                self._mistake(path, f"extra_json_schema: a CustomResourceDefinition's schema has no {name!r}")
        for name, value in (kind.extra or {}).items():
            if name.startswith(VALIDATIONS):
                schema.setdefault(VALIDATIONS, []).append(value)
            elif name.startswith(EXTENSION) or name == "pattern":
                schema[name] = value
        for given in (kind.extra_json_schema or {}, kind.extra or {}):
            if isinstance(pattern := given.get("pattern"), str):
                self._check_pattern(pattern, path)
        if schema.get("type") == "string" and "format" in schema:
            schema |= NO_LIST
        self._check_list(schema, path)
        return schema

    # -- lists, maps and objects ---------------------------------------------------------------------------

    def _list(self, kind: inspect.CollectionType, path: str) -> Schema:
        schema: Schema = {
            "type": "array",
            "items": self._of(kind.item_type, f"{path}[]"),
            **_without_unset(minItems=kind.min_length, maxItems=kind.max_length),
        }
        if isinstance(kind, (inspect.SetType, inspect.FrozenSetType)):
            schema[_LIST_TYPE] = "set"
            self._check_list(schema, path)
        return schema

    def _check_list(self, schema: Schema, path: str) -> None:
        """Check what annotations say of a list."""
        if _LIST_TYPE not in schema:
            return
        if schema.get("type") != "array":
            self._mistake(path, "SetOf and MapOf are for lists")
            return
        items = schema["items"]
        if schema[_LIST_TYPE] == "set":
            if items.get("type") in ("object", "array"):
                self._mistake(path, "a set has strings, numbers or booleans: for objects use MapOf(…)")
            return
        fields = items.get("properties")
        if fields is None:
            self._mistake(path, "MapOf is for lists of Structs")
            return
        if not schema[_MAP_KEYS]:
            self._mistake(path, "MapOf needs the names of the fields that identify an item")
        for key in schema[_MAP_KEYS]:
            if key not in fields:
                self._mistake(path, f"MapOf: the items have no field {key!r}, but {', '.join(fields)}")
            elif fields[key].get("type") in (None, "object", "array") or "nullable" in fields[key]:
                self._mistake(path, f"MapOf: {key!r} must be a string, a number or a boolean")
            elif key not in items.get("required", ()) and "default" not in fields[key]:
                self._mistake(path, f"MapOf: {key!r} must be required or have a default")

    def _map(self, kind: inspect.DictType, path: str) -> Schema:
        key = kind.key_type
        is_limited = isinstance(key, inspect.StrType) and (key.pattern or key.min_length or key.max_length)
        if not isinstance(key, (inspect.StrType, inspect.AnyType)) or is_limited:
            self._mistake(path, "the keys of a dict must be str; a Rule can limit them")
        is_any = isinstance(kind.value_type, inspect.AnyType)
        values = ANYTHING if is_any else {"additionalProperties": self._of(kind.value_type, f"{path}[…]")}
        return {
            "type": "object",
            **values,
            **_without_unset(minProperties=kind.min_length, maxProperties=kind.max_length),
        }

    def _object(self, kind: Any, path: str) -> Schema:
        if kind.cls in self._open:
            return self._mistake(
                path, f"{kind.cls.__name__} contains itself, and a schema has no references: use Any here"
            )
        if getattr(kind, "array_like", False):
            return self._mistake(path, f"{kind.cls.__name__} has array_like=True: fields need their names")
        if isinstance(kind, ModelType):
            _log_validators(kind.cls)
        is_described = not any(map(_is_model, self._open))  # all of a pod's would be 300 KB
        self._open.append(kind.cls)
        check = _check_of_defaults(kind)
        properties: Schema = {}
        required = []
        tag_field: str | None = getattr(kind, "tag_field", None)
        if tag_field:
            properties[tag_field] = self._one_of([kind.tag], f"{path}.{tag_field}")
            required.append(tag_field)
        for field in kind.fields:
            where = f"{path}.{field.encode_name}"
            schema = self._of(field.type, where)
            # None may be missing in a Struct: what is read without the field has None there.
            may_be_missing = isinstance(kind, inspect.StructType) and _takes_none(field.type)
            if not field.required:
                self._set_default(schema, field, check, where)
            elif not may_be_missing:
                required.append(field.encode_name)
            properties[field.encode_name] = schema
        self._open.pop()
        schema = {"type": "object", "properties": properties, **_without_unset(required=required or None)}
        if getattr(kind, "keeps_unknown", False):
            schema |= ANYTHING
        return {**_without_unset(description=_docstring_of(kind.cls) if is_described else None), **schema}

    def _refused(self, kind: RefusedType, path: str) -> Schema:
        return self._mistake(path, kind.reason)

    def _set_default(
        self, schema: Schema, field: inspect.Field, check: Callable[[str, Any], object], path: str
    ) -> None:
        try:
            value = default_of(field, partial(check, field.name), schema)
        except (msgspec.ValidationError, TypeError) as error:
            self._mistake(path, f"the default does not fit the type: {error}")
            return
        except ValueError as error:
            self._mistake(path, f"the default: {error}")
            return
        if value is not None:
            schema["default"] = value


def _takes_none(kind: inspect.Type) -> bool:
    match kind:
        case inspect.NoneType():
            return True
        case inspect.Metadata(type=inner):
            return _takes_none(inner)
        case inspect.UnionType(types=types):
            return any(map(_takes_none, types))
        case inspect.LiteralType(values=values):
            return any(value is None for value in values)
    return False


def _docstring_of(kind: Any) -> str | None:
    """Return a class's own docstring; None if it has none."""
    text = (get_origin(kind) or kind).__dict__.get("__doc__")
    if not text:
        return None
    return python.cleandoc(text).partition("**parameters**")[0].strip()  # those of lightkube's models


def _is_model(kind: Any) -> bool:
    """Return whether a class is one of lightkube-models."""
    module: str = (get_origin(kind) or kind).__module__
    return module.startswith("lightkube.models.")


def _check_of_defaults(kind: Any) -> Callable[[str, Any], object]:
    """Return the function that checks the default of a class's field, in JSON."""
    if isinstance(kind, ModelType):
        from ..objects.model_types import check_default  # which needs pydantic

        return partial(check_default, kind.cls)
    annotations: dict[str, Any] = {}
    if issubclass(get_origin(kind.cls) or kind.cls, msgspec.Struct):
        annotations = {field.name: field.type for field in msgspec.structs.fields(kind.cls)}

    def check(name: str, value: Any) -> object:
        return msgspec.convert(value, annotations.get(name, Any), strict=False, dec_hook=decode_hook)

    return check


@lru_cache(maxsize=1024)
def _log_validators(model: Any) -> None:
    """Log once which fields of a model have checks of its own, which the server does not know."""
    from ..objects.model_types import validators_of  # which needs pydantic

    if fields := validators_of(model):
        logger.info(
            "%s has validators (%s): they run when an object is read, and the server stores what they refuse. A "
            "Rule or a validating webhook refuses it before",
            model.__name__, ", ".join(fields),
        )  # fmt: skip


def _find_unreadable(kind: Any, path: str) -> tuple[str, Any]:
    """Return the path and the annotation of the field that msgspec cannot read, as far as they are known."""
    try:
        fields = msgspec.structs.fields(kind)
    except Exception:  # annotations are evaluated, which may raise anything
        return path, kind
    for field in fields:
        try:
            type_info(field.type)
        except Exception:
            structs = [part for part in (field.type, *get_args(field.type)) if _is_struct(part)]
            where = f"{path}.{field.encode_name}"
            inner = [_find_unreadable(struct, where) for struct in structs]
            return max(inner, key=lambda place: len(place[0]), default=(where, field.type))
    return path, kind


def _has_model(annotation: Any) -> bool:
    return is_model(annotation) or any(map(_has_model, get_args(annotation)))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _without_unset(**values: Any) -> Schema:
    return {name: value for name, value in values.items() if value is not None}


_MAKERS: dict[type, Callable[[SchemaBuilder, Any, str], Schema]] = {
    inspect.IntType: SchemaBuilder._number,
    inspect.FloatType: SchemaBuilder._number,
    inspect.EnumType: SchemaBuilder._enum,
    inspect.LiteralType: SchemaBuilder._literal,
    inspect.UnionType: SchemaBuilder._union,
    inspect.Metadata: SchemaBuilder._add_annotations,
    inspect.DictType: SchemaBuilder._map,
    inspect.StructType: SchemaBuilder._object,
    inspect.TypedDictType: SchemaBuilder._object,
    inspect.DataclassType: SchemaBuilder._object,
    ModelType: SchemaBuilder._object,
    RefusedType: SchemaBuilder._refused,
}
