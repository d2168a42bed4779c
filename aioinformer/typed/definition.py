"""crd(): the CustomResourceDefinition of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import ConfigError
from .annotations import VALIDATIONS, Column, Scale
from .custom_resource import CustomResource
from .declaration import Declaration, mistakes_error
from .descriptions import shorten_descriptions
from .scalars import Schema
from .schema import SchemaBuilder

_STEPS = re.compile(r"\.([A-Za-z_][\w-]*)")
_SIMPLE_PATH = re.compile(r"(\.[^.\[\]]+)+")
_SELECT_ALIKE = "selectable_fields differ between versions with the same fields, which servers refuse"
_SELECTABLE = ("string", "integer", "boolean")

_SHARED = ("group", "kind", "plural", "namespaced", "short_names", "categories", "labels", "annotations")
"""What all versions of a kind have in common."""


def crd(*versions: type[CustomResource], conversion: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind, from its class or the classes of its versions.

    A version with a field ``status`` has the status subresource. Class docstrings are descriptions, defaults of fields
    are the server's defaults, and ``X | None`` is nullable.

    Args:
        *versions: The classes; of several, the one with ``storage=True`` is stored, else the last.
        conversion: ``spec.conversion``, such as a webhook; None if versions differ in nothing but their name.

    Raises:
        ConfigError: A class cannot be a CustomResourceDefinition. The message has all mistakes of all classes.
    """
    if not versions:
        raise ConfigError("crd() needs a class: crd(Website)")
    declarations = [declaration_of(kind) for kind in versions]
    stored = next((declaration for declaration in declarations if declaration.storage), declarations[-1])
    mistakes: list[tuple[str, str]] = []
    offered = []
    for version, declared in zip(versions, declarations, strict=True):
        mistakes += [(declared.class_name, mistake) for mistake in declared.mistakes()]
        schema, wrong = _schema_of(version, declared)
        mistakes += [(declared.class_name, mistake) for mistake in wrong]
        offered.append(_version(declared, schema, is_stored=declared is stored))
    mistakes += [(declarations[0].class_name, disagreement) for disagreement in _disagreements(declarations)]
    if _has_apart_fields(offered):
        mistakes.append((declarations[0].class_name, _SELECT_ALIKE))
    if mistakes:
        raise _error(mistakes)
    first = declarations[0]
    spec: dict[str, Any] = {
        "group": first.group,
        "scope": "Namespaced" if first.namespaced else "Cluster",
        "names": _names(first),
        "versions": offered,
    }
    if conversion is not None:
        spec["conversion"] = dict(conversion)
    labels, annotations = dict(first.labels), dict(first.annotations)
    metadata = {"name": f"{first.plural}.{first.group}", "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {name: value for name, value in metadata.items() if value},
        "spec": spec,
    }


def _has_apart_fields(versions: Sequence[dict[str, Any]]) -> bool:
    """Return whether versions with one schema have different selectable fields, which servers refuse."""
    first = versions[0]
    has_one_schema = all(version["schema"] == first["schema"] for version in versions)
    return has_one_schema and any(
        version.get("selectableFields") != first.get("selectableFields") for version in versions
    )


def _error(mistakes: Sequence[tuple[str, str]]) -> ConfigError:
    """Return the error about mistakes, each with the name of its class."""
    classes = list(dict.fromkeys(name for name, _ in mistakes))
    if len(classes) == 1:
        return mistakes_error(classes[0], [text for _, text in mistakes])
    return mistakes_error(" and ".join(classes), [f"{name}: {text}" for name, text in mistakes])


