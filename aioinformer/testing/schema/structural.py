"""Faults of a schema in a CustomResourceDefinition: what is not structural, unsupported, or contradicts itself.

The rules are those of apiextensions-apiserver (pkg/apiserver/schema and pkg/apis/apiextensions/validation, v1.36).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.schema.faults import Fault
from aioinformer.testing.schema.node import OF_EVERY_OBJECT
from aioinformer.testing.schema.patterns import compile_pattern
from aioinformer.testing.schema.props import RULES, Props

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = ("id", "additional_items", "pattern_properties", "definitions", "dependencies", "ref")
_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(Props)}
_PLACES = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
_INT_OR_STRING = [Props(type="integer"), Props(type="string")]

# Fields of a nested schema (in allOf and the like) that belong to the structure, and what they must be.
_NOT_NESTED = {
    "type": "empty",
    "additional_properties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "preserves_unknown": "false",
    "is_embedded": "false",
    "is_int_or_string": "false",
    "list_keys": "empty",
    "list_type": "undefined",
    "map_type": "undefined",
    "rules": "empty",
}


def structural_faults(props: Props, path: str, level: str = "root") -> Iterator[Fault]:
    """Yield what makes a schema not structural.

    Args:
        props: The schema.
        path: Its path in the definition.
        level: Where it stands: `root`, `item` or `field`.
    """
    if props.type == "array" and props.items is None:
        yield Fault("Required", f"{path}.items", detail="must be specified")
    for below, part, level_below in _structure(props, path):
        yield from structural_faults(part, below, level_below)
    if level == "root" and props.additional_properties is not None:
        yield Fault("Forbidden", f"{path}.additionalProperties", detail="must not be used at the root")
    if props.is_int_or_string:
        for name in ("preserve-unknown-fields", "embedded-resource"):
            if props.preserves_unknown if name.startswith("p") else props.is_embedded:
                why = "must be false if x-kubernetes-int-or-string is true"
                yield Fault("Invalid", f"{path}.x-kubernetes-{name}", True, why)
    yield from _value_faults(props, path)
    if level == "root":  # as upstream, which does not look further down
        yield from _missing_in_structure(props, props, path, path)
    yield from _type_faults(props, path, level)
    if props.is_embedded and not props.preserves_unknown and not props.properties:
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield Fault("Required", f"{path}.properties", detail=why)


def _structure(props: Props, path: str) -> Iterator[tuple[str, Props, str]]:
    """Yield the schemas inside a schema, but not those of its logic."""
    if isinstance(props.items, Props):
        yield f"{path}.items", props.items, "item"
    for name, prop in (props.properties or {}).items():
        yield f"{path}.properties[{name}]", prop, "field"
    if isinstance(props.additional_properties, Props):
        yield f"{path}.additionalProperties", props.additional_properties, "field"


def _type_faults(props: Props, path: str, level: str) -> Iterator[Fault]:
    if props.is_embedded and props.type != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        kind = "Invalid" if props.type else "Required"
        yield Fault(kind, f"{path}.type", props.type, why)
    elif not props.type and not props.is_int_or_string and not props.preserves_unknown:
        yield Fault("Required", f"{path}.type", detail=f"must not be empty {_PLACES[level]}")
    if level == "root" and props.type not in ("", "object"):
        yield Fault("Invalid", f"{path}.type", props.type, "must be object at the root")
    properties = props.properties or {}
    if level == "root" or props.is_embedded:
        for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            if name in properties and properties[name].type != wanted:
                field = f"{path}.properties[{name}].type"
                yield Fault("Invalid", field, properties[name].type, f"must be {wanted}")
    metadata = properties.get("metadata")
    if level == "root" and metadata is not None:
        plain = Props(type=metadata.type, default=metadata.default)
        if {*(metadata.properties or {})} <= {"name", "generateName"}:
            plain.properties = metadata.properties
        if metadata != plain:
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield Fault("Forbidden", f"{path}.properties[metadata]", detail=why)


def _logic(values: Props, path: str) -> Iterator[tuple[str, Props]]:
    """Yield the schemas in a schema's logic: of allOf, anyOf, oneOf and not."""
    for name, parts in (("anyOf", values.any_of), ("allOf", values.all_of), ("oneOf", values.one_of)):
        for number, part in enumerate(parts or ()):
            yield f"{path}.{name}[{number}]", part
    if values.not_ is not None:
        yield f"{path}.not", values.not_


