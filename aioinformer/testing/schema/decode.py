"""Objects of built-in kinds as Go reads and writes them: types, defaults and zeros; unknown fields are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from aioinformer.testing.objects import wrong_type
from aioinformer.testing.schema.node import TYPE_META, Node
from aioinformer.testing.schema.quick import read_quickly
from aioinformer.testing.schema.scalars import UnreadableError, in_thousandths, read_scalar
from aioinformer.testing.schema.unknown import unknown_fields
from aioinformer.testing.schema.zeros import empty, is_pointer, is_struct, missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.testing.objects import Object


def read_object(node: Node, obj: Object) -> tuple[Object, Iterator[str]]:
    """Return an object as Go writes it after reading it, and the paths of its unknown fields.

    Args:
        node: The schema of the object's kind, or of metadata.
        obj: The object; it is not modified.

    Raises:
        UnreadableError: A value does not fit the type of its field.
    """
    quick = read_quickly(node, obj)
    if quick is not None:
        return quick, iter(())
    kept = {name: obj[name] for name in TYPE_META if name in obj and name in node.properties}
    return kept | _struct(node, obj, "", kept), unknown_fields(node, obj)


def _read(node: Node, value: Any, struct: str, path: str) -> Any:
    """Return a value that is not None as Go writes it."""
    field = f"{struct}.{path}"
    if node.type == "array":
        items = _array(value)
        if items is None or node.items is None:
            raise UnreadableError(wrong_type(field, node.go, value))
        return [_entry(node.items, element, struct, path) for element in items]
    if is_struct(node) or (node.type == "object" and node.items is not None):
        if not isinstance(value, dict):
            raise UnreadableError(wrong_type(field, node.go, value))
        if is_struct(node):
            return _struct(node, value, path)
        assert node.items is not None
        read = {str(key): _entry(node.items, member, struct, path) for key, member in value.items()}
        return (
            {key: in_thousandths(quantity) for key, quantity in read.items()}
            if node.items.format == "quantity"
            else read
        )
    if node.type in ("", "object") and not node.format:
        return value
    return read_scalar(node, value, field)


def _array(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else list(value) if isinstance(value, tuple) else None


def _entry(node: Node, value: Any, struct: str, path: str) -> Any:
    """Return an item of a list or a value of a map; null is the zero value."""
    return empty(node) if value is None else _read(node, value, struct, path)


def _struct(node: Node, value: Object, path: str, besides: Iterable[str] = ()) -> Object:
    """Return a struct's fields in Go's order."""
    struct = node.go.rpartition(".")[2]
    result = {}
    for name, part in node.properties.items():
        if name in besides:
            continue
        given = value.get(name)
        if given is not None:
            steps = (path, part.within, name)
            given = _read(part, given, struct, ".".join(filter(None, steps)))
        if given is None or not (given or is_pointer(part)):
            # Go takes an empty value for a missing one, but tells 0 from "" where a field can be both
            is_scalar = not isinstance(given, list | dict | None)
            given = given if is_scalar and part.default is UNSET and part.zero is not UNSET else missing(part)
        if given is not UNSET:
            result[name] = given
    return result
