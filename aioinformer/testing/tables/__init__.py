"""The tables of `kubectl get`: columns and cells of every kind.

The columns of built-in kinds come from the real server (`make schema` writes `columns.json`). A cell is a function of
the object, by the column's name.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing import schema
from aioinformer.testing.objects import value_at
from aioinformer.testing.tables.access import ACCESS
from aioinformer.testing.tables.core import CORE
from aioinformer.testing.tables.custom import custom_cells, own_columns
from aioinformer.testing.tables.formats import age_at, at
from aioinformer.testing.tables.network import NETWORK
from aioinformer.testing.tables.pods import POD, completion
from aioinformer.testing.tables.storage import STORAGE
from aioinformer.testing.tables.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.tables.formats import Cell

COLUMNS = Path(schema.__file__).with_name("columns.json")

_age: Cell = age_at("metadata.creationTimestamp")
_ANY_KIND: dict[str, Cell] = {
    "Name": at("metadata.name"),
    "Age": _age,
    "Created At": at("metadata.creationTimestamp"),
}
_KINDS: dict[str, dict[str, Cell]] = {"Pod": POD, **CORE, **WORKLOADS, **NETWORK, **STORAGE, **ACCESS}
_BEYOND_COLUMNS: dict[str, tuple[Cell, ...]] = {"IPAddress.networking.k8s.io": (_age,)}
"""Cells for which the real server defines no column."""


class _Column(msgspec.Struct):
    name: str
    type: str
    description: int
    format: str = ""
    priority: int = 0


class _Columns(msgspec.Struct):
    """Columns by kind; the empty kind stands for all others. Texts are numbered, since most are of many columns."""

    descriptions: list[str]
    columns: dict[str, list[_Column]]


@cache
def _builtin() -> _Columns:
    return msgspec.json.decode(COLUMNS.read_bytes(), type=_Columns)


def columns(resource: ResourceType) -> list[dict[str, Any]]:
    """Return the definitions of a resource's columns."""
    if not resource.custom:
        texts = _builtin().descriptions
        return [_definition(column, texts[column.description]) for column in _columns(resource.group_kind)]
    name, created = _columns("")
    texts = _builtin().descriptions
    described = [_definition(name, texts[name.description])]
    for column in own_columns(resource):
        plain = f"Custom resource definition column (in JSONPath format): {column.path}"
        text = plain if resource.columns else texts[created.description]
        described.append(_definition(column, column.description or text))
    return described


def row(resource: ResourceType, obj: Object) -> list[Any]:
    """Return the cells of an object, in the order of the columns."""
    if resource.custom:
        return custom_cells(resource, obj)
    return [cell(obj) for cell in _cells(resource)]


def conditions(resource: ResourceType, obj: Object) -> list[Object]:
    """Return the conditions of an object's row: pods say whether they have completed."""
    return completion(obj) if resource.kind == "Pod" and not resource.custom else []


def in_table_order(resource: ResourceType, objects: Iterable[Object]) -> Iterable[Object]:
    """Return the objects of a list as its table shows them: flow schemas in the order in which they match."""
    if resource.kind != "FlowSchema" or resource.custom:
        return objects
    precedence = ("spec", "matchingPrecedence")
    return sorted(objects, key=lambda obj: (value_at(obj, precedence) or 0, obj["metadata"]["name"]))


def _columns(kind: str) -> list[_Column]:
    known = _builtin().columns
    return known.get(kind) or known[""]


@cache
def _cells(resource: ResourceType) -> tuple[Cell, ...]:
    kind = resource.group_kind
    cells = _ANY_KIND | _KINDS.get(kind, {})
    return (*(cells[column.name] for column in _columns(kind)), *_BEYOND_COLUMNS.get(kind, ()))


def _definition(column: Any, description: str) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    }
