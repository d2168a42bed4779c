"""The schema of a custom resource as a CustomResourceDefinition holds it (`openAPIV3Schema`), and as a `Node`."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.testing.schema.formats import is_known_format
from aioinformer.testing.schema.node import Node

LOGIC = ("allOf", "anyOf", "oneOf")
RULES = "x-kubernetes-validations"
_LIMITS = frozenset(
    "maximum exclusiveMaximum minimum exclusiveMinimum multipleOf maxLength minLength pattern maxItems minItems "
    f"uniqueItems maxProperties minProperties {RULES}".split()
)


class Rule(msgspec.Struct, rename="camel", omit_defaults=True):
    """A rule in CEL, as in `x-kubernetes-validations`."""

    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


class Props(msgspec.Struct, rename="camel", omit_defaults=True):
    """A JSON schema, with the fields that a CustomResourceDefinition may have (JSONSchemaProps)."""

    type: str = ""
    format: str = ""
    properties: dict[str, Props] | None = None
    items: Props | list[Props] | None = None
    additional_properties: Props | bool | None = None
    default: Any = None
    nullable: bool = False
    required: list[str] | None = None
    enum: list[Any] | None = None
    maximum: float | None = None
    exclusive_maximum: bool = False
    minimum: float | None = None
    exclusive_minimum: bool = False
    multiple_of: float | None = None
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    max_properties: int | None = None
    min_properties: int | None = None
    all_of: list[Props] | None = None
    any_of: list[Props] | None = None
    one_of: list[Props] | None = None
    not_: Props | None = msgspec.field(name="not", default=None)
    preserves_unknown: bool | None = msgspec.field(name="x-kubernetes-preserve-unknown-fields", default=None)
    is_embedded: bool = msgspec.field(name="x-kubernetes-embedded-resource", default=False)
    is_int_or_string: bool = msgspec.field(name="x-kubernetes-int-or-string", default=False)
    list_type: str | None = msgspec.field(name="x-kubernetes-list-type", default=None)
    list_keys: list[str] | None = msgspec.field(name="x-kubernetes-list-map-keys", default=None)
    map_type: str | None = msgspec.field(name="x-kubernetes-map-type", default=None)
    rules: list[Rule] | None = msgspec.field(name=RULES, default=None)
    description: str = ""
    title: str = ""
    external_docs: Any = None
    example: Any = None
    # Not structural; a definition with one of these is refused.
    ref: str | None = msgspec.field(name="$ref", default=None)
    id: str = ""
    schema: str = msgspec.field(name="$schema", default="")
    additional_items: Any = None
    pattern_properties: dict[str, Any] | None = None
    definitions: dict[str, Any] | None = None
    dependencies: dict[str, Any] | None = None


_LIMIT_FIELDS = [field for field in msgspec.structs.fields(Props) if field.encode_name in _LIMITS]


def node_of(props: Props, *, is_root: bool = False) -> Node:
    """Return the Node of a structural schema; the root is an object with apiVersion, kind and metadata."""
    rules: dict[str, Any] = {
        field.encode_name: value
        for field in _LIMIT_FIELDS
        if (value := getattr(props, field.name)) != field.default and value != []
    }
    for name, parts in zip(LOGIC, (props.all_of, props.any_of, props.one_of), strict=True):
        if parts:
            rules[name] = [node_of(part) for part in parts]
    if props.map_type:
        rules["x-kubernetes-map-type"] = props.map_type
    if props.not_ is not None:
        rules["not"] = node_of(props.not_)
    inner = props.additional_properties if props.items is None else props.items
    if inner is False:
        rules["additionalProperties"] = False
    if inner is not None and not isinstance(inner, Props):
        inner = Props()  # true or false: keys are kept, and what is in their values is unknown
    return Node(
        type=props.type,
        format="int-or-string" if props.is_int_or_string else _format(props),
        properties={name: node_of(prop) for name, prop in (props.properties or {}).items()},
        items=None if inner is None else node_of(inner),
        default=msgspec.UNSET if props.default is None else props.default,
        required=tuple(props.required or ()),
        enum=tuple(props.enum or ()),
        list_type=props.list_type or "",
        list_keys=tuple(props.list_keys or ()),
        preserves_unknown=bool(props.preserves_unknown),
        nullable=props.nullable,
        is_embedded=props.is_embedded or is_root,
        rules=rules,
    )


def _format(props: Props) -> str:
    return props.format if is_known_format(props.type, props.format) else ""
