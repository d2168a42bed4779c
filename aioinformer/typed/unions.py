"""Schemas of unions of tagged classes: all fields in one object, and ``oneOf`` says which of them each tag has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .annotations import EXTENSION
from .scalars import Schema

_PRESERVE = f"{EXTENSION}preserve-unknown-fields"
_DIFFERS = object()


class Member(NamedTuple):
    """A class of a union.

    Attributes:
        name: The class's name.
        tag_field: The field that tells the classes apart.
        tag: Its value for this class.
        schema: The schema of the class, an object.
    """

    name: str
    tag_field: str
    tag: Any
    schema: Schema


def merge_members(members: Sequence[Member]) -> Schema:
    """Return the schema of a union, as kube-rs writes it.

    A structural schema has each field once, outside of ``oneOf``, whose parts say only what is required. A default
    holds for all objects, so the schema has only defaults that all classes have.
    """
    field = members[0].tag_field
    tags = [member.tag for member in members]
    properties: Schema = {field: {"type": _type_of(tags[0]), "enum": tags}}
    for name in dict.fromkeys(name for member in members for name in member.schema["properties"]):
        if name != field:
            properties[name] = _merge_field([member.schema["properties"].get(name) for member in members])
    required = [member.schema.get("required", []) for member in members]
    merged: Schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in required[0] if all(name in others for others in required)],
        "oneOf": [
            {"properties": {field: {"enum": [tag]}}, "required": names}
            for tag, names in zip(tags, required, strict=True)
        ],
    }
    if described := [f"{m.tag}: {m.schema['description']}" for m in members if "description" in m.schema]:
        merged = {"description": "\n\n".join(described), **merged}
    return merged | ({_PRESERVE: True} if any(_PRESERVE in member.schema for member in members) else {})


def find_conflicts(members: Sequence[Member]) -> Iterator[tuple[str, str]]:
    """Yield the fields that keep classes from being a union, each with what is wrong; ``""`` for the whole."""
    fields = {member.tag_field for member in members}
    if len(fields) > 1:
        yield "", f"the classes of a union have one tag field, not {' and '.join(sorted(fields))}"
        return
    if len({type(member.tag) for member in members}) > 1:
        yield "", "the tags of a union must all be strings, or all be integers"
    seen: dict[Any, str] = {}
    for member in members:
        if (other := seen.setdefault(member.tag, member.name)) != member.name:
            yield "", f"{other} and {member.name} have the same tag {member.tag!r}"
    owners: dict[str, tuple[str, Schema]] = {}
    for member in members:
        for name, schema in member.schema["properties"].items():
            if name == member.tag_field:
                continue
            owner, known = owners.setdefault(name, (member.name, schema))
            if _bare(known) != _bare(schema):
                yield (
                    name,
                    f"{owner} and {member.name} have different types for it, and a schema has one: give one of the "
                    "fields another name",
                )


def _merge_field(schemas: Sequence[Schema | None]) -> Schema:
    known = [schema for schema in schemas if schema is not None]
    default = known[0].get("default", _DIFFERS) if len(known) == len(schemas) else _DIFFERS
    if default is not _DIFFERS and all(schema.get("default", _DIFFERS) == default for schema in known):
        return known[0]
    return {name: value for name, value in known[0].items() if name != "default"}


def _bare(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name not in ("default", "description")}


def _type_of(tag: Any) -> str:
    return "integer" if isinstance(tag, int) else "string"
