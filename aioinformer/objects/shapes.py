"""What a class knows of a JSON value: its fields, and what identifies the items of its lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

from .class_types import type_info
from .models import encode_hook
from .protobuf import JSONField, is_atomic, json_fields, message_of

MAP_KEYS = "x-kubernetes-list-map-keys"
"""The schema's key for the names that ``MapOf`` gives."""

_OBJECT, _STATUS = "custom resource", "status of a custom resource"
"""Stand for messages that Kubernetes' own types do not have."""


class Shape:
    """A value of which a class knows everything: a scalar, ``Any``."""

    def for_value(self, value: Any) -> Shape:
        """Return the alternative of a union that a value has; the shape itself if it is none."""
        return self

    def parts(self) -> Iterator[Shape]:
        """Yield the shapes of the values inside."""
        yield from ()

    def unknown(self, value: Any, known: Any = None) -> str:
        """Return the path of a field that the class does not have; ``""`` if it has all.

        Args:
            value: The value.
            known: What the class has of it, for a class whose fields are not known.
        """
        return ""


WHOLE = Shape()


class Seen(Shape):
    """A value of a model, which has the fields that it keeps."""

    def unknown(self, value: Any, known: Any = None) -> str:
        if isinstance(value, dict) and isinstance(known, dict):
            for name, part in value.items():
                if part is not None and name not in known:
                    return str(name)
                if inner := self.unknown(part, known.get(name)):
                    return f"{name}.{inner}"
        elif isinstance(value, list) and isinstance(known, list):
            return next(filter(None, map(self.unknown, value, known)), "")
        return ""


SEEN = Seen()


@dataclass(eq=False, slots=True)
class Fields(Shape):
    """An object with named fields: a Struct, a dataclass, a TypedDict.

    Attributes:
        name: The class's name.
        fields: The shapes of the fields by their names in JSON.
        omitted: Values of fields that JSON omits, of a Struct with ``omit_defaults``.
        tag: The field and the value that tell it from other classes of a union; None for none.
        rest: The shape of other fields, of a class that keeps them; None for a class that drops them.
        is_closed: Whether the class forbids other fields.
        is_atomic: Whether server-side apply replaces it as a whole.
    """

    name: str
    fields: dict[str, Shape] = field(default_factory=dict)
    omitted: dict[str, Any] = field(default_factory=dict)
    tag: tuple[str, Any] | None = None
    rest: Shape | None = None
    is_closed: bool = False
    is_atomic: bool = False

    def parts(self) -> Iterator[Shape]:
        yield from self.fields.values()

    def unknown(self, value: Any, known: Any = None) -> str:
        if isinstance(value, dict):
            for name, part in value.items():
                shape = self.fields.get(name, self.rest)
                if shape is None:
                    return str(name)
                if shape is not None and (inner := shape.unknown(part)):
                    return f"{name}.{inner}"
        return ""


@dataclass(eq=False, slots=True)
class Values(Shape):
    """An object with any names: ``dict[str, X]``."""

    of: Shape

    def parts(self) -> Iterator[Shape]:
        yield self.of

    def unknown(self, value: Any, known: Any = None) -> str:
        return _first_unknown(self.of, value.values()) if isinstance(value, dict) else ""


@dataclass(eq=False, slots=True)
class Items(Shape):
    """A list.

    Attributes:
        of: The shape of the items.
        keys: The fields that identify an item; empty for none.
        is_custom: Whether Kubernetes' own types do not have the list. By its API conventions, items that have a name
            are identified by that, though a list without keys may have a name twice.
        is_merged: Whether the server merges the list by keys when it is applied; otherwise it replaces the list.
    """

    of: Shape
    keys: tuple[str, ...] = ()
    is_custom: bool = False
    is_merged: bool = False

    def parts(self) -> Iterator[Shape]:
        yield self.of

    def unknown(self, value: Any, known: Any = None) -> str:
        return _first_unknown(self.of, value) if isinstance(value, list) else ""


class Members(Items):
    """A set: its items have no order."""


@dataclass(eq=False, slots=True)
class Positions(Shape):
    """A list whose items are known by their positions: a tuple, a Struct with ``array_like``."""

    of: Sequence[Shape]

    def parts(self) -> Iterator[Shape]:
        yield from self.of

    def unknown(self, value: Any, known: Any = None) -> str:
        if not isinstance(value, list):
            return ""
        if len(value) > len(self.of):
            return f"[{len(self.of)}]"
        inner = (shape.unknown(part) for shape, part in zip(self.of, value, strict=False))
        return next(filter(None, inner), "")


@dataclass(eq=False, slots=True)
class Choice(Shape):
    """A union."""

    of: Sequence[Shape]

    def for_value(self, value: Any) -> Shape:
        if isinstance(value, list):
            wanted: tuple[type[Shape], ...] = (Items, Positions)
        elif isinstance(value, dict):
            for shape in self.of:
                if isinstance(shape, Fields) and shape.tag and value.get(shape.tag[0]) == shape.tag[1]:
                    return shape
            wanted = (Fields, Values)
        else:
            return WHOLE
        return next((shape for shape in self.of if isinstance(shape, wanted)), WHOLE)

    def parts(self) -> Iterator[Shape]:
        yield from self.of

    def unknown(self, value: Any, known: Any = None) -> str:
        return self.for_value(value).unknown(value)


