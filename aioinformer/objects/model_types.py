"""The types of pydantic models' fields, in msgspec's terms.

The structure is that of the annotations. pydantic's JSON schema of a single value says what its limits are, also of
types that only pydantic knows.
"""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, is_typeddict

import annotated_types
import msgspec
from msgspec import Meta, inspect
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    PlainValidator,
    RootModel,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from .class_types import ModelType, RefusedType, type_info
from .models import is_model, json_name
from .reading_types import without_names

_LISTS: frozenset[Any] = frozenset([list, abc.Sequence, abc.MutableSequence, abc.Collection])
_SETS: frozenset[Any] = frozenset([set, abc.Set, abc.MutableSet])
_MAPS: frozenset[Any] = frozenset([dict, abc.Mapping, abc.MutableMapping])

_VALIDATORS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)

_OPEN: Sequence[Any] = (Any, object)
"""Types that take any value."""

_LIMITS = (
    annotated_types.Gt, annotated_types.Ge, annotated_types.Lt, annotated_types.Le, annotated_types.Interval,
    annotated_types.MultipleOf, annotated_types.MinLen, annotated_types.MaxLen, annotated_types.Len,
)  # fmt: skip

_SECONDS = r"[0-9]{1,9}(\.[0-9]+)?S"
_CLOCK = rf"T([0-9]{{1,5}}H([0-9]{{1,7}}M)?({_SECONDS})?|[0-9]{{1,7}}M({_SECONDS})?|{_SECONDS})"
_DURATION = rf"^[+-]?P(([0-9]{{1,6}}Y([0-9]{{1,8}}D)?|[0-9]{{1,8}}D)({_CLOCK})?|{_CLOCK})$"
"""ISO 8601 as pydantic writes it, with years of 365 days. What the pattern takes, pydantic reads."""

_FORMATS: dict[str, Callable[[], inspect.Type]] = {
    "date-time": inspect.DateTimeType,
    "date": inspect.DateType,
    "time": inspect.TimeType,
    "duration": lambda: inspect.StrType(pattern=_DURATION),
    "uuid": inspect.UUIDType,
}
"""Formats whose texts have the schemas of msgspec's types, because servers have other rules for the format."""

_READ_KEYS = frozenset(
    [
        "type", "items", "uniqueItems", "additionalProperties", "propertyNames", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems",
        "maxItems", "minProperties", "maxProperties", "anyOf",
    ]
)  # fmt: skip
"""Keys of JSON schemas that msgspec's types express. The others are taken as they are."""

_DESCRIBED = ("title", "description", "examples")


class _RefusalError(Exception):
    """An annotation has no schema."""