def _value_faults(values: Props, path: str) -> Iterator[Fault]:
    """Yield the faults of a schema's logic, whose parts may say nothing about the structure."""
    for below, part in _logic(values, path):
        if values.is_int_or_string and _is_int_or_string(values, part):
            continue
        yield from _nested_faults(part, below)
    if values.pattern:
        try:
            compile_pattern(values.pattern)
        except ValueError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield Fault("Invalid", f"{path}.pattern", values.pattern, why)


def _is_int_or_string(values: Props, part: Props) -> bool:
    """Return whether a part of the logic is the one that x-kubernetes-int-or-string allows to have types."""
    if values.any_of == _INT_OR_STRING and part in _INT_OR_STRING:
        return True
    return part in (values.all_of or ())[:1] and part.any_of == _INT_OR_STRING


def _nested_faults(values: Props, path: str) -> Iterator[Fault]:
    yield from _value_faults(values, path)
    for attribute, wanted in _NOT_NESTED.items():
        if getattr(values, attribute) not in (None, False, "", []):
            yield Fault(
                "Forbidden", f"{path}.{_NAMES[attribute]}", detail=f"must be {wanted} to be structural"
            )
    if isinstance(values.items, Props):
        yield from _nested_faults(values.items, f"{path}.items")
    for name, prop in (values.properties or {}).items():
        yield from _nested_faults(prop, f"{path}.properties[{name}]")
        if name == "metadata":
            yield Fault(
                "Forbidden",
                f"{path}.properties[metadata]",
                detail="must not be specified in a nested context",
            )


def _missing_in_structure(values: Props, structure: Props, path: str, structure_path: str) -> Iterator[Fault]:
    """Yield the fields that a schema's logic names and its structure lacks."""
    for below, part in _logic(values, path):
        parts = [
            (f".properties[{name}]", prop, (structure.properties or {}).get(name))
            for name, prop in (part.properties or {}).items()
        ]
        if isinstance(part.items, Props):
            parts.append(
                (".items", part.items, structure.items if isinstance(structure.items, Props) else None)
            )
        yield from _missing_in_structure(part, structure, below, structure_path)
        for step, inner, known in parts:
            if known is None:
                yield Fault(
                    "Required", structure_path + step, detail=f"because it is defined in {below}{step}"
                )
            else:
                yield from _missing_in_structure(
                    Props(all_of=[inner]), known, below + step, structure_path + step
                )


def is_supported(props: Props) -> bool:
    """Return whether the real server can read a schema as a structural one, with whatever faults."""
    if next(_unsupported_faults(props, ""), None) is not None or isinstance(props.items, list):
        return False
    return all(is_supported(part) for _, part, _ in _structure(props, ""))


def _unsupported_faults(props: Props, path: str) -> Iterator[Fault]:
    for attribute in _UNSUPPORTED:
        if getattr(props, attribute):
            name = _NAMES[attribute]
            yield Fault("Forbidden", f"{path}.{name}", detail=f"{name} is not supported")


def schema_faults(props: Props, path: str, *, is_root: bool = True) -> Iterator[Fault]:
    """Yield the faults of a schema besides those of its structure, in it and in the schemas inside."""
    if props.type and props.type not in _TYPES:
        supported = ", ".join(f'"{allowed}"' for allowed in _TYPES)
        yield Fault("NotSupported", f"{path}.type", props.type, f"supported values: {supported}")
    yield from _unsupported_faults(props, path)
    if props.type == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield Fault("Forbidden", f"{path}.type", detail=why)
    if isinstance(props.items, list):
        yield Fault("Forbidden", f"{path}.items", detail="items must be a schema object and not an array")
    if props.unique_items:
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield Fault("Forbidden", f"{path}.uniqueItems", detail=why)
    if props.properties and props.additional_properties not in (None, True):
        why = "additionalProperties and properties are mutual exclusive"
        yield Fault("Forbidden", f"{path}.additionalProperties", detail=why)
    if props.preserves_unknown is False:
        field = f"{path}.x-kubernetes-preserve-unknown-fields"
        yield Fault("Invalid", field, False, "must be true or undefined")
    yield from _list_faults(props, path)
    yield from _rule_faults(props, path)
    for below, part, _ in _structure(props, path):
        name = below.rpartition("[")[2].removesuffix("]")
        if is_root and name in OF_EVERY_OBJECT and part.default is not None and below.endswith("]"):
            yield Fault("Forbidden", f"{below}.default", detail=f"must not be set in top-level {name}")
        yield from schema_faults(part, below, is_root=False)


