"""The values of a chart: their defaults, and the schema by which helm checks them."""

from __future__ import annotations

import json

import msgspec

from ..._core.yaml_text import dump_yaml
from ..operator import Operator
from ..settings import variable_of
from .installation import FromKey, Installation, Object
from .settings import environment

_KEY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "key": {"type": "string", "minLength": 1},
        "optional": {"type": "boolean"},
    },
    "required": ["name", "key"],
    "additionalProperties": False,
}
_SETTING = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"secretKeyRef": _KEY, "configMapKeyRef": _KEY},
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    ]
}
"""A text, as environment variables have it: helm would write the number 10000000 as 1e+07."""


def values_text(operator: Operator, installation: Installation, resources: Object) -> str:
    """Return values.yaml, with a comment on each value."""
    given = environment(operator, installation)  # checks them
    settings = {
        field: variable["valueFrom"] if isinstance(setting, FromKey) else setting
        for (field, setting), variable in zip(installation.settings.items(), given, strict=True)
    }
    parts = [
        ("The image, whose entry point is aioinformer.", {"image": installation.image}),
        (
            "The number of pods, which share the objects."
            if installation.shards
            else "The number of pods. With several, one is elected to reconcile.",
            {"replicas": installation.replicas},
        ),
        ("The resources of the container.", {"resources": resources}),
        ("The namespaces to work in; [] for all.", {"namespaces": [*installation.namespaces]}),
        (_describe_settings(operator), {"settings": settings}),
    ]
    return "\n".join(f"# {comment}\n{dump_yaml([value])}" for comment, value in parts)


def schema_text(operator: Operator, installation: Installation, mark: str) -> str:
    """Return values.schema.json, which names what is missing or misspelled.

    Args:
        operator: The operator.
        installation: Has the settings that are given.
        mark: Begins the file.
    """
    fields = () if operator.settings is None else msgspec.structs.fields(operator.settings)
    namespace = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
    schema = {
        "$comment": f"{mark}pass your values by helm's --values and --set.",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "global": {"type": "object"},
            "image": {"type": "string", "minLength": 1},
            "replicas": {"type": "integer", "minimum": 0},
            "resources": {"type": "object"},
            "namespaces": {"type": "array", "items": namespace, "uniqueItems": True},
            "settings": {
                "type": "object",
                "properties": {field.name: _SETTING for field in fields},
                "required": [field.name for field in fields if field.required],
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    }
    return json.dumps(schema, indent=2) + "\n"


def _describe_settings(operator: Operator) -> str:
    """Return the comment on the settings: how they are written, and which there are."""
    if operator.settings is None:
        return "The operator has no settings."
    lines = [
        'The operator\'s settings: texts, such as "20", or keys of a Secret or ConfigMap:',
        "  FIELD: {secretKeyRef: {name: NAME, key: KEY}}",
    ]
    for field in msgspec.structs.fields(operator.settings):
        default = "required" if field.required else f"default: {_describe_default(field)}"
        lines.append(f"{field.name} ({variable_of(operator.name, field.name)}), {default}")
    return "\n# ".join(line.replace("\n", " ") for line in lines)


def _describe_default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is not msgspec.NODEFAULT:
        return repr(field.default)
    return "made by its class"
