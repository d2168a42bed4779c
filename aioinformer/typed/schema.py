"""Structural OpenAPI v3 schemas of Python types, as a CustomResourceDefinition has them."""

from __future__ import annotations

import inspect as python
import re
from collections.abc import Callable, Iterable
from typing import Any, get_origin

import msgspec
from msgspec import inspect

from ..objects.encoding import plain
from ..objects.reading_types import is_optional
from .annotations import EXTENSION, VALIDATIONS

Schema = dict[str, Any]

_ANYTHING: Schema = {f"{EXTENSION}preserve-unknown-fields": True}
_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    f"{EXTENSION}int-or-string": True,
}
_LIST_TYPE, _MAP_KEYS = f"{EXTENSION}list-type", f"{EXTENSION}list-map-keys"

_BASE64: Schema = {"type": "string", "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==|[A-Za-z0-9+/]=))?$"}
"""Not the format "byte", which accepts any text."""

_SECONDS = r"[0-9]{1,9}(\.[0-9]+)?S"
_CLOCK = rf"T([0-9]{{1,9}}H([0-9]{{1,9}}M)?({_SECONDS})?|[0-9]{{1,9}}M({_SECONDS})?|{_SECONDS})"
_DURATION: Schema = {"type": "string", "pattern": rf"^[+-]?P([0-9]{{1,8}}D({_CLOCK})?|{_CLOCK})$"}
"""Days, hours, minutes and seconds of ISO 8601. Not the format "duration", which is Go's and others."""

