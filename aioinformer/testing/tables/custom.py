"""The columns and cells of custom resources, by the JSON paths of their definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.resources import PrinterColumn
from aioinformer.testing.tables.formats import age
from aioinformer.testing.tables.jsonpath import find

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_AGE_ALONE = (PrinterColumn("Age", ".metadata.creationTimestamp", "date"),)


def own_columns(resource: ResourceType) -> tuple[PrinterColumn, ...]:
    """Return the columns of a definition after the name; the age if it has none."""
    return resource.columns or _AGE_ALONE


def custom_cells(resource: ResourceType, obj: Object) -> list[Any]:
    """Return the cells of a custom resource."""
    shown = (_cell(obj, column.path, column.type) for column in own_columns(resource))
    return [obj["metadata"]["name"], *shown]


def _cell(obj: Object, path: str, kind: str) -> Any:
    """Return the first value at the path, if it has the column's type."""
    value = next(iter(find(obj, path)), None)
    match kind, value:
        case _, None:
            return None
        case "string", str():
            return value
        case "string", _:
            return msgspec.json.encode(value).decode()
        case "boolean", bool():
            return value
        case ("boolean", _) | (_, bool()):
            return None
        case "integer" | "number", int() | float():
            return int(value) if kind == "integer" else value
        case "date", str():
            return age(value, "<invalid>")
    return None
