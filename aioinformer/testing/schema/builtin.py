"""Schemas of the built-in kinds.

``tests/kubernetes/cmd/builtin-schema`` prints ``types.json`` from Kubernetes' Go types, its OpenAPI definitions and its
defaulting functions. The file is read at the first use, and its types are decoded as kinds need them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from aioinformer.testing.schema.node import Node

_GO_NAMES = {"string": "string", "boolean": "bool", "int32": "int32", "int64": "int64", "double": "float64"}


class _Types(msgspec.Struct, frozen=True):
    """What ``types.json`` has.

    Attributes:
        version: The Kubernetes version: ``"1.36.3"``.
        kinds: Names of types by apiVersion and kind.
        types: Undecoded Nodes of types by name. A field whose value has a type has the type's name as its ``go``.
        defaults: Defaults that fields have only in a kind: by the name of the kind's type and the path of the field.
        conditional: Fields whose default has a condition, by the names of their types, with an example.
    """

    version: str
    kinds: dict[str, dict[str, str]]
    types: dict[str, msgspec.Raw]
    defaults: dict[str, dict[str, Any]]
    conditional: dict[str, dict[str, Any]]


@cache
def _types() -> _Types:
    return msgspec.json.decode(Path(__file__).with_name("types.json").read_bytes(), type=_Types)


_decode_node = msgspec.json.Decoder(Node).decode
_linked: dict[str, Node] = {}


def kubernetes_version() -> str:
    """Return the version of Kubernetes that the schemas are of."""
    return _types().version


@cache
def node_of(api_version: str, kind: str) -> Node | None:
    """Return the schema of a built-in kind, or None for other kinds.

    Kinds share the Nodes of types, and some Nodes contain themselves: do not modify them.
    """
    name = _types().kinds.get(api_version, {}).get(kind)
    if name is None:
        return None
    node = _type(name)
    for path, default in _types().defaults.get(name, {}).items():
        node = _with_default(node, path.split("."), default)
    return node


def metadata_node() -> Node:
    """Return the schema of every object's metadata."""
    return _type("meta/v1.ObjectMeta")


@cache
def volume_sources() -> frozenset[str]:
    """Return the fields in the spec of a PersistentVolume of which each is a type of volume."""
    fields = _type("core/v1.PersistentVolumeSpec").properties
    return frozenset(name for name, field in fields.items() if field.within)


def conditional_defaults() -> dict[str, dict[str, Any]]:
    """Return the fields whose default has a condition, with an example: by types, such as ``core/v1.Container``."""
    return _types().conditional


def _type(name: str) -> Node:
    """Return the Node of a type, with the types of its fields."""
    if name not in _linked:
        node = _linked[name] = _decode_node(_types().types[name])
        node.go = name.rpartition("/")[2]
        for field in node.properties.values():
            _link(field)
    return _linked[name]


def _with_default(node: Node, path: list[str], default: Any) -> Node:
    """Return a copy of a Node in which the field at a path has a default."""
    if not path:
        return msgspec.structs.replace(node, default=default)
    if node.items is not None:
        return msgspec.structs.replace(node, items=_with_default(node.items, path, default))
    name, *rest = path
    field = _with_default(node.properties[name], rest, default)
    return msgspec.structs.replace(node, properties=node.properties | {name: field})


def _link(node: Node) -> None:
    """Complete the Node of a field, an item or a map's value."""
    if "/" in node.go:
        of = _type(node.go)
        node.type, node.go, node.properties = of.type, of.go, of.properties
        node.required, node.is_embedded = of.required, of.is_embedded
        node.rules = of.rules | node.rules
        return
    if node.items is not None:
        _link(node.items)
    if not node.go:
        node.go = _go_name(node)


def _go_name(node: Node) -> str:
    """Return Go's name of a type without a name of its own."""
    if node.type == "array" and node.items is not None:
        return f"[]{_name_pointer(node.items)}"
    if node.items is not None:
        return f"map[string]{_name_pointer(node.items)}"
    if node.format == "byte":
        return "[]uint8"
    return _GO_NAMES[node.format or node.type]


def _name_pointer(node: Node) -> str:
    return f"*{node.go}" if node.nullable else node.go