def _first_unknown(shape: Shape, values: Any) -> str:
    return "" if shape is WHOLE else next(filter(None, map(shape.unknown, values)), "")


@lru_cache(maxsize=256)
def shape_of(struct: type[msgspec.Struct], api_version: str = "", kind: str = "") -> Shape:
    """Return what a Struct knows of objects.

    Args:
        struct: The class.
        api_version: Of the objects. The lists of built-in kinds have the keys of Kubernetes' own types, unless the
            class gives others.
        kind: Of the objects.
    """
    message = message_of(api_version, kind) or _OBJECT
    return _ShapeBuilder().build(_type_info(struct), JSONField(message, ()))


@lru_cache(maxsize=256)
def is_whole(struct: type[msgspec.Struct]) -> bool:
    """Return whether decoding into a Struct, and into the classes within it, keeps all fields."""
    shapes: list[Shape] = [shape_of(struct)]
    seen: set[int] = set()
    while shapes:
        shape = shapes.pop()
        if isinstance(shape, Fields) and not shape.is_closed:
            return False
        if id(shape) not in seen:
            seen.add(id(shape))
            shapes += shape.parts()
    return True


_type_info = lru_cache(maxsize=256)(type_info)


class _ShapeBuilder:
    """Makes the shapes of one class, which may contain itself."""

    def __init__(self) -> None:
        self._made: dict[Any, Fields] = {}

    def build(
        self, kind: inspect.Type, at: JSONField | None, keys: Sequence[str] = (), *, is_declared: bool = False
    ) -> Shape:
        """Return the shape of a type.

        Args:
            kind: The type.
            at: What Kubernetes' own types say about the place; None if they do not have it.
            keys: The fields that identify the items of a list, where these types do not say it.
            is_declared: Whether the class gives the keys.
        """
        match kind:
            case inspect.Metadata():
                said = {**(kind.extra_json_schema or {}), **(kind.extra or {})}
                if MAP_KEYS in said:
                    keys, is_declared = said[MAP_KEYS], True
                return self.build(kind.type, at, keys, is_declared=is_declared)
            case inspect.UnionType():
                shapes = [
                    self.build(part, at, keys, is_declared=is_declared)
                    for part in kind.types
                    if not isinstance(part, inspect.NoneType)
                ]
                return shapes[0] if len(shapes) == 1 else Choice(shapes)
            case inspect.SetType() | inspect.FrozenSetType():
                return Members(self.build(kind.item_type, at))
            case inspect.CollectionType():
                return Items(
                    self.build(kind.item_type, at),
                    keys=tuple(keys if is_declared or at is None else at.keys),
                    is_custom=at is None,
                    is_merged=is_declared if at is None else bool(at.keys),
                )
            case inspect.TupleType():
                return Positions([self.build(part, at) for part in kind.item_types])
            case inspect.DictType():
                return Values(self.build(kind.value_type, at))
            case inspect.StructType(array_like=True) | inspect.NamedTupleType():
                return Positions([self.build(part.type, None) for part in kind.fields])
            case inspect.StructType() | inspect.TypedDictType() | inspect.DataclassType():
                return self._fields(kind, at)
        return WHOLE

    def _fields(self, kind: Any, at: JSONField | None) -> Fields:
        message = "" if at is None else at.message
        key = kind.cls, message, getattr(kind, "tag_field", None)
        if (made := self._made.get(key)) is not None:
            return made
        shape = self._made[key] = Fields(kind.cls.__name__)
        shape.rest = WHOLE if getattr(kind, "keeps_unknown", False) else None
        if getattr(kind, "tag_field", None):
            shape.tag = kind.tag_field, kind.tag
            shape.fields[kind.tag_field] = WHOLE
        shape.is_closed = getattr(kind, "forbid_unknown_fields", False)
        shape.is_atomic = is_atomic(message)
        places = _places(message)
        for part in kind.fields:
            name = part.encode_name
            # By Kubernetes' API conventions, the conditions of every kind are a map by their types.
            keys = ("type",) if (message, name) == (_STATUS, "conditions") else ()
            shape.fields[name] = self.build(part.type, places.get(name), keys)
        config = getattr(kind.cls, "__struct_config__", None)
        if config is not None and config.omit_defaults:
            shape.omitted = {part.encode_name: _default_of(part) for part in kind.fields if not part.required}
        return shape


def _places(message: str) -> dict[str, JSONField]:
    if message == _OBJECT:
        return {"metadata": JSONField("meta/v1.ObjectMeta", ()), "status": JSONField(_STATUS, ())}
    return json_fields(message) if message and message != _STATUS else {}


def _default_of(part: inspect.Field) -> Any:
    default = part.default if part.default is not msgspec.NODEFAULT else part.default_factory()
    return msgspec.to_builtins(default, str_keys=True, enc_hook=encode_hook)
