"""Types for reading objects of a class that the class itself may refuse.

Limits, patterns, Literals and forbidden unknown fields are for what is written. What is read has passed the server's
checks, and an older or newer version of the class may have written it.
"""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import types
import typing
from collections.abc import Collection, Hashable, Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

import msgspec
from msgspec import Meta

_LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")

_CONTAINERS: frozenset[Any] = frozenset(
    [
        list, tuple, set, frozenset, dict, abc.Collection, abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet,
        abc.Mapping, abc.MutableMapping,
    ]
)  # fmt: skip


def without_patterns(struct: Any) -> Any:
    """Return a type for reading objects of a Struct without running its patterns, which may take exponential time.

    Its instances are of the Struct. It is the Struct itself if that has no patterns.

    Args:
        struct: The Struct, also a generic one: ``Pair[int]``.

    Raises:
        Exception: An annotation cannot be evaluated; of any type.
    """
    return _Builder(("pattern",), is_lenient=False).of(struct)


def without_limits(struct: Any) -> Any:
    """Return a type for reading objects of a Struct that the Struct may refuse.

    Types have no limits, a Literal is a str or an int, and Structs take unknown fields. A Struct's field ``X | None``
    without a default may be missing: it is None then. All this holds for the Structs, dataclasses and TypedDicts
    inside, too. Its instances are of the Struct.

    Args:
        struct: The Struct, also a generic one: ``Pair[int]``.

    Raises:
        Exception: An annotation cannot be evaluated; of any type.
    """
    return _Builder(_LIMITS, is_lenient=True).of(struct)


def is_optional(kind: Any) -> bool:
    """Return whether a type, as in an annotation, takes None."""
    kind = without_names(kind)
    if get_origin(kind) is Annotated:
        return is_optional(kind.__origin__)
    if _is_union(kind):
        return any(map(is_optional, get_args(kind)))
    return kind is None or kind is type(None) or (get_origin(kind) is Literal and None in get_args(kind))


class _Builder:
    """Makes the reading types of a class and of those inside, each once.

    Args:
        limits: Attributes of Meta. A type is read without its Meta if that has one of them.
        is_lenient: Whether to read Literals with other values, and Structs with other fields.
    """

    def __init__(self, limits: Collection[str], *, is_lenient: bool) -> None:
        self._limits = limits
        self._is_lenient = is_lenient
        self._made: dict[Hashable, Any] = {}

    def of(self, kind: Any) -> Any:
        """Return the reading type of a type; the type itself if it needs no other."""
        kind = without_names(kind)
        if not self._is_changed(kind, set()):
            return kind
        origin: Any = get_origin(kind)
        args = get_args(kind)
        if origin is Annotated:
            return self.of(kind.__origin__)
        if origin is Literal:
            return _union(type(value) for value in args)
        if _is_union(kind):
            return _union(map(self.of, args))
        if origin in _CONTAINERS:
            return origin[tuple(part if part is Ellipsis else self.of(part) for part in args)]
        if not _has_fields(kind):
            return kind  # a type that is not known here is read as it is
        if (key := _key(kind)) not in self._made:
            self._make(kind, origin or kind, key)
        return self._made[key]

    def _make(self, kind: Any, cls: Any, key: Hashable) -> None:
        """Make the reading class of a Struct, dataclass or TypedDict."""
        made: Any
        if is_typeddict(cls):
            made = _typed_dict(cls.__name__)
            made.__required_keys__ = _required_keys(cls)
        elif issubclass(cls, msgspec.Struct):
            made = _struct_class(cls, _may_be_missing(cls) if self._is_lenient else {})
        else:
            made = _dataclass(cls)
        self._made[key] = made  # before its fields, which may be of this class
        made.__annotations__ = {name: self.of(part) for name, part in _fields_of(kind).items()}

    def _is_changed(self, kind: Any, seen: set[Hashable]) -> bool:
        """Return whether a type, or one inside, must be read as another one."""
        kind = without_names(kind)
        origin = get_origin(kind)
        if origin is Literal:
            return self._is_lenient
        if origin is Annotated:
            return self._has_limit(kind.__metadata__) or self._is_changed(kind.__origin__, seen)
        if not _has_fields(kind):
            return any(self._is_changed(part, seen) for part in get_args(kind))
        if (key := _key(kind)) in seen:
            return False
        seen.add(key)
        cls = origin or kind
        if self._is_lenient and _is_strict(cls):
            return True
        return any(self._is_changed(part, seen) for part in _fields_of(kind).values())

    def _has_limit(self, metadata: tuple[Any, ...]) -> bool:
        limits = [constraint for constraint in metadata if isinstance(constraint, Meta)]
        return any(getattr(limit, name) is not None for limit in limits for name in self._limits)


