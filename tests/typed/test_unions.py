"""Unions of tagged Structs as ``oneOf``, as kube-rs writes them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from aioinformer.errors import ConfigError
from aioinformer.typed import CamelStruct, CustomResource, MapOf, PreserveUnknown, crd

from .test_models import define


class Http(CamelStruct, tag="http", kw_only=True):
    """Calls a URL."""

    url: str
    tries: int = 3
    wait: int = 1


class Tcp(CamelStruct, tag="tcp", kw_only=True):
    port: int
    tries: int = 3
    wait: int = 2
    timeout: int = 5


def spec_of(kind: type[CustomResource]) -> dict[str, Any]:
    schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec: dict[str, Any] = schema["properties"]["spec"]
    return spec


def test_fields_stand_outside_of_one_of_once() -> None:
    assert spec_of(define(Http | Tcp)) == {
        "description": "http: Calls a URL.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["http", "tcp"]},
            "url": {"type": "string"},
            "tries": {"type": "integer", "default": 3},  # the default of all classes
            "wait": {"type": "integer"},
            "port": {"type": "integer"},
            "timeout": {"type": "integer"},
        },
        "required": ["type"],
        "oneOf": [
            {"properties": {"type": {"enum": ["http"]}}, "required": ["type", "url"]},
            {"properties": {"type": {"enum": ["tcp"]}}, "required": ["type", "port"]},
        ],
    }


def test_a_union_may_be_nullable_and_the_items_of_a_map() -> None:
    spec = msgspec.defstruct(
        "Spec",
        [
            ("many", Annotated[list[Http | Tcp], MapOf("type")]),
            ("one", Http | Tcp | None, None),
            ("whole", Http | Tcp, msgspec.field(default_factory=lambda: Tcp(port=1))),
        ],
    )
    fields = spec_of(define(spec))["properties"]
    assert fields["one"]["nullable"]
    assert fields["many"]["items"]["required"] == ["type"]
    assert fields["whole"]["default"] == {"type": "tcp", "port": 1, "tries": 3, "wait": 2, "timeout": 5}


def test_integers_are_tags_too() -> None:
    one, two = (msgspec.defstruct(f"Tag{tag}", [("x", int)], tag=tag) for tag in (1, 2))
    assert spec_of(define(one | two))["properties"]["type"] == {"type": "integer", "enum": [1, 2]}


def test_a_field_of_two_types_is_a_mistake() -> None:
    one = msgspec.defstruct("One", [("x", int)], tag="one")
    two = msgspec.defstruct("Two", [("x", str)], tag="two")
    spec = msgspec.defstruct("Spec", [("either", list[one | two])])  # type: ignore[valid-type]
    with pytest.raises(ConfigError, match=r"spec\.either\[\]\.x: One and Two have different types"):
        crd(define(spec))


def test_a_union_that_contains_itself_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"spec\.nodes\[\]: Node contains itself"):
        crd(define(Node | Leaf))


class Node(CamelStruct, tag="node"):
    nodes: list[Node | Leaf] = []


class Leaf(CamelStruct, tag="leaf"):
    level: int = 1


def test_unknown_fields_of_a_union_are_kept_where_the_field_says_so() -> None:
    spec = msgspec.defstruct("Spec", [("either", Annotated[Http | Tcp, PreserveUnknown])])
    assert spec_of(define(spec))["properties"]["either"]["x-kubernetes-preserve-unknown-fields"]
