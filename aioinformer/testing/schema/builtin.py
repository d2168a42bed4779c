"""Schemas of the built-in kinds.

``tests/kubernetes/cmd/builtin-schema`` prints ``types.json`` from Kubernetes' Go types, its OpenAPI definitions and its
defaulting functions. The file is read at the first use, and its types are decoded as kinds need them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from aioinformer.testing.schema.node import Node

_GO_NAMES = {"string": "string", "boolean": "bool", "int32": "int32", "int64": "int64", "double": "float64"}


class _Types(msgspec.Struct, frozen=True):
    """What ``types.json`` has.

    Attributes:
        version: The Kubernetes version: ``"1.36.3"``.
        kinds: Names of types by apiVersion and kind.
        types: Undecoded Nodes of types by name. A field whose value has a type has the type's name as its ``go``.
    """

    version: str
    kinds: dict[str, dict[str, str]]
    types: dict[str, msgspec.Raw]


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
    return None if name is None else _type(name)


def _type(name: str) -> Node:
    """Return the Node of a type, with the types of its fields."""
    if name not in _linked:
        node = _linked[name] = _decode_node(_types().types[name])
        node.go = name.rpartition("/")[2]
        for field in node.properties.values():
            _link(field)
    return _linked[name]


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
        return f"[]{_pointed(node.items)}"
    if node.items is not None:
        return f"map[string]{_pointed(node.items)}"
    if node.format == "byte":
        return "[]uint8"
    return _GO_NAMES[node.format or node.type]


def _pointed(node: Node) -> str:
    return f"*{node.go}" if node.nullable else node.go
