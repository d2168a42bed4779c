"""JSON, merge and strategic merge patches."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from aioinformer.testing import APIServer, MissingExtraError, ResourceType, StatusError
from aioinformer.testing.apply.patches import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    apply_patch,
    merge_patch,
)
from aioinformer.testing.apply.strategic import strategic_merge
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.node import Node
from aioinformer.testing.storage.builtin import PODS
from tests.testing.client import APIClient


def schema(api_version: str, kind: str, *path: str) -> Node:
    """Return the schema of a kind, or of a part of it; `*` is an item."""
    node = node_of(api_version, kind)
    assert node is not None
    for name in path:
        part = node.items if name == "*" else node.properties[name]
        assert part is not None
        node = part
    return node


POD_SPEC = schema("v1", "Pod", "spec")
CONTAINER = schema("v1", "Pod", "spec", "containers", "*")
SERVICE = schema("v1", "Service", "spec")
MIXED = Node(
    type="object",
    properties={
        **schema("v1", "Pod", "metadata").properties,
        **POD_SPEC.properties,
        **schema("apps/v1", "Deployment", "spec").properties,
    },
)

POD: dict[str, Any] = {
    "metadata": {"name": "a", "finalizers": ["x/y"]},
    "spec": {
        "containers": [
            {"name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}], "args": ["-v"]},
            {"name": "sidecar", "image": "side:1"},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}


def test_json_patch_replaces_a_missing_field() -> None:
    patch = [{"op": "replace", "path": "/metadata/labels", "value": {"b": "c"}}]
    assert apply_patch(PODS, POD, patch, JSON_PATCH)["metadata"]["labels"] == {"b": "c"}
    whole = [{"op": "replace", "path": "", "value": {"metadata": {}}}]
    assert apply_patch(PODS, POD, whole, JSON_PATCH)["metadata"] == {}


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ([{"op": "test", "path": "/metadata/name", "value": "b"}], 422),
        ([{"op": "remove", "path": "/nope"}], 422),
        ([{"op": "replace", "path": "/nope/below", "value": 1}], 422),
        ([{"op": "replace", "path": "/spec/containers/2", "value": {}}], 422),
        ([{"op": "replace", "path": "/spec"}], 422),
        ([{"op": "nonsense", "path": "/a"}], 422),
        ([{"path": "/a"}], 422),
        ({"op": "add"}, 400),
        ([{"op": "remove", "path": "/metadata"}], 400),
    ],
)
def test_json_patches_that_are_refused(patch: Any, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        apply_patch(PODS, POD, patch, JSON_PATCH)
    assert refused.value.code == code


def test_json_patch_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonpatch", None)
    with pytest.raises(MissingExtraError, match=r"pip install .aioinformer\[testing\]"):
        apply_patch(PODS, POD, [], JSON_PATCH)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # from RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_strategic_merge_joins_lists_by_their_keys() -> None:
    patch = {
        "spec": {
            "containers": [
                {"name": "app", "image": "app:2", "env": [{"name": "B", "value": "2"}], "args": ["-q"]},
                {"name": "new", "image": "new:1"},
            ],
            "volumes": [{"name": "data", "$patch": "delete"}, {"name": "more", "emptyDir": {}}],
        }
    }
    result = apply_patch(PODS, POD, patch, STRATEGIC_PATCH)
    app, new, sidecar = result["spec"]["containers"]
    assert app == {
        "name": "app",
        "image": "app:2",
        "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
        "args": ["-q"],
    }
    assert (sidecar["image"], new["image"]) == ("side:1", "new:1")
    assert result["spec"]["volumes"] == [{"name": "more", "emptyDir": {}}]
    assert len(POD["spec"]["containers"]) == 2


def test_strategic_merge_directives() -> None:
    def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        return strategic_merge(target, patch, MIXED)

    target = {
        "finalizers": ["a"],
        "containers": [{"name": "a"}, {"name": "b"}],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "labels": {"a": "1", "b": "2"},
        "args": ["x"],
    }
    assert merged(target, {"finalizers": ["b", "a"]})["finalizers"] == ["b", "a"]
    assert merged(target, {"$deleteFromPrimitiveList/finalizers": ["a"]})["finalizers"] == []
    assert merged(target, {"containers": [{"$patch": "replace"}, {"name": "c"}]})["containers"] == [
        {"name": "c"}
    ]
    assert merged(target, {"labels": {"$patch": "replace", "c": "3"}})["labels"] == {"c": "3"}
    assert merged(target, {"labels": {"$patch": "delete"}})["labels"] == {}
    assert merged(target, {"labels": {"a": None}})["labels"] == {"b": "2"}
    kept = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert merged(target, kept)["strategy"] == {"type": "Recreate"}
    ordered = {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
        "containers": [{"name": "c"}],
    }
    assert [c["name"] for c in merged(target, ordered)["containers"]] == ["c", "b", "a"]
    assert merged(target, {"args": ["y"]})["args"] == ["y"]
    for unknown in ({"labels": {"$patch": "merge"}}, {"containers": [{"$patch": "merge", "name": "c"}]}):
        with pytest.raises(StatusError, match=r"^500 : unknown patch type: merge in map: map\[\$patch:merge"):
            merged(target, unknown)
    for patch in (
        {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "c"}]},
        {"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]},
    ):
        with pytest.raises(StatusError, match=r"^500 : The order in patch list:\n\["):
            merged(target, patch)
    with pytest.raises(
        StatusError, match=r"^500 : map: map\[image:c tty:yes\] does not contain declared merge key: name"
    ):
        merged(target, {"containers": [{"name": "a"}, {"tty": "yes", "image": "c"}]})
    with pytest.raises(
        StatusError, match=r"^500 : list element types are not identical: \[\[map\[name:a\] map"
    ):
        merged(target, {"containers": ["odd"]})


def test_strategic_merge_takes_new_values_as_given() -> None:
    ports = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
    assert strategic_merge({}, {"ports": ports}, CONTAINER)["ports"] == ports
    new = {"name": "dns", "ports": ports}
    for containers in ([], [{"name": "web"}]):
        result = strategic_merge({"containers": containers}, {"containers": [new]}, POD_SPEC)
        assert result["containers"][0] == new
    patch = {
        "lifecycle": {"preStop": None, "postStart": {"sleep": {"seconds": 1}}},
        "env": [{"$patch": "delete"}],
    }
    assert strategic_merge({}, patch, CONTAINER) == {
        "lifecycle": {"postStart": {"sleep": {"seconds": 1}}},
        "env": [],
    }


def test_ports_merge_by_the_key_that_they_have() -> None:
    service = {"ports": [{"port": 80, "name": "http"}, {"port": 443}]}
    patch = {"ports": [{"port": 80, "name": "web"}]}
    assert strategic_merge(service, patch, SERVICE)["ports"] == [{"port": 80, "name": "web"}, {"port": 443}]
    assert strategic_merge(service, {"ports": [{"port": 443, "name": "tls"}]}, SERVICE)["ports"] == [
        {"port": 80, "name": "http"},
        {"port": 443, "name": "tls"},
    ]
    container = {"ports": [{"containerPort": 80}]}
    assert strategic_merge(container, {"ports": [{"containerPort": 81}]}, CONTAINER)["ports"] == [
        {"containerPort": 81},
        {"containerPort": 80},
    ]


def test_lists_of_some_kinds_are_replaced_although_others_merge() -> None:
    for kind, field, old, new in (
        (schema("discovery.k8s.io/v1", "EndpointSlice"), "ports", {"port": 80}, {"port": 81}),
        (schema("v1", "ServiceAccount"), "imagePullSecrets", {"name": "a"}, {"name": "b"}),
    ):
        assert strategic_merge({field: [old]}, {field: [new]}, kind) == {field: [new]}
    secrets: tuple[Any, Any] = ({"imagePullSecrets": [{"name": "a"}]}, {"imagePullSecrets": [{"name": "b"}]})
    assert len(strategic_merge(*secrets, POD_SPEC)["imagePullSecrets"]) == 2


async def test_a_custom_resource_takes_no_strategic_merge_patch(api: APIClient, server: APIServer) -> None:
    caves = server.register(ResourceType("example.com", "v1", "caves", "Cave"))
    absent = "/apis/example.com/v1/namespaces/default/caves/absent"
    assert (await api.patch(absent, {}, STRATEGIC_PATCH)).status == 415
    with pytest.raises(StatusError) as refused:
        apply_patch(caves, {"metadata": {}}, {}, STRATEGIC_PATCH)
    assert refused.value.code == 415


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_PATCH])
def test_patch_and_result_must_be_objects(content_type: str) -> None:
    patches: tuple[Any, ...] = ([], {"metadata": None})
    for patch in patches:
        with pytest.raises(StatusError) as refused:
            apply_patch(PODS, POD, patch, content_type)
        assert refused.value.code == 400


@pytest.mark.parametrize(
    ("directive", "value", "code", "why"),
    [
        ("$setElementOrder/containers", None, 500, "expected a []interface {}, but received a %!s(<nil>)"),
        ("$setElementOrder/containers", 5, 500, "expected a []interface {}, but received a int64"),
        ("$setElementOrder/containers", "x", 500, "expected a []interface {}, but received a string"),
        (
            "$setElementOrder/containers",
            [5],
            500,
            "expected a map[string]interface {}, but received a int64",
        ),
        ("$retainKeys", 5, 400, "invalid patch format of retainKeys"),
        ("$retainKeys", None, 400, "invalid patch format of retainKeys"),
    ],
)
def test_directive_with_a_value_of_another_type_is_refused(
    directive: str, value: object, code: int, why: str
) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}
    patch = {"spec": {"containers": [{"name": "a"}], directive: value}}
    with pytest.raises(StatusError) as refused:
        apply_patch(PODS, pod, patch, STRATEGIC_PATCH)
    assert (refused.value.code, refused.value.message) == (code, why)


@pytest.mark.parametrize("value", [5, None, "x"])
def test_deleting_what_is_no_list_deletes_nothing(value: object) -> None:
    pod = {"metadata": {"name": "a", "finalizers": ["x"], "labels": {"a": "b"}}}
    for field in ("finalizers", "labels"):
        patch = {"metadata": {f"$deleteFromPrimitiveList/{field}": value}}
        assert apply_patch(PODS, pod, patch, STRATEGIC_PATCH) == pod


def test_strategic_merge_of_long_lists_takes_linear_time() -> None:
    # Quadratic work would not end within the test's timeout.
    many = 50_000
    names = [f"E{number}" for number in range(many)]
    env = [{"name": name, "value": "1"} for name in names]
    metadata = schema("v1", "Pod", "metadata")

    changed = [{"name": name, "value": "2"} for name in names]
    order = [{"name": name} for name in reversed(names)]
    patch = {"env": [*reversed(changed)], "$setElementOrder/env": order}
    assert strategic_merge({"env": env}, patch, CONTAINER) == {"env": [*reversed(changed)]}
    deleted = [{"name": name, "$patch": "delete"} for name in reversed(names)]
    assert strategic_merge({"env": env}, {"env": deleted}, CONTAINER) == {"env": []}

    others = [f"F{number}" for number in range(many)]
    merged = strategic_merge({"finalizers": names}, {"finalizers": others}, metadata)["finalizers"]
    assert merged == [*others, *names]
    gone = {"$deleteFromPrimitiveList/finalizers": [*reversed(names)]}
    assert strategic_merge({"finalizers": merged}, gone, metadata) == {"finalizers": others}

    labels = dict.fromkeys(names, "1")
    assert strategic_merge(labels, {"$retainKeys": [*reversed(names)]}, Node()) == labels


def test_strategic_merge_changes_the_first_of_items_with_the_same_key() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]
    patch = {"env": [{"name": "A", "$patch": "delete"}, {"name": "A", "value": "3"}]}
    assert strategic_merge({"env": env}, patch, CONTAINER) == {
        "env": [{"name": "A", "value": "3"}, {"name": "B"}]
    }
    twice = {"env": [{"name": "A", "value": "3"}]}
    assert strategic_merge({"env": env}, twice, CONTAINER)["env"][0]["value"] == "3"
    added = {"env": [{"name": "C", "value": "1"}, {"name": "C", "value": "2"}]}
    assert strategic_merge({"env": []}, added, CONTAINER) == {"env": [{"name": "C", "value": "2"}]}
