"""Validation of a CustomResourceDefinition's versions, besides their schemas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aioinformer.testing.errors import field_duplicate, field_invalid, field_too_many
from aioinformer.testing.schema.props import Props

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object

Fault = dict[str, str]

SCHEMA_APART = "may only be set when `version.schema.openAPIV3Schema` is not included"
"""What the real server says if versions with the same schema have different fields."""

_MOST_SELECTABLE_FIELDS = 8


def warning_faults(version: Object, path: str) -> Iterator[Fault]:
    """Yield the faults of a version's `deprecationWarning`."""
    if why := _why_not_a_warning(version):
        yield field_invalid(path, version["deprecationWarning"], why)


def _why_not_a_warning(version: Object) -> str:
    warning = version.get("deprecationWarning")
    if warning is None:
        return ""
    if not version.get("deprecated"):
        return "can only be set for deprecated versions"
    if len(warning.encode()) > 256:
        return "must be <= 256 characters long"
    if not warning:
        return "must not be an empty string"
    at = next((at for at, letter in enumerate(warning) if not letter.isprintable()), None)
    if at is None:
        return ""
    index = len(warning[:at].encode())
    return f"must only contain printable UTF-8 characters; non-printable character found at index {index}"


def selectable_field_faults(fields: list[Object], schema: Props | None, path: str) -> Iterator[Fault]:
    """Yield the faults of a version's `selectableFields`."""
    seen = set()
    for number, entry in enumerate(fields):
        field, chosen = f"{path}[{number}].jsonPath", entry.get("jsonPath", "")
        if not chosen:
            continue  # required by the schema of definitions
        place, why = _schema_at(chosen, schema)
        if why:
            yield field_invalid(field, chosen, f"is an invalid path: {why}")
            continue
        if chosen.startswith(".metadata.") or chosen == ".metadata":
            yield field_invalid(field, chosen, "must not point to fields in metadata")
        if place is None or place.type not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                "formats are allowed."
            )
            yield field_invalid(field, chosen, why)
        if chosen in seen:
            yield field_duplicate(field, chosen)
        seen.add(chosen)
    if len(seen) > _MOST_SELECTABLE_FIELDS:
        yield field_too_many(path, len(seen), _MOST_SELECTABLE_FIELDS)


def _schema_at(path: str, schema: Props | None) -> tuple[Props | None, str]:
    """Return the schema at a path, or why the path is invalid."""
    place = schema
    tokens = iter(re.findall(r"[.\[\]]|[^.\[\]]+", path))
    for token in tokens:
        if token == "[":
            return None, "array notation is not allowed"
        if token != ".":
            return None, f"expected [ or . but got: {token}"
        if (name := next(tokens, None)) is None:
            return None, "unexpected end of JSON path"
        if place is not None and place.properties:
            place = place.properties.get(name)
        elif place is not None and isinstance(place.additional_properties, Props):
            place = place.additional_properties
        else:
            place = None
        if place is None:
            return None, "does not refer to a valid field"
    return place, ""
