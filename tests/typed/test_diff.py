"""Changes by path."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import DeletedFinalStateUnknown, KubeObject
from aioinformer.typed import Change, diff

POD: dict[str, Any] = {
    "metadata": {"name": "a", "resourceVersion": "1", "labels": {"app.kubernetes.io/name": "web"}},
    "spec": {
        "replicas": 1,
        "containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}],
    },
}


def change_fields(**fields: Any) -> dict[str, Any]:
    return {**POD, **fields}


@pytest.mark.parametrize(
    ("new", "texts"),
    [
        (change_fields(), []),
        (change_fields(spec={**POD["spec"], "replicas": 3}), ["spec.replicas: 1 -> 3"]),
        (
            change_fields(spec={**POD["spec"], "containers": [{"name": "log", "image": "log:2"}]}),
            [
                'spec.containers[web]: removed {"name":"web","image":"web:1"}',
                'spec.containers[log].image: "log:1" -> "log:2"',
            ],
        ),
        (
            change_fields(
                metadata={"name": "a", "resourceVersion": "2", "labels": {"app.kubernetes.io/name": "x"}}
            ),
            ['metadata.labels["app.kubernetes.io/name"]: "web" -> "x"'],
        ),
        (change_fields(status={"args": []}), ['status: added {"args":[]}']),
        (
            change_fields(spec=None),
            [
                'spec: {"replicas":1,"containers":[{"name":"web","image":"web:1"},{"name":"log","image… -> null'
            ],
        ),
    ],
    ids=["nothing", "a value", "items", "a label", "a field", "null"],
)
def test_changes_read_well(new: dict[str, Any], texts: list[str]) -> None:
    assert [str(change) for change in diff(POD, new)] == texts


def test_items_without_a_name_are_compared_by_index() -> None:
    changes = diff({"args": ["a", "b"]}, {"args": ["a", "c", "d"]})
    assert changes == [Change(("args", 1), "b", "c"), Change(("args", 2), msgspec.UNSET, "d")]
    assert [change.field for change in changes] == ["args[1]", "args[2]"]


@pytest.mark.parametrize(
    ("old", "new", "count"), [(1, 1.0, 0), (1, True, 1), ([], {}, 1), ("1", 1, 1), (None, None, 0)]
)
def test_values_are_compared_as_json(old: Any, new: Any, count: int) -> None:
    assert len(diff({"x": old}, {"x": new})) == count


def test_objects_of_any_type_are_compared() -> None:
    class Meta(msgspec.Struct):
        name: str

    class Cave(msgspec.Struct):
        metadata: Meta

    obj = KubeObject.from_dict({"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert diff(obj, Cave(Meta("b"))) == [
        Change(("metadata", "name"), "a", "b"),
        Change(("data",), {"k": "v"}, msgspec.UNSET),
    ]
    assert diff(None, obj) == [
        Change(("metadata",), msgspec.UNSET, {"name": "a"}),
        Change(("data",), msgspec.UNSET, {"k": "v"}),
    ]
    assert diff(obj, DeletedFinalStateUnknown("a", obj)) == []


def test_ignored_paths_are_left_out() -> None:
    old, new = {"status": {"a": 1}, "spec": 1}, {"status": {"a": 2}, "spec": 2}
    assert [change.path for change in diff(old, new, ignore=[("status",)])] == [("spec",)]
