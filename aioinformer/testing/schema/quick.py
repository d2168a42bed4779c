"""The fast path of decoding: msgspec reads what Go would write the same way, and fills in defaults.

It refuses everything else, valid or not; `decode` has the rules for that.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aioinformer.testing.schema.node import TYPE_META, Node
from aioinformer.testing.schema.scalars import CANONICAL
from aioinformer.testing.schema.zeros import is_pointer, is_struct, missing

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

_JSON: Any = bool | int | float | str | list[Any] | dict[str, Any]
_SCALARS: dict[tuple[str, str], Any] = {
    ("boolean", ""): bool,
    ("integer", "int32"): Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)],
    ("integer", "int64"): Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    ("number", "double"): float | int,
    ("string", ""): str,
    ("", "int-or-string"): Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | str,
}
_EMPTY: dict[str, Any] = {
    "array": [],
    "boolean": False,
    "integer": 0,
    "number": 0.0,
    "object": {},
    "string": "",
}
"""Defaults that msgspec omits, also where a value equals them."""


def read_quickly(node: Node, obj: Object) -> Object | None:
    """Return an object as Go writes it after reading it, or None if `decode` has to read it."""
    type_ = _type_of_object(node)
    if type_ is None:
        return None
    try:
        read = msgspec.convert(obj, type_)
    except msgspec.ValidationError:
        return None
    return msgspec.to_builtins(read)  # type: ignore[no-any-return]


@cache
def _type_of_object(node: Node) -> type[msgspec.Struct] | None:
    """Return the type of a whole object, whose kind is checked elsewhere; None for a recursive one."""
    unchecked = {name: Node() for name in TYPE_META if name in node.properties}
    whole = msgspec.structs.replace(node, properties=node.properties | unchecked)
    try:
        return _struct(whole, _Types())  # type: ignore[no-any-return]
    except _RecursiveError:
        return None


class _RecursiveError(Exception):
    """A type contains itself."""


class _Types(dict[int, Any]):
    """The msgspec types of structs; None for those that are not complete yet."""


def _struct(node: Node, types: _Types) -> Any:
    key = id(node.properties)  # the Nodes of fields of a type share it
    if key not in types:
        types[key] = None
        fields = [
            (f"field{number}", *_field(name, part, types))
            for number, (name, part) in enumerate(node.properties.items())
        ]
        types[key] = msgspec.defstruct(
            "Quick", fields, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, gc=False
        )
    if types[key] is None:
        raise _RecursiveError
    return types[key]


def _field(name: str, node: Node, types: _Types) -> tuple[Any, Any]:
    """Return a field's type and its msgspec field."""
    type_, filled = _type(node, types), missing(node)
    if filled is not UNSET:
        if (node.default is not UNSET or filled is None) and not is_pointer(node):
            type_ = _not_empty(node, type_)
        if filled is None:
            type_ |= None
        return type_, msgspec.field(default_factory=lambda: filled, name=name)
    if is_pointer(node) or node.format in CANONICAL or node.type not in _EMPTY:
        return type_ | UnsetType, msgspec.field(default=UNSET, name=name)
    return type_, msgspec.field(default=_EMPTY[node.type], name=name)


def _not_empty(node: Node, type_: Any) -> Any:
    """Return a type without its empty value, which means the default."""
    match node.type:
        case "array" | "object" | "string":
            return Annotated[type_, Meta(min_length=1)]
        case "integer":
            return Annotated[int, Meta(ge=1, le=2**31 - 1)]
    return type_


def _type(node: Node, types: _Types) -> Any:
    if node.format in CANONICAL:
        return Annotated[str, Meta(pattern=CANONICAL[node.format])]
    if node.type == "array" and node.items is not None:
        return list[_type(node.items, types)]  # type: ignore[misc]
    if is_struct(node):
        return _struct(node, types)
    if node.type == "object" and node.items is not None:
        return dict[str, _type(node.items, types)]  # type: ignore[misc]
    return _SCALARS.get((node.type, node.format), _JSON)
