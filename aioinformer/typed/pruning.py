"""Which fields a server drops from objects that one schema allows, when another schema stores or serves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from .scalars import Schema

_PRESERVES = "x-kubernetes-preserve-unknown-fields"
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")


def dropped_fields(old: Schema, new: Schema) -> Iterator[str]:
    """Yield the fields of objects by one schema that another one does not know, so that the server drops them.

    Args:
        old: The ``openAPIV3Schema`` by which objects are written.
        new: The one by which they are stored or served then.
    """
    for name, schema in _properties(old).items():
        if name not in _OF_EVERY_OBJECT:
            yield from _find_dropped(schema, _at(new, name), name)
    if old.get(_PRESERVES) and not new.get(_PRESERVES):
        yield "all fields that the schema does not name"


def unconverted_fields(definition: Mapping[str, Any]) -> list[str]:
    """Return the fields that the server drops between the versions of a definition without a conversion.

    Each text names the field and the version that has it: ``"v1alpha1 spec.domain"``.
    """
    spec = definition["spec"]
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        return []
    schemas = {version["name"]: schema_of(version) for version in spec["versions"]}
    dropped = (
        f"{one} {field}"
        for one, other in permutations(schemas, 2)
        for field in dropped_fields(schemas[one], schemas[other])
    )
    return list(dict.fromkeys(dropped))


def schema_of(version: Mapping[str, Any]) -> Schema:
    """Return the schema of an entry of ``spec.versions``; one that keeps everything if it has none."""
    schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {_PRESERVES: True}
    return schema


def _find_dropped(old: Schema, new: Schema | None, path: str) -> Iterator[str]:
    if new is None:
        yield path
        return
    if isinstance(items := old.get("items"), dict) and isinstance(of_new := new.get("items"), dict):
        yield from _find_dropped(items, of_new, f"{path}[]")
    for name, schema in _properties(old).items():
        yield from _find_dropped(schema, _at(new, name), f"{path}.{name}")
    keeps_all = bool(new.get(_PRESERVES))
    values = old.get("additionalProperties")
    if isinstance(values, dict) and isinstance(of_new := new.get("additionalProperties"), dict):
        yield from _find_dropped(values, of_new, f"{path}.*")
    elif (values or old.get(_PRESERVES)) and not (keeps_all or new.get("additionalProperties")):
        yield f"{path}.*"


def _at(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field: {_PRESERVES: True} where everything is kept, None where it is dropped."""
    if (known := _properties(schema).get(name)) is not None:
        return known
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return values
    return {_PRESERVES: True} if values or schema.get(_PRESERVES) else None


def _properties(schema: Schema) -> Mapping[str, Schema]:
    return schema.get("properties") or {}