class _NotRegistered:
    """Keeps the reading class from ``__init_subclass__`` of its Struct, such as a registry of classes."""

    __slots__ = ()

    def __init_subclass__(cls, **_: Any) -> None:
        pass


def _struct_class(cls: Any, may_be_missing: dict[str, str]) -> type:
    """Return a subclass of a Struct whose instances become instances of the Struct once they are decoded.

    Args:
        cls: The Struct.
        may_be_missing: Fields that are None if they are missing: their names, and those in JSON.
    """
    config = cls.__struct_config__
    namespace = {
        **_namespace_of(cls),
        "__annotations__": dict.fromkeys(may_be_missing, Any),
        **{name: msgspec.field(default=None, name=encoded) for name, encoded in may_be_missing.items()},
    }
    options = {
        "forbid_unknown_fields": False,
        "tag": config.tag,  # a tag may be the class's name, or made of it
        "tag_field": config.tag_field,
        "kw_only": True,
    }
    return types.new_class(cls.__name__, (_NotRegistered, cls), options, lambda body: body.update(namespace))


def _typed_dict(name: str) -> Any:
    """Return a TypedDict that gets its fields later."""
    return types.new_class(name, (typing.TypedDict,))


def _dataclass(cls: Any) -> type:
    """Return a subclass of a dataclass whose instances become instances of the dataclass once they are decoded."""
    namespace = _namespace_of(cls)
    if "__dict__" not in dir(cls):
        namespace["__slots__"] = ()
    return types.new_class(cls.__name__, (cls,), {}, lambda body: body.update(namespace))


_set_class = vars(object)["__class__"].__set__
"""Sets the class of an instance, also of a frozen one. The layouts must be the same."""


def _namespace_of(cls: Any) -> dict[str, Any]:
    """Return what a reading class has of its own: it changes each decoded instance's class."""
    if hasattr(cls, "__post_init__"):

        def __post_init__(self: Any) -> None:  # noqa: N807 - msgspec calls it
            _set_class(self, cls)
            self.__post_init__()
    else:

        def __post_init__(self: Any) -> None:  # noqa: N807
            _set_class(self, cls)

    return {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__post_init__": __post_init__}


def _is_strict(cls: Any) -> bool:
    """Return whether a class is a Struct that refuses other fields than it has."""
    if not issubclass(cls, msgspec.Struct):
        return False
    return cls.__struct_config__.forbid_unknown_fields or bool(_may_be_missing(cls))


def _may_be_missing(cls: Any) -> dict[str, str]:
    """Return a Struct's fields ``X | None`` without a default: their names, and those in JSON."""
    if cls.__struct_config__.array_like:
        return {}
    return {
        field.name: field.encode_name
        for field in msgspec.structs.fields(cls)
        if field.required and is_optional(field.type)
    }


def _has_fields(kind: Any) -> bool:
    """Return whether a type is a Struct, dataclass or TypedDict."""
    cls = get_origin(kind) or kind
    if not isinstance(cls, type):
        return False
    return issubclass(cls, msgspec.Struct) or dataclasses.is_dataclass(cls) or is_typeddict(cls)


def _fields_of(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a class; none of a generic dataclass or TypedDict, which is read as it is."""
    cls = get_origin(kind) or kind
    if issubclass(cls, msgspec.Struct):
        return {field.name: field.type for field in msgspec.structs.fields(kind)}
    if cls is not kind:
        return {}
    hints = typing.get_type_hints(cls, include_extras=True)
    if is_typeddict(cls):
        marks = (typing.Required, typing.NotRequired)
        return {
            name: get_args(part)[0] if get_origin(part) in marks else part for name, part in hints.items()
        }
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _required_keys(cls: Any) -> frozenset[str]:
    """Return the required keys of a TypedDict, whose own attribute is wrong where annotations are strings."""
    marks = {name: get_origin(part) for name, part in typing.get_type_hints(cls, include_extras=True).items()}
    required = {
        name for name, mark in marks.items() if mark is typing.Required or name in cls.__required_keys__
    }
    return frozenset(name for name in required if marks[name] is not typing.NotRequired)


def _key(kind: Any) -> Hashable:
    try:
        hash(kind)
    except TypeError:  # an alias that contains a Meta with a dict
        return repr(kind)
    return kind  # type: ignore[no-any-return]


def without_names(kind: Any) -> Any:
    """Return what a NewType, or a name that ``type`` gave, stands for."""
    while True:
        if hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif type(get_origin(kind)).__name__ == "TypeAliasType":
            kind = get_origin(kind).__value__[get_args(kind)]
        else:
            return kind


def _union(kinds: Iterable[Any]) -> Any:
    return reduce(or_, kinds)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)
