"""Which fields a server drops between two schemas, and between the versions of a definition."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from aioinformer.typed import CamelStruct, CustomResource, PreserveUnknown, crd
from aioinformer.typed.pruning import dropped_fields, schema_of, unconverted_fields


class Port(CamelStruct, kw_only=True):
    name: str
    number: int = 80


class NamedPort(CamelStruct, kw_only=True):
    name: str


class OldSpec(CamelStruct, kw_only=True):
    domain: str = ""
    ports: list[Port] = []
    labels: dict[str, Port] = {}
    free: Annotated[dict[str, Any] | None, PreserveUnknown] = None


class NewSpec(CamelStruct, kw_only=True):
    host: str = ""
    ports: list[NamedPort] = []
    labels: dict[str, NamedPort] = {}
    free: NamedPort | None = None


class Old(CustomResource, group="pruning.example.com", version="v1alpha1", kind="Site"):
    spec: OldSpec


class New(Old, version="v1"):
    spec: NewSpec  # type: ignore[assignment]


def schema(kind: type[CustomResource]) -> dict[str, Any]:
    return schema_of(crd(kind)["spec"]["versions"][0])


def test_fields_that_the_other_schema_lacks_are_dropped() -> None:
    assert [*dropped_fields(schema(Old), schema(New))] == [
        "spec.domain",
        "spec.ports[].number",
        "spec.labels.*.number",
        "spec.free.*",
    ]
    assert [*dropped_fields(schema(New), schema(Old))] == ["spec.host"]


def test_no_field_is_dropped_by_the_same_schema_or_one_that_keeps_everything() -> None:
    keeps = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert [*dropped_fields(schema(Old), schema(Old))] == []
    assert [*dropped_fields(schema(Old), keeps)] == []
    assert [*dropped_fields(keeps, schema(Old))] == ["all fields that the schema does not name"]


@pytest.mark.parametrize("strategy", ["None", "Webhook"])
def test_versions_without_a_conversion_drop_fields_of_each_other(strategy: str) -> None:
    definition = crd(Old, New, conversion={"strategy": strategy})
    assert unconverted_fields(definition) == (
        []
        if strategy == "Webhook"
        else [
            "v1alpha1 spec.domain",
            "v1alpha1 spec.ports[].number",
            "v1alpha1 spec.labels.*.number",
            "v1alpha1 spec.free.*",
            "v1 spec.host",
        ]
    )