def _names(declared: Declaration) -> dict[str, Any]:
    kind = declared.kind
    names = {"plural": declared.plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    lists = {"shortNames": [*declared.short_names], "categories": [*declared.categories]}
    return {**names, **{name: values for name, values in lists.items() if values}}


def declaration_of(kind: Any) -> Declaration:
    """Return what a class says about its resource.

    Raises:
        ConfigError: It is not a CustomResource with class arguments.
    """
    declaration = getattr(kind, "__declaration__", None)
    if not isinstance(declaration, Declaration):
        name = getattr(kind, "__name__", repr(kind))
        raise ConfigError(
            f'{name} declares no resource: class {name}(CustomResource, group="example.com", version="v1")'
        )
    return declaration


def _schema_of(kind: type[CustomResource], declared: Declaration) -> tuple[Schema, list[str]]:
    """Return the schema of whole objects, and what is wrong with the class."""
    builder = SchemaBuilder()
    built = builder.of_class(kind)
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    others = {name: field for name, field in built.get("properties", {}).items() if name not in head}
    schema: Schema = {**built, "properties": {**head, **others}}
    rules = [
        value for rule in declared.rules for name, value in (rule.extra or {}).items() if VALIDATIONS in name
    ]
    if rules:
        schema[VALIDATIONS] = rules
    if declared.description_limit is not None:
        schema = shorten_descriptions(schema, declared.description_limit)
    mistakes = [mistake.removeprefix(f"{kind.__name__}.") for mistake in builder.mistakes]
    if "status" in schema.get("required", ()):
        mistakes.append(
            "status needs a default, such as `status: Status | None = None`: servers drop the status of a new object, "
            "so they would refuse each one"
        )
    if built:
        mistakes += [*_wrong_paths(schema, declared)]
    return schema, mistakes


def _wrong_paths(schema: Schema, declared: Declaration) -> Iterator[str]:
    """Yield which paths of columns and of the scale subresource the schema does not have."""
    for column in declared.columns:
        if not column.path.startswith("."):
            yield f"the column {column.name!r}: the path {column.path!r} must begin with a dot, like '.spec.replicas'"
        elif _at(schema, column.path) is None:
            yield f"the column {column.name!r}: there is no field {column.path}"
    for path in declared.selectable_fields:
        schema_at = _at(schema, path)
        if not _SIMPLE_PATH.fullmatch(path) or path.startswith(".metadata"):
            yield f"selectable_fields: {path!r} must be a path like '.spec.host', without brackets and not of metadata"
        elif schema_at is None or schema_at.get("type") not in _SELECTABLE:
            yield f"selectable_fields: there is no field {path} of type str, int or bool"
    scale = declared.scale
    if scale is None:
        return
    for what, path, root, wanted in (
        ("replicas", scale.replicas, ".spec.", "integer"),
        ("status_replicas", scale.status_replicas, ".status.", "integer"),
        ("selector", scale.selector, ".status.", "string"),
    ):
        if what == "selector" and not path:
            continue
        schema_at = _at(schema, path)
        if not path.startswith(root):
            yield f"scale: {what}={path!r} must begin with {root!r}"
        elif schema_at is None or schema_at.get("type") != wanted:
            yield f"scale: {what} needs a field {path} of type {'int' if wanted == 'integer' else 'str'}"


def _at(schema: Schema, path: str) -> Schema | None:
    """Return the schema at a path, as far as it goes by names; empty if the rest is unknown, None if it is missing."""
    position = 0
    part = schema
    while step := _STEPS.match(path, position):
        position = step.end()
        if "additionalProperties" in part or "x-kubernetes-preserve-unknown-fields" in part:
            return {}
        if step[1] == "metadata" and part is schema:
            return {"format": "date-time"} if path.endswith("Timestamp") else {"type": "string"}
        part = part.get("properties", {}).get(step[1])
        if part is None:
            return None
    return part if position == len(path) else {}


def _version(declared: Declaration, schema: Schema, *, is_stored: bool) -> dict[str, Any]:
    """Return an entry of ``spec.versions``."""
    version: dict[str, Any] = {
        "name": declared.version,
        "served": declared.served,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": schema},
    }
    subresources: dict[str, Any] = {}
    if "status" in schema["properties"]:
        subresources["status"] = {}
    if declared.scale is not None:
        subresources["scale"] = _scale(declared.scale)
    if subresources:
        version["subresources"] = subresources
    if declared.columns:
        version["additionalPrinterColumns"] = [_column(column, schema) for column in declared.columns]
    if declared.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in declared.selectable_fields]
    if declared.deprecated:
        version["deprecated"] = True
    if isinstance(declared.deprecated, str):
        version["deprecationWarning"] = declared.deprecated
    return version


def _scale(scale: Scale) -> dict[str, str]:
    paths = {"specReplicasPath": scale.replicas, "statusReplicasPath": scale.status_replicas}
    return {**paths, "labelSelectorPath": scale.selector} if scale.selector else paths


def _column(column: Column, schema: Schema) -> dict[str, Any]:
    known = _at(schema, column.path) or {}
    inferred = "date" if known.get("format") == "date-time" else known.get("type")
    if inferred not in ("integer", "number", "boolean", "date"):
        inferred = "string"
    given = {"format": column.format, "description": column.description, "priority": column.priority}
    return {
        "name": column.name,
        "type": column.type or inferred,
        "jsonPath": column.path,
        **{name: value for name, value in given.items() if value},
    }


def _disagreements(declarations: Sequence[Declaration]) -> Iterator[str]:
    """Yield what the versions of a kind do not have in common, and versions that are there twice."""
    first = declarations[0]
    seen: dict[str, str] = {}
    for kind in declarations:
        for name in _SHARED:
            mine, others = getattr(kind, name), getattr(first, name)
            if mine != others:
                yield f"{name}={others!r}, but {name}={mine!r} of {kind.class_name}: all versions of a kind share it"
        if kind.version in seen:
            yield f"{seen[kind.version]} and {kind.class_name} are both version {kind.version!r}"
        seen[kind.version] = kind.class_name
    stored = [kind.class_name for kind in declarations if kind.storage]
    if len(stored) > 1:
        yield f"{' and '.join(stored)} have storage=True: one version is stored"