def _list_faults(props: Props, path: str) -> Iterator[Fault]:
    map_field, list_field = f"{path}.x-kubernetes-map-type", f"{path}.x-kubernetes-list-type"
    for given, wanted, name in ((props.map_type, "object", "map"), (props.list_type, "array", "list")):
        if given is not None and props.type != wanted:
            why = f"must be {wanted} if x-kubernetes-{name}-type is specified"
            yield Fault("Invalid" if props.type else "Required", f"{path}.type", props.type, why)
    if props.map_type not in (None, "atomic", "granular"):
        yield Fault("NotSupported", map_field, props.map_type, 'supported values: "atomic", "granular"')
    if props.list_type not in (None, "atomic", "set", "map"):
        yield Fault("NotSupported", list_field, props.list_type, 'supported values: "atomic", "set", "map"')
    if props.list_keys and props.list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield Fault("Invalid" if props.list_type else "Required", list_field, props.list_type, why)
    if isinstance(props.items, Props) and props.list_type in ("set", "map"):
        yield from _item_faults(props, props.items, path)


def _item_faults(props: Props, items: Props, path: str) -> Iterator[Fault]:
    """Yield the faults of the items of a list that is a set or a map."""
    keys_field, keys = f"{path}.x-kubernetes-list-map-keys", props.list_keys or []
    if props.list_type == "set":
        if items.type == "object" and items.map_type != "atomic":
            why = "must be atomic as item of a list with x-kubernetes-list-type=set"
            yield Fault("Invalid", f"{path}.items.x-kubernetes-map-type", items.list_type, why)
    else:
        if not keys:
            why = "must not be empty if x-kubernetes-list-type is map"
            yield Fault("Required", keys_field, detail=why)
        if items.type != "object":
            why = "must be object if parent array's x-kubernetes-list-type is map"
            yield Fault("Invalid", f"{path}.items.type", items.type, why)
        else:
            yield from _key_faults(items, keys, path, keys_field)
    if items.nullable:
        why = f"cannot be nullable when x-kubernetes-list-type is {props.list_type}"
        yield Fault("Forbidden", f"{path}.items.nullable", detail=why)


def _key_faults(items: Props, keys: list[str], path: str, keys_field: str) -> Iterator[Fault]:
    if len({*keys}) < len(keys):
        yield Fault("Invalid", keys_field, keys, "must not contain duplicate entries")
    for key in keys:
        known, field = (items.properties or {}).get(key), f"{path}.items.properties[{key}]"
        if known is None:
            yield Fault("Invalid", keys_field, keys, "entries must all be names of item properties")
            continue
        if known.type in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield Fault("Invalid", f"{field}.type", items.type, why)
        in_keys = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.required or ()) and known.default is None:
            why = f"{in_keys} must have a default or be a required property"
            yield Fault("Required", f"{field}.default", detail=why)
        if known.nullable:
            yield Fault("Forbidden", f"{field}.nullable", detail=f"{in_keys} cannot be nullable")


def _rule_faults(props: Props, path: str) -> Iterator[Fault]:
    for number, rule in enumerate(props.rules or ()):
        field = f"{path}.{RULES}[{number}]"
        text, message = rule.rule.strip(), rule.message.strip()
        if not text:
            yield Fault("Required", f"{field}.rule", detail="rule is not specified")
        elif rule.message and not message:
            yield Fault("Invalid", f"{field}.message", rule.message, "must be non-empty if specified")
        elif _has_lines(message):
            yield Fault("Invalid", f"{field}.message", rule.message, "must not contain line breaks")
        elif _has_lines(text) and not message:
            why = "message must be specified if rule contains line breaks"
            yield Fault("Required", f"{field}.message", detail=why)
        if rule.message_expression and not rule.message_expression.strip():
            why = "messageExpression must be non-empty if specified"
            yield Fault("Required", f"{field}.messageExpression", detail=why)
        if rule.reason is not None and rule.reason not in _REASONS:
            supported = ", ".join(f'"{reason}"' for reason in _REASONS)
            yield Fault("NotSupported", f"{field}.reason", rule.reason, f"supported values: {supported}")
        if rule.field_path and not _is_path(props, rule.field_path):
            yield Fault("Invalid", f"{field}.fieldPath", rule.field_path, "must be a valid path")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _is_path(props: Props, path: str) -> bool:
    """Return whether a rule's fieldPath, such as `.spec['a.b']`, names a field of the schema."""
    place: Any = props
    steps = re.findall(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)+)'\]", path)
    if "".join(f".{name}" if name else f"['{quoted}']" for name, quoted in steps) != path:
        return False
    for name, quoted in steps:
        place = place.properties.get(name or quoted) if place.properties else place.additional_properties
        if not isinstance(place, Props):
            return False
    return True
