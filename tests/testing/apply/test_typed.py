"""Applied configurations that do not fit their schema."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import StatusError
from aioinformer.testing.apply.typed import check_typed
from aioinformer.testing.schema.node import Node
from aioinformer.testing.storage.builtin import BUILTIN

CONFIG_MAPS = next(resource for resource in BUILTIN if resource.kind == "ConfigMap")
KEYED = Node(
    type="array",
    list_type="map",
    list_keys=("name",),
    items=Node(type="object", properties={"name": Node(type="string"), "size": Node(type="integer")}),
)
NODE = Node(
    type="object",
    properties={
        "flag": Node(type="boolean"),
        "keyed": KEYED,
        "map": Node(type="object", items=Node(type="string")),
        "plain": Node(type="array", items=Node(type="string")),
        "port": Node(format="int-or-string"),
        "quantity": Node(type="string", format="quantity"),
        "set": Node(type="array", list_type="set", items=Node(type="string")),
        "size": Node(type="integer", format="int32"),
        "text": Node(type="string"),
    },
)


@pytest.mark.parametrize(
    ("applied", "why"),
    [
        ({"odd": 1}, ".odd: field not declared in schema"),
        ({"text": 7}, ".text: expected string, got &value.valueUnstructured{Value:7}"),
        ({"text": ["a"]}, '.text: expected string, got &value.valueUnstructured{Value:[]interface {}{"a"}}'),
        (
            {"text": {"a": None}},
            ".text: expected string, got &value.valueUnstructured{Value:map[string]interface {}"
            '{"a":interface {}(nil)}}',
        ),
        ({"size": "many"}, ".size: expected numeric (int or float), got string"),
        ({"size": True}, ".size: expected numeric (int or float), got bool"),
        ({"flag": 1.5}, ".flag: expected boolean, got &{1.5}"),
        ({"quantity": {"a": 1}}, ".quantity: expected any scalar, got &{map[a:1]}"),
        ({"map": True}, ".map: expected map, got &{true}"),
        ({"map": {"a": 1}}, ".map.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"plain": "a"}, ".plain: expected list, got &{a}"),
        ({"plain": ["a", 1]}, ".plain[1]: expected string, got &value.valueUnstructured{Value:1}"),
        ({"set": ["a", 1]}, ".set[=1]: expected string, got &value.valueUnstructured{Value:1}"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        ({"set": [{}]}, ".set: element 0: associative list without keys has an element that's a map type"),
        ({"keyed": [7]}, ".keyed: element 0: associative list with keys may not have non-map elements"),
        (
            {"keyed": [{"size": 1}]},
            ".keyed: element 0: associative list with keys has an element that omits all key",
        ),
        ({"keyed": [{"name": "a"}, {"name": "a"}]}, '.keyed: duplicate entries for key [name="a"]'),
        (
            {"keyed": [{"name": "a", "size": ""}]},
            '.keyed[name="a"].size: expected numeric (int or float), got string',
        ),
        ({"odd": 1, "size": ""}, "errors:\n  .odd: field not declared in schema\n  .size: expected numeric"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(applied: dict[str, Any], why: str) -> None:
    begin = f"500 : failed to create typed patch object (/a; /v1, Kind=ConfigMap): {why}"
    with pytest.raises(StatusError) as refused:
        check_typed(CONFIG_MAPS, NODE, applied, "a")
    assert str(refused.value).startswith(begin)


@pytest.mark.parametrize("applied", [{"text": None}, {"port": {}}, {"size": 1.5}, {"quantity": 1}])
def test_other_configurations_are_checked_later(applied: dict[str, Any]) -> None:
    check_typed(CONFIG_MAPS, NODE, applied, "a")