_HOURS = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME: Schema = {"type": "string", "pattern": rf"^{_HOURS}:[0-5][0-9](\.[0-9]+)?(Z|[+-]{_HOURS})?$"}
_DECIMAL: Schema = {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"}

_FROM_YEAR_1 = "0[1-9]|00[1-9]|000[1-9]"
"""How Python's first years begin; the formats "date" and "date-time" also have the year 0000."""

_DAY_AND_CLOCK = "[0-9-]+T[0-9:]{8}"

_MOMENT: Schema = {
    "type": "string",
    "format": "date-time",
    "pattern": (
        rf"^(([1-8]|{_FROM_YEAR_1}){_DAY_AND_CLOCK}(\.[0-9]+)?"
        rf"|9{_DAY_AND_CLOCK}(\.[0-9]{{1,6}})?)"  # not rounded, as the last second of 9999 must not be
        rf"(Z|[+-]{_HOURS})$"
    ),
}
"""RFC 3339. The format "date-time" also takes lower case, any character for the point, and any zone."""

_UUID: Schema = {
    "type": "string",
    "format": "uuid",
    "pattern": "^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$",
}
"""The format "uuid" also takes some of the dashes."""

_SIMPLE: dict[type, Schema] = {
    inspect.AnyType: _ANYTHING,
    inspect.RawType: _ANYTHING,
    inspect.BoolType: {"type": "boolean"},
    inspect.StrType: {"type": "string"},
    inspect.DateTimeType: _MOMENT,
    inspect.DateType: {"type": "string", "format": "date", "pattern": f"^([1-9]|{_FROM_YEAR_1})"},
    inspect.BytesType: _BASE64,
    inspect.ByteArrayType: _BASE64,
    inspect.UUIDType: _UUID,
    inspect.TimeType: _TIME,
    inspect.TimeDeltaType: _DURATION,
    inspect.DecimalType: _DECIMAL,
}
"""Types that contain no others. Only those that are strings in JSON have limits."""

_EXTRA_KEYS = frozenset(
    [
        "title", "description", "format", "default", "enum", "nullable", "pattern", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
        "uniqueItems", "minProperties", "maxProperties", "not", "allOf", "anyOf", "oneOf", "externalDocs", "example",
    ]
)  # fmt: skip
"""Keys that ``Meta.extra_json_schema`` may give."""

_NOT_IN_GO = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\(\?P=")
"""Lookaheads and backreferences, which Go's regular expressions do not have."""


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
            found = inspect.type_info(struct)
        except Exception as error:  # annotations are evaluated, which may raise anything
            hint = "; annotations may name what is defined in the module, not in a function"
            self._mistake(
                struct.__name__,
                f"msgspec cannot read the class: {error}{hint if isinstance(error, NameError) else ''}",
            )
            return {}
        return self._of(found, struct.__name__)

    def _mistake(self, path: str, text: str) -> Schema:
        self.mistakes.append(f"{path}: {text}")
        return {}

    def _of(self, kind: inspect.Type, path: str) -> Schema:
        make = _MAKERS.get(type(kind))
        if make is not None:
            return make(self, kind, path)
        if type(kind) in _SIMPLE:
            return {**_SIMPLE[type(kind)], **self._text_limits(kind, path)}
        if isinstance(kind, inspect.CollectionType):
            return self._list(kind, path)
        cls = getattr(kind, "cls", None)
        name = cls.__name__ if isinstance(cls, type) else type(kind).__name__.removesuffix("Type").lower()
        return self._mistake(
            path, f"a schema has no {name}; use a Struct, list, dict, str, int, float or bool"
        )

    # -- scalars -------------------------------------------------------------------------------------------

    def _text_limits(self, kind: Any, path: str) -> Schema:
        if isinstance(kind, inspect.StrType) and kind.pattern and (found := _NOT_IN_GO.search(kind.pattern)):
            self._mistake(path, f"pattern: Go's regular expressions have no {found[0]!r}: use a Rule")
        if isinstance(kind, (inspect.BytesType, inspect.ByteArrayType)) and (
            kind.min_length or kind.max_length
        ):
            return self._mistake(path, "a schema cannot limit the length of bytes, only of a str")
        return _given(
            minLength=getattr(kind, "min_length", None),
            maxLength=getattr(kind, "max_length", None),
            pattern=getattr(kind, "pattern", None),
        )

    def _number(self, kind: Any, path: str) -> Schema:
        limits = _given(minimum=kind.ge, maximum=kind.le, multipleOf=kind.multiple_of)
        if kind.gt is not None:
            limits |= {"minimum": kind.gt, "exclusiveMinimum": True}
        if kind.lt is not None:
            limits |= {"maximum": kind.lt, "exclusiveMaximum": True}
        return {"type": "integer" if isinstance(kind, inspect.IntType) else "number", **limits}

    def _enum(self, kind: inspect.EnumType, path: str) -> Schema:
        return self._one_of([each.value for each in kind.cls], path)

    def _literal(self, kind: inspect.LiteralType, path: str) -> Schema:
        return self._one_of((each for each in kind.values if each is not None), path)

    def _one_of(self, values: Iterable[Any], path: str) -> Schema:
        values = list(values)
        types = {type(each) for each in values}
        if types == {str}:
            return {"type": "string", "enum": values}
        if types == {int}:
            return {"type": "integer", "enum": values}
        return self._mistake(path, f"the values {values} must all be strings, or all be integers")

    # -- unions and annotations ----------------------------------------------------------------------------

    def _union(self, kind: inspect.UnionType, path: str) -> Schema:
        types = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        names = {type(each) for each in types}
        if len(types) == 1:
            schema = self._of(types[0], path)
        elif names == {inspect.IntType, inspect.StrType}:
            schema = {**_INT_OR_STRING}
            for each in types:  # limits of numbers do not concern strings, nor the reverse
                schema |= {name: value for name, value in self._of(each, path).items() if name != "type"}
        elif names == {inspect.IntType, inspect.FloatType}:
            schema = self._number(next(each for each in types if isinstance(each, inspect.FloatType)), path)
        else:
            return self._mistake(
                path,
                "a schema has one type for a field, or int | str: use optional fields, or Any and a Rule",
            )
        # Servers take no null for an enum, even a nullable one; of a field that is not nullable they drop it.
        is_nullable = len(types) < len(kind.types) and "enum" not in schema
        return {**schema, "nullable": True} if is_nullable else schema

    def _annotated(self, kind: inspect.Metadata, path: str) -> Schema:
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
        self._check_list(schema, path)
        return schema

    # -- lists, maps and objects ---------------------------------------------------------------------------

    def _list(self, kind: inspect.CollectionType, path: str) -> Schema:
        schema: Schema = {
            "type": "array",
            "items": self._of(kind.item_type, f"{path}[]"),
            **_given(minItems=kind.min_length, maxItems=kind.max_length),
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
        values = _ANYTHING if is_any else {"additionalProperties": self._of(kind.value_type, f"{path}[…]")}
        return {
            "type": "object",
            **values,
            **_given(minProperties=kind.min_length, maxProperties=kind.max_length),
        }

    def _object(self, kind: Any, path: str) -> Schema:
        if kind.cls in self._open:
            return self._mistake(
                path, f"{kind.cls.__name__} contains itself, and a schema has no references: use Any here"
            )
        if getattr(kind, "array_like", False):
            return self._mistake(path, f"{kind.cls.__name__} has array_like=True: fields need their names")
        self._open.append(kind.cls)
        annotations = _annotations_of(kind.cls)
        properties: Schema = {}
        required = []
        if getattr(kind, "tag_field", None):
            properties[kind.tag_field] = self._one_of([kind.tag], f"{path}.{kind.tag_field}")
            required.append(kind.tag_field)
        for field in kind.fields:
            where = f"{path}.{field.encode_name}"
            schema = self._of(field.type, where)
            if field.required:
                required.append(field.encode_name)
            else:
                self._set_default(schema, field, annotations.get(field.name, Any), where)
            properties[field.encode_name] = schema
        self._open.pop()
        schema = {"type": "object", "properties": properties, **_given(required=required or None)}
        return {**_given(description=_docstring_of(kind.cls)), **schema}

    def _set_default(self, schema: Schema, field: inspect.Field, annotation: Any, path: str) -> None:
        try:
            value = field.default
            if value is msgspec.NODEFAULT:
                value = None if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            if value is None or value is msgspec.UNSET:
                return
            built = without_none(msgspec.to_builtins(value, str_keys=True))
            msgspec.convert(built, annotation, strict=False)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            self._mistake(path, f"the default does not fit the type: {error}")
            return
        schema["default"] = built


def _docstring_of(kind: Any) -> str | None:
    """Return a class's own docstring; None if it has none."""
    text = (get_origin(kind) or kind).__dict__.get("__doc__")
    return python.cleandoc(text) if text else None


def _annotations_of(kind: Any) -> dict[str, Any]:
    """Return the annotations of a Struct's fields, also of a generic one: ``Pair[int]``."""
    if not issubclass(get_origin(kind) or kind, msgspec.Struct):
        return {}
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _given(**values: Any) -> Schema:
    return {name: value for name, value in values.items() if value is not None}


_MAKERS: dict[type, Callable[[SchemaBuilder, Any, str], Schema]] = {
    inspect.IntType: SchemaBuilder._number,
    inspect.FloatType: SchemaBuilder._number,
    inspect.EnumType: SchemaBuilder._enum,
    inspect.LiteralType: SchemaBuilder._literal,
    inspect.UnionType: SchemaBuilder._union,
    inspect.Metadata: SchemaBuilder._annotated,
    inspect.DictType: SchemaBuilder._map,
    inspect.StructType: SchemaBuilder._object,
    inspect.TypedDictType: SchemaBuilder._object,
    inspect.DataclassType: SchemaBuilder._object,
}