class ModelReader:
    """Reads models, each once."""

    def __init__(self) -> None:
        self._made: dict[tuple[type, str], ModelType] = {}
        self._open_structs: list[type] = []
        self._config = ConfigDict()

    def of(self, kind: Any, metadata: Sequence[Any] = ()) -> inspect.Type:
        """Return the type of an annotation in a model; a RefusedType if it has none."""
        kind = without_names(kind)
        if get_origin(kind) is Annotated:
            return self.of(kind.__origin__, (*kind.__metadata__, *metadata))
        pydantics = tuple(part for part in metadata if not isinstance(part, Meta))
        try:
            made = self._bare(kind, pydantics)
        except _RefusalError as refusal:
            return RefusedType(str(refusal))
        for part in metadata:
            if isinstance(part, FieldInfo):
                made = _describe(made, _description_of(part))
            elif isinstance(part, Meta):
                made = _add_meta(made, part)
        return made

    def _bare(self, kind: Any, metadata: tuple[Any, ...]) -> inspect.Type:
        origin: Any = get_origin(kind) or kind
        if kind is None or kind is NoneType:
            return inspect.NoneType()
        if origin in (Union, UnionType):
            return self._union(get_args(kind), metadata)
        if origin is Literal:
            return inspect.LiteralType(tuple(_value_of(value) for value in get_args(kind)))
        if isinstance(kind, TypeVar) or (kind in _OPEN and not metadata):
            return inspect.AnyType()
        if is_model(kind):
            return self._model(kind)
        if origin in _LISTS | _SETS | _MAPS | {frozenset, tuple}:
            return self._container(kind, origin, metadata)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return inspect.EnumType(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(kind)
        if is_dataclass(kind) or is_typeddict(kind):
            raise _RefusalError(f"{_name_of(kind)} is no model: make it a BaseModel")
        return self._value(kind, metadata)

    # -- models --------------------------------------------------------------------------------------------

    def _model(self, model: type[BaseModel], discriminator: str = "") -> inspect.Type:
        if (known := self._made.get((model, discriminator))) is not None:
            return known
        try:
            model.model_rebuild()
        except Exception as error:  # annotations are evaluated, which may raise anything
            raise _RefusalError(f"pydantic cannot complete {model.__name__}: {error}") from error
        if model.__pydantic_decorators__.model_serializers:
            raise _RefusalError(
                f"{model.__name__} has a model_serializer, so what is written is not what the schema says: serialize "
                "single fields"
            )
        outer, self._config = self._config, model.model_config
        try:
            if issubclass(model, RootModel):
                return self._field("root", model.model_fields["root"]).type
            extra = model.model_config.get("extra")
            made = self._made[model, discriminator] = ModelType(
                model, (), forbid_unknown_fields=extra == "forbid", keeps_unknown=extra == "allow"
            )
            if discriminator:
                made.tag_field = json_name(discriminator, model.model_fields[discriminator])
                made.tag = _tag_of(model, discriminator)
            made.fields = tuple(
                self._field(name, info) for name, info in model.model_fields.items() if name != discriminator
            )
        finally:
            self._config = outer
        return made

    def _field(self, name: str, info: FieldInfo) -> inspect.Field:
        encoded = json_name(name, info)
        kind = self.of(info.annotation, (*info.metadata, *filter(None, [info.discriminator])))
        if encoded is None:
            kind = RefusedType("it is read by one name and written by another: give it one alias")
        elif info.default_factory_takes_validated_data:
            kind = RefusedType(
                "the default is made of other fields, and a definition has one value for all objects"
            )
        elif callable(info.json_schema_extra):
            kind = RefusedType("json_schema_extra must be a dict")
        kind = _describe(kind, _description_of(info))
        if info.is_required():
            return inspect.Field(name, encoded or name, kind)
        if info.default_factory is not None:
            factory = cast("abc.Callable[[], Any]", info.default_factory)
            return inspect.Field(name, encoded or name, kind, required=False, default_factory=factory)
        return inspect.Field(name, encoded or name, kind, required=False, default=info.default)

    def _struct(self, struct: type[msgspec.Struct]) -> inspect.Type:
        if struct in self._open_structs:
            raise _RefusalError(f"{struct.__name__} contains itself: use Any here")
        if not hasattr(struct, "__get_pydantic_core_schema__"):
            raise _RefusalError(f"pydantic does not know {struct.__name__}: make it a CamelStruct or a model")
        self._open_structs.append(struct)
        try:
            return type_info(struct, self.of)
        finally:
            self._open_structs.pop()

    # -- unions --------------------------------------------------------------------------------------------

    def _union(self, kinds: Sequence[Any], metadata: tuple[Any, ...]) -> inspect.Type:
        members = [kind for kind in kinds if kind is not NoneType]
        discriminator = next(filter(None, map(_discriminator_in, metadata)), None)
        if len(members) == 1:
            made = [self.of(members[0], metadata)]
        elif discriminator is not None:
            made = [self._tagged(member, discriminator) for member in members]
        elif any(isinstance(limit, _LIMITS) for limit in _flatten(metadata)):
            raise _RefusalError(
                "limits of a union: give them to its members, as in Annotated[int, Field(ge=1)] | str"
            )
        else:
            made = [self.of(member) for member in members]
        refused = [kind for kind in made if isinstance(kind, RefusedType)]
        if refused:
            return refused[0]
        if len(made) < len(kinds):
            made.append(inspect.NoneType())
        return made[0] if len(made) == 1 else inspect.UnionType(tuple(made))

    def _tagged(self, member: Any, discriminator: Any) -> inspect.Type:
        if isinstance(discriminator, Discriminator):
            discriminator = discriminator.discriminator
        if not isinstance(discriminator, str):
            raise _RefusalError(
                "a function chooses the class of a union, and a schema needs a field: name it"
            )
        if not is_model(member) or discriminator not in member.model_fields:
            raise _RefusalError(f"each class of the union must be a model with the field {discriminator!r}")
        return self._model(member, discriminator)

    # -- lists, maps, and single values --------------------------------------------------------------------

    def _container(self, kind: Any, origin: Any, metadata: tuple[Any, ...]) -> inspect.Type:
        arguments = get_args(kind)
        if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
            raise _RefusalError(
                "a schema has no tuple of fixed length: use a model with named fields, or a list"
            )
        if origin in _MAPS:
            key, value = arguments or (str, Any)
            known = self._json_schema(dict[str, Any], metadata)
            sizes = {"min_length": known.get("minProperties"), "max_length": known.get("maxProperties")}
            of_keys = self.of(key)
            if not isinstance(of_keys, (inspect.StrType, inspect.AnyType)):
                raise _RefusalError("the keys of a dict must be str")
            made: inspect.Type = inspect.DictType(of_keys, self.of(value), **sizes)
        else:
            known = self._json_schema(list[Any], metadata)
            sizes = {"min_length": known.get("minItems"), "max_length": known.get("maxItems")}
            item = self.of(arguments[0]) if arguments else inspect.AnyType()
            made = (inspect.SetType if origin in _SETS | {frozenset} else inspect.ListType)(item, **sizes)
        return _describe(made, _others(known))

    def _value(self, kind: Any, metadata: tuple[Any, ...]) -> inspect.Type:
        schema = self._json_schema(kind, metadata)
        if isinstance(kind, type) and issubclass(kind, Decimal):
            if any(isinstance(limit, _LIMITS) for limit in _flatten(metadata)):
                raise _RefusalError("a schema cannot limit a Decimal, which is a text in JSON: use a Rule")
            return inspect.DecimalType()
        if schema.get("writeOnly"):
            raise _RefusalError(
                f"a {kind.__name__} is written as asterisks: use a str, or the name of a Secret"
            )
        wanted = schema.get("format")
        others = _others(schema)
        match schema.get("type"):
            case "string" if wanted in _FORMATS:
                del others["format"]
                made: inspect.Type = _FORMATS[wanted]()
            case "string":
                made = inspect.StrType(
                    schema.get("minLength", self._config.get("str_min_length")),
                    schema.get("maxLength", self._config.get("str_max_length")),
                    schema.get("pattern"),
                )
            case "boolean":
                made = inspect.BoolType()
            case "integer" | "number" as number:
                made = (inspect.IntType if number == "integer" else inspect.FloatType)(
                    gt=schema.get("exclusiveMinimum"),
                    ge=schema.get("minimum"),
                    lt=schema.get("exclusiveMaximum"),
                    le=schema.get("maximum"),
                    multiple_of=schema.get("multipleOf"),
                )
            case None if not schema.keys() - _DESCRIBED:
                made = inspect.AnyType()
            case _:
                return RefusedType(f"a schema has no {_name_of(kind)}: use a model, list, dict or str")
        return _describe(made, others)

    def _json_schema(self, kind: Any, metadata: tuple[Any, ...]) -> dict[str, Any]:
        """Return pydantic's JSON schema of a value.

        Raises:
            _RefusalError: It has none, it has another one when it is written, or a limit is not in it.
        """
        annotation: Any = Annotated[(kind, *metadata)] if metadata else kind
        try:
            adapter = TypeAdapter[Any](annotation, config=self._config)
            schema, written = adapter.json_schema(), adapter.json_schema(mode="serialization")
            bare = TypeAdapter[Any](kind, config=self._config).json_schema()
        except (PydanticUserError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise _RefusalError(f"pydantic has no JSON schema for it: {reason}") from error
        if "type" in schema and schema["type"] != written.get("type"):
            raise _RefusalError(
                f"it is read as {schema['type']} and written as {written.get('type', 'anything')}"
            )
        limits = [limit for limit in _flatten(metadata) if isinstance(limit, _LIMITS)]
        if limits and bare == {name: value for name, value in schema.items() if name not in _DESCRIBED}:
            raise _RefusalError(f"a schema has no limit {limits[0]} for this type: use a validator or a Rule")
        return schema


def check_default(model: type[BaseModel], name: str, value: Any) -> None:
    """Check that a field's default, as JSON, fits its type, which pydantic does not do.

    Raises:
        TypeError: It does not; the message says why.
    """
    info = model.model_fields[name]
    annotation: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    try:
        TypeAdapter[Any](annotation).validate_python(value)
    except ValidationError as error:
        raise TypeError("; ".join(part["msg"] for part in error.errors(include_url=False))) from None


def validators_of(model: type[BaseModel]) -> list[str]:
    """Return the fields whose values a model's own functions check, and ``model`` for functions about all fields."""
    decorators = model.__pydantic_decorators__
    fields = {field for validator in decorators.field_validators.values() for field in validator.info.fields}
    for name, info in model.model_fields.items():
        if any(isinstance(part, _VALIDATORS) for part in info.metadata):
            fields.add(name)
    return [*sorted(fields), *(["the whole model"] if decorators.model_validators else [])]


def _name_of(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _flatten(metadata: Sequence[Any]) -> list[Any]:
    return [
        limit for part in metadata for limit in (part.metadata if isinstance(part, FieldInfo) else [part])
    ]


def _discriminator_in(part: Any) -> Any:
    if isinstance(part, FieldInfo):
        return part.discriminator
    return part if isinstance(part, (str, Discriminator)) else None


def _tag_of(model: type[BaseModel], discriminator: str) -> Any:
    kind = without_names(model.model_fields[discriminator].annotation)
    values = get_args(kind) if get_origin(kind) is Literal else ()
    if len(values) != 1:
        raise _RefusalError(f"{model.__name__}.{discriminator} must be a Literal with one value")
    return _value_of(values[0])


def _value_of(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _others(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in _READ_KEYS}


def _description_of(info: FieldInfo) -> dict[str, Any]:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    said = {name: getattr(info, name) for name in _DESCRIBED}
    return {**{name: value for name, value in said.items() if value}, **extra}


def _describe(kind: inspect.Type, extra: dict[str, Any]) -> inspect.Type:
    return inspect.Metadata(kind, extra_json_schema=extra) if extra else kind


def _add_meta(kind: inspect.Type, meta: Meta) -> inspect.Type:
    """Add what an annotation of ours says, such as ``MapOf``. Limits are pydantic's."""
    limits = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
    if any(getattr(meta, limit) is not None for limit in limits):
        return RefusedType("pydantic does not check a msgspec.Meta: give the limit by Field(…)")
    said = {name: value for name in _DESCRIBED if (value := getattr(meta, name))}
    return inspect.Metadata(kind, {**said, **(meta.extra_json_schema or {})} or None, meta.extra)
