"""Node: the schema of one value, for built-in kinds and for custom resources alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPE_META = ("apiVersion", "kind")
OF_EVERY_OBJECT = (*TYPE_META, "metadata")
"""The fields that every object has, also where its schema does not name them."""


class Node(msgspec.Struct, omit_defaults=True, eq=False):
    """The schema of one value; two are equal only if they are the same.

    Attributes:
        type: ``object`` (fields, or a map), ``array``, ``string``, ``integer``, ``number``, ``boolean``, or ``""`` for
            any JSON.
        format: ``int32``, ``int64``, ``double``, ``byte`` (base64), ``time``, ``microTime``, ``quantity``,
            ``int-or-string``, or a format of a CustomResourceDefinition such as ``date-time``.
        go: Go's name of the type in the real server's errors, such as ``v1.PodSpec``; ``""`` for custom resources.
        properties: Nodes of the fields by name.
        items: Node of an array's items or of a map's values.
        default: The value of a missing field, or UNSET.
        zero: The value that Go writes for an empty field (no ``omitempty``), or UNSET where it omits the field.
        required: Names of the fields that must be present.
        enum: The allowed values; empty for any.
        list_type: ``atomic``, ``set`` or ``map``; ``""`` means atomic.
        list_keys: The keys of a list of type ``map``.
        merge_key: The key by which a strategic merge patch merges a list; ``""`` if it replaces the list.
        merges: Whether a strategic merge patch merges a list (of objects by ``merge_key``, else of plain values).
        retains_keys: Whether a strategic merge patch may have ``$retainKeys`` here.
        preserves_unknown: Whether unknown fields are kept.
        nullable: Whether null is a value. In built-in kinds: whether Go has a pointer, so that an empty value is kept
            where it is given.
        is_embedded: Whether this is a whole object with apiVersion, kind and metadata.
        within: Go's struct that has the field and is embedded in the object's, as paths in Go's errors show it:
            ``VolumeSource`` for a volume's ``emptyDir``.
        rules: Further constraints by their names in a CustomResourceDefinition: ``maximum``, ``pattern``, ``oneOf``,
            ``x-kubernetes-validations`` and so on.
    """

    type: str = ""
    format: str = ""
    go: str = ""
    properties: dict[str, Node] = {}
    items: Node | None = None
    default: Any = msgspec.UNSET
    zero: Any = msgspec.UNSET
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    merge_key: str = ""
    merges: bool = False
    retains_keys: bool = False
    preserves_unknown: bool = False
    nullable: bool = False
    is_embedded: bool = False
    within: str = ""
    rules: dict[str, Any] = {}


_ANY = Node()


def field_of(node: Node, name: str) -> Node:
    """Return the Node of a field or of a map's value; one for any JSON if the schema has none."""
    return node.properties.get(name) or node.items or _ANY


def items_of(node: Node) -> Node:
    """Return the Node of an array's items; one for any JSON if the schema has none."""
    return node.items or _ANY


def parts_of(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the Nodes directly inside a Node, each with its path there in a CustomResourceDefinition."""
    for name, part in node.properties.items():
        yield f".properties[{name}]", part
    if node.items is not None:
        yield ".items" if node.type == "array" else ".additionalProperties", node.items
