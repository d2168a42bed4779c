"""Server-side apply."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aioinformer.testing import APIServer, ResourceType, StatusError
from aioinformer.testing.apply.fieldsets import decode, encode, merge, paths, remove, show
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.cluster.strategy import schema_of
from aioinformer.testing.objects import Object
from aioinformer.testing.schema.node import Node
from aioinformer.testing.storage.builtin import BUILTIN, PODS
from aioinformer.testing.storage.codec import load
from tests.testing.client import APIClient

DEPLOYMENTS = next(resource for resource in BUILTIN if resource.kind == "Deployment")
DAEMONS = next(resource for resource in BUILTIN if resource.kind == "DaemonSet")
CONFIGMAPS = next(resource for resource in BUILTIN if resource.kind == "ConfigMap")
SERVICES = next(resource for resource in BUILTIN if resource.kind == "Service")
DEPLOYMENT = schema_of(DEPLOYMENTS)
CAVES = ResourceType("example.com", "v1", "caves", "Cave")
PATH = "/api/v1/namespaces/default/configmaps/a"
APPLY = "application/apply-patch+yaml"


class Appliers:
    """Applies and updates configmaps and deployments under different names."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.cluster = Cluster(clock=lambda: self.now)
        self.cluster.registry.add(CAVES)

    def apply(
        self,
        manager: str,
        resource: ResourceType = CONFIGMAPS,
        *,
        force: bool = False,
        sub: str = "",
        **content: Any,
    ) -> Object:
        options = WriteOptions(field_manager=manager, subresource=sub)
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        applied = {**kind, "metadata": {"name": "a", **content.pop("metadata", {})}, **content}
        stored, _ = self.cluster.apply(resource, "default", "a", applied, options, force=force)
        return load(resource, stored)

    def update(self, manager: str, resource: ResourceType = CONFIGMAPS, **content: Any) -> Object:
        options = WriteOptions(field_manager=manager, whole=True)
        stored = self.cluster.modify(resource, "default", "a", lambda obj: {**obj, **content}, options)
        return load(resource, stored)


@pytest.fixture
def appliers() -> Appliers:
    return Appliers()


def owned_fields(obj: Object) -> dict[tuple[str, str], Any]:
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", ())
    }


def test_applying_creates_and_owns(appliers: Appliers) -> None:
    obj = appliers.apply("me", data={"a": "1"}, metadata={"labels": {"x": "y"}})
    assert obj["data"] == {"a": "1"}
    (entry,) = obj["metadata"]["managedFields"]
    assert entry == {
        "manager": "me",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2023-11-14T22:13:20Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:x": {}}}},
    }


def test_applying_the_same_again_changes_nothing(appliers: Appliers) -> None:
    first = appliers.apply("me", data={"a": "1"})
    appliers.now += 60
    assert appliers.apply("me", data={"a": "1"}) == first


def test_omitted_fields_are_removed(appliers: Appliers) -> None:
    appliers.apply("me", data={"a": "1", "b": "2"}, metadata={"labels": {"x": "y"}})
    assert appliers.apply("me", data={"a": "1"})["data"] == {"a": "1"}
    assert "labels" not in appliers.apply("me", data={"a": "1"})["metadata"]


def test_field_with_another_applier_stays(appliers: Appliers) -> None:
    appliers.apply("me", data={"a": "1", "b": "2"})
    appliers.apply("you", data={"a": "1"})
    obj = appliers.apply("me", data={"b": "2"})
    assert obj["data"] == {"a": "1", "b": "2"}
    assert owned_fields(obj) == {
        ("me", "Apply"): {"f:data": {"f:b": {}}},
        ("you", "Apply"): {"f:data": {"f:a": {}}},
    }


def test_fields_of_other_owners_inside_an_omitted_field_stay(appliers: Appliers) -> None:
    appliers.apply("me", CAVES, spec={"a": {}})
    appliers.apply("you", CAVES, spec={"a": {"b": {"c": 1}}})
    obj = appliers.apply("me", CAVES)
    assert obj["spec"] == {"a": {"b": {"c": 1}}}
    assert owned_fields(obj) == {("you", "Apply"): {"f:spec": {"f:a": {"f:b": {"f:c": {}}}}}}
    appliers.apply("me", CAVES, spec={"a": {}})
    assert appliers.apply("you", CAVES)["spec"] == {"a": {}}
    obj = appliers.apply("me", CAVES)
    assert "spec" not in obj
    assert owned_fields(obj) == {}


def images(obj: Object) -> dict[str, str]:
    return {part["name"]: part["image"] for part in obj["spec"]["template"]["spec"]["containers"]}


def test_removed_fields_have_no_owner(appliers: Appliers) -> None:
    appliers.apply("you", DEPLOYMENTS, **container("sidecar", "side:1"))
    both = appliers.apply("me", DEPLOYMENTS, **container("app", "app:1"))
    both["spec"]["template"]["spec"]["containers"][1]["image"] = "app:2"
    appliers.update("editor", DEPLOYMENTS, spec=both["spec"])
    obj = appliers.apply("me", DEPLOYMENTS)
    assert images(obj) == {"sidecar": "side:1"}
    assert list(owned_fields(obj)) == [("you", "Apply")]
    appliers.apply("me", DEPLOYMENTS, **container("app", "app:3"))


def test_a_value_in_place_of_fields_conflicts(appliers: Appliers) -> None:
    appliers.apply("me", CAVES, spec={"a": {"b": 1}, "c": 1})
    with pytest.raises(StatusError, match=r'conflict with "me": \.spec\.a\.b$'):
        appliers.apply("you", CAVES, spec={"a": 1})
    with pytest.raises(StatusError, match=r'conflict with "me": \.spec\.c$'):
        appliers.apply("you", CAVES, spec={"c": {"d": 1}})
    obj = appliers.apply("you", CAVES, spec={"a": 1}, force=True)
    assert owned_fields(obj)["me", "Apply"] == {"f:spec": {"f:c": {}}}


def test_a_conflict_names_the_owner(appliers: Appliers) -> None:
    appliers.apply("me", data={"a": "1", "b": "1"})
    with pytest.raises(StatusError) as refused:
        appliers.apply("you", data={"a": "2"})
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "me": .data.a'
    assert refused.value.status["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.a"}]
    }
    with pytest.raises(StatusError, match=r'2 conflicts: conflicts with "me":\n- \.data\.a\n- \.data\.b'):
        appliers.apply("you", data={"a": "2", "b": "2"})
    obj = appliers.apply("you", data={"a": "2"}, force=True)
    assert owned_fields(obj) == {
        ("me", "Apply"): {"f:data": {"f:b": {}}},
        ("you", "Apply"): {"f:data": {"f:a": {}}},
    }


def test_fields_before_the_first_apply_have_an_owner(appliers: Appliers) -> None:
    appliers.cluster.create(CONFIGMAPS, "default", {"metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}})
    with pytest.raises(StatusError, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        appliers.apply("me", data={"a": "2"})
    obj = appliers.apply("me", data={"a": "1"})
    assert owned_fields(obj)["before-first-apply", "Update"] == {"f:data": {".": {}, "f:a": {}, "f:b": {}}}
    assert appliers.apply("me", data={"c": "3"})["data"] == {"a": "1", "b": "2", "c": "3"}


def test_zeros_of_a_new_status_have_no_owner(appliers: Appliers) -> None:
    appliers.cluster.create(DAEMONS, "default", {"metadata": {"name": "a"}})
    obj = appliers.apply("me", DAEMONS, sub="status", status={"numberReady": 1})
    assert owned_fields(obj)["me", "Apply"] == {"f:status": {"f:numberReady": {}}}
    assert "f:status" not in owned_fields(obj)["before-first-apply", "Update"]


def test_update_owns_the_fields_that_it_changes(appliers: Appliers) -> None:
    appliers.apply("me", data={"a": "1", "b": "2"})
    obj = appliers.update("editor", data={"a": "1", "b": "3", "c": "4"})
    assert owned_fields(obj) == {
        ("me", "Apply"): {"f:data": {"f:a": {}}},
        ("editor", "Update"): {"f:data": {"f:b": {}, "f:c": {}}},
    }
    with pytest.raises(StatusError, match=r'conflict with "editor" using v1: \.data\.b'):
        appliers.apply("me", data={"a": "1", "b": "2"})
    assert appliers.update("editor", data={"a": "1", "b": "2", "c": "4"})["data"]["b"] == "2"
    assert ("me", "Apply") not in owned_fields(appliers.update("editor", data={}))


def test_owners_are_not_tracked_before_the_first_apply(appliers: Appliers) -> None:
    appliers.cluster.create(CONFIGMAPS, "default", {"metadata": {"name": "a"}})
    assert "managedFields" not in appliers.update("editor", data={"a": "1"})["metadata"]


def container(name: str, image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}]}}}}


def test_update_can_reset_the_owners(appliers: Appliers) -> None:
    appliers.apply("me", data={"a": "1"})
    reset = {"name": "a", "managedFields": [{}]}
    assert "managedFields" not in appliers.update("editor", metadata=reset)["metadata"]
    assert "managedFields" not in appliers.update("editor", data={"a": "2"})["metadata"]
    with pytest.raises(StatusError, match='conflict with "before-first-apply" using v1'):
        appliers.apply("me", data={"a": "1"})


def test_lists_merge_by_their_keys(appliers: Appliers) -> None:
    appliers.apply("me", DEPLOYMENTS, **container("app", "app:1"))
    obj = appliers.apply("you", DEPLOYMENTS, **container("sidecar", "side:1"))
    assert [part["name"] for part in obj["spec"]["template"]["spec"]["containers"]] == ["app", "sidecar"]
    with pytest.raises(StatusError) as refused:
        appliers.apply("you", DEPLOYMENTS, **container("app", "app:2"))
    assert '.spec.template.spec.containers[name="app"].image' in refused.value.message
    obj = appliers.apply("me", DEPLOYMENTS, spec={"replicas": 1})
    assert images(obj) == {"sidecar": "side:1"}


def test_ports_merge_by_number_and_protocol(appliers: Appliers) -> None:
    udp = {"name": "dns", "port": 53, "protocol": "UDP"}
    tcp = {"name": "dns-tcp", "port": 53}

    def names(applied: Object) -> list[str]:
        return [port["name"] for port in applied["spec"]["ports"]]

    for _ in range(2):
        assert names(appliers.apply("me", SERVICES, spec={"ports": [udp, tcp]})) == ["dns", "dns-tcp"]
    with pytest.raises(StatusError, match=r'\.spec\.ports\[port=53,protocol="TCP"\]\.name'):
        appliers.apply("you", SERVICES, spec={"ports": [{"name": "other", "port": 53, "protocol": "TCP"}]})
    assert names(appliers.apply("me", SERVICES, spec={"ports": [udp]})) == ["dns"]
    spread = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": what}
        for what in ("DoNotSchedule", "ScheduleAnyway")
    ]
    for _ in range(2):
        obj = appliers.apply("me", PODS, spec={"topologySpreadConstraints": spread})
        assert obj["spec"]["topologySpreadConstraints"] == spread


def test_lists_of_a_custom_resource_are_atomic(appliers: Appliers) -> None:
    appliers.apply("me", CAVES, spec={"containers": [{"name": "a"}]})
    with pytest.raises(StatusError, match=r"\.spec\.containers"):
        appliers.apply("you", CAVES, spec={"containers": [{"name": "b"}]})
    obj = appliers.apply("you", CAVES, spec={"containers": [{"name": "b"}]}, force=True)
    assert obj["spec"]["containers"] == [{"name": "b"}]


def test_atomic_fields_have_a_single_owner(appliers: Appliers) -> None:
    appliers.apply("me", SERVICES, spec={"selector": {"a": "b"}})
    with pytest.raises(StatusError, match=r'conflict with "me": \.spec\.selector$'):
        appliers.apply("you", SERVICES, spec={"selector": {"c": "d"}})
    obj = appliers.apply("you", SERVICES, spec={"selector": {"c": "d"}}, force=True)
    assert obj["spec"]["selector"] == {"c": "d"}
    assert owned_fields(obj) == {("you", "Apply"): {"f:spec": {"f:selector": {}}}}
    appliers.apply("me", CAVES, spec={"selector": {"a": "b"}})  # which is a field like any other there
    assert appliers.apply("you", CAVES, spec={"selector": {"c": "d"}})["spec"]["selector"] == {
        "a": "b",
        "c": "d",
    }


@pytest.mark.parametrize("resource", [CONFIGMAPS, CAVES], ids=lambda resource: resource.kind)
def test_owner_reference_has_a_single_owner(appliers: Appliers, resource: ResourceType) -> None:
    mine, yours = ({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid} for uid in ("u1", "u2"))
    appliers.apply("me", resource, metadata={"ownerReferences": [mine]})
    with pytest.raises(StatusError, match=r'conflict with "me": \.metadata\.ownerReferences\[uid="u1"\]$'):
        appliers.apply("you", resource, metadata={"ownerReferences": [mine | {"controller": True}]})
    obj = appliers.apply("you", resource, metadata={"ownerReferences": [yours]})
    assert obj["metadata"]["ownerReferences"] == [mine, yours]
    assert owned_fields(obj)["you", "Apply"] == {"f:metadata": {"f:ownerReferences": {'k:{"uid":"u2"}': {}}}}
    obj = appliers.apply("you", resource, metadata={"ownerReferences": [mine | {"name": "new"}]}, force=True)
    assert obj["metadata"]["ownerReferences"] == [mine | {"name": "new"}]
    assert "ownerReferences" not in appliers.apply("you", resource)["metadata"]


def test_duplicate_merge_key_is_refused(appliers: Appliers) -> None:
    twice = container("app", "app:1")
    containers = twice["spec"]["template"]["spec"]["containers"]
    containers += containers
    with pytest.raises(StatusError) as refused:
        appliers.apply("me", DEPLOYMENTS, **twice)
    assert (refused.value.code, refused.value.message) == (
        500,
        "failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.template.spec.containers: "
        'duplicate entries for key [name="app"]',
    )


def test_finalizers_are_a_set(appliers: Appliers) -> None:
    appliers.apply("me", metadata={"finalizers": ["x/a"]})
    obj = appliers.apply("you", metadata={"finalizers": ["x/b"]})
    assert obj["metadata"]["finalizers"] == ["x/a", "x/b"]
    assert owned_fields(obj)["you", "Apply"] == {"f:metadata": {"f:finalizers": {'v:"x/b"': {}}}}
    assert appliers.apply("me")["metadata"]["finalizers"] == ["x/b"]


@pytest.mark.parametrize(
    ("empty", "filled", "path"),
    [
        ({"data": {}}, {"data": {"x": "y"}}, ".data"),
        ({"metadata": {"labels": {}}}, {"metadata": {"labels": {"x": "y"}}}, ".metadata.labels"),
        (
            {"metadata": {"annotations": None}},
            {"metadata": {"annotations": {"x": "y"}}},
            ".metadata.annotations",
        ),
    ],
)
def test_empty_applied_fields_have_an_owner(
    appliers: Appliers, empty: Object, filled: Object, path: str
) -> None:
    mine = appliers.apply("me", **empty)
    assert show(next(iter(decode(owned_fields(mine)["me", "Apply"])))) == path
    for applied in (filled, empty):
        with pytest.raises(StatusError, match=f'1 conflict: conflict with "me": {re.escape(path)}$'):
            appliers.apply("you", **applied)
    assert ("me", "Apply") in owned_fields(appliers.apply("you", immutable=True))
    assert ("me", "Apply") not in owned_fields(appliers.apply("you", force=True, **filled))
    appliers.apply("me", **empty)
    appliers.apply("another", **filled)  # existing fields, so that no owner is new


def test_update_owns_a_field_that_was_empty(appliers: Appliers) -> None:
    appliers.apply("me", data={}, immutable=False)
    obj = appliers.update("editor", data={"x": "y"})
    assert owned_fields(obj) == {
        ("me", "Apply"): {"f:immutable": {}},
        ("editor", "Update"): {"f:data": {".": {}, "f:x": {}}},
    }


def test_empty_map_of_a_custom_resource_is_no_change(appliers: Appliers) -> None:
    appliers.apply("me", CAVES, spec={"a": {}})
    assert appliers.apply("you", CAVES, spec={"a": {"b": 1}})["spec"] == {"a": {"b": 1}}


def test_status_apply_ignores_metadata_that_status_writes_ignore(appliers: Appliers) -> None:
    for resource, others in ((CAVES, {"finalizers": ["x/y"]}), (DEPLOYMENTS, {})):
        appliers.apply("me", resource, spec={"paused": True}, metadata={"labels": {"x": "1"}})
        metadata = {"labels": {"x": "2"}, **others}
        obj = appliers.apply("you", resource, sub="status", status={"replicas": 1}, metadata=metadata)
        assert (obj["metadata"]["labels"], "finalizers" in obj["metadata"]) == ({"x": "1"}, False)
        assert owned_fields(obj)["you", "Apply"] == {"f:status": {"f:replicas": {}}}
        with pytest.raises(StatusError, match=r"^409 Conflict: "):
            appliers.apply(
                "you", resource, sub="status", metadata={"resourceVersion": "1"}, status={"replicas": 1}
            )


def test_status_is_applied_separately(appliers: Appliers) -> None:
    with pytest.raises(StatusError, match="404 NotFound"):
        appliers.apply("me", CAVES, sub="status", status={"ok": True})
    appliers.apply("me", CAVES, spec={"depth": 1})
    obj = appliers.apply("controller", CAVES, sub="status", status={"ok": True}, spec={"depth": 2})
    assert (obj["spec"], obj["status"]) == ({"depth": 1}, {"ok": True})
    assert [entry.get("subresource") for entry in obj["metadata"]["managedFields"]] == ["status", None]


def test_invalid_applies_are_refused(appliers: Appliers) -> None:
    with pytest.raises(StatusError, match=r"metadata.managedFields must be nil"):
        appliers.apply("me", metadata={"managedFields": []})
    appliers.apply("me", metadata={"resourceVersion": "1"})  # for a missing object any version is accepted
    with pytest.raises(StatusError, match="409 Conflict"):
        appliers.apply("me", metadata={"resourceVersion": "1"}, data={"a": "1"})


def test_fieldsets_round_trip() -> None:
    obj = {
        "kind": "Deployment",
        "metadata": {"name": "a", "finalizers": ["x"], "labels": {}},
        "spec": {
            "template": {
                "spec": {
                    "imagePullSecrets": [{"name": "a"}],
                    "hostAliases": [{"ip": "A", "hostnames": ["1"]}],
                }
            },
            "strategy": {},
        },
    }
    pod = ("f:spec", "f:template", "f:spec")
    fields = set(paths(DEPLOYMENT, obj))
    assert fields == {
        ("f:metadata", "f:finalizers", 'v:"x"'),
        ("f:metadata", "f:labels"),
        ("f:metadata", "f:finalizers"),
        ("f:spec",),
        ("f:spec", "f:template"),
        pod,
        (*pod, "f:hostAliases"),
        (*pod, "f:hostAliases", 'k:{"ip":"A"}'),
        (*pod, "f:hostAliases", 'k:{"ip":"A"}', "f:ip"),
        (*pod, "f:hostAliases", 'k:{"ip":"A"}', "f:hostnames"),
        (*pod, "f:imagePullSecrets"),
        (*pod, "f:imagePullSecrets", 'k:{"name":"a"}'),
        ("f:spec", "f:strategy"),
    }
    assert decode(encode(fields)) == fields
    shown = {show(path) for path in fields}
    assert '.metadata.finalizers[="x"]' in shown
    assert '.spec.template.spec.hostAliases[ip="A"].hostnames' in shown
    assert paths(DEPLOYMENT, {"metadata": {"name": "a"}}) == {}


def test_removing_fields_removes_empty_parents() -> None:
    obj = {"spec": {"env": [{"name": "A", "value": "1"}, {"name": "B"}], "args": ["x"]}, "data": {"a": "1"}}
    spec = Node(properties={"env": Node(list_type="map", list_keys=("name",)), "args": Node(list_type="set")})
    owners = Node(properties={"ownerReferences": Node(list_type="map", list_keys=("uid",))})
    node = Node(properties={"spec": spec, "metadata": owners})
    env = ("f:spec", "f:env", 'k:{"name":"A"}')
    assert remove(node, obj, [("f:data", "f:a")]) == {"spec": obj["spec"]}
    assert remove(node, obj, [env]) == {
        "spec": {"env": [{"name": "B"}], "args": ["x"]},
        "data": {"a": "1"},
    }
    assert remove(node, obj, [(*env, "f:value")])["spec"]["env"][0] == {"name": "A"}
    assert remove(node, obj, [env, (*env, "f:name"), (*env, "f:value")])["spec"]["env"] == [{"name": "B"}]
    assert remove(node, obj, [("f:nope", "f:x")]) == obj
    assert remove(node, obj, []) == obj
    owner = ("f:metadata", "f:ownerReferences", 'k:{"uid":"a"}')
    assert remove(spec, {"args": ["x"]}, [("f:args", 'v:"x"')]) is None
    assert remove(node, {"metadata": {"ownerReferences": [{"uid": "a"}]}}, [owner]) is None
    assert merge(Node(), {"a": [1]}, {"a": [2]}) == {"a": [2]}


async def test_apply_over_http(api: APIClient, server: APIServer) -> None:
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
    nameless = await api.patch(PATH, {"kind": "ConfigMap", "apiVersion": "v1"}, APPLY, fieldManager="me")
    assert "name must be provided" in nameless.body["message"]
    created = await api.patch(PATH, yaml, APPLY, fieldManager="me")
    nameless = await api.patch(PATH, yaml.replace(b"name: a", b""), APPLY, fieldManager="me")
    assert (nameless.status, nameless.body) == (200, created.body)  # one that exists need not be named
    assert (created.status, created.body["data"]) == (201, {"k": "v"})
    again = await api.patch(PATH, yaml.replace(b"v}", b"w}"), APPLY, fieldManager="me")
    assert (again.status, again.body["data"]) == (200, {"k": "w"})
    refused = await api.patch(PATH, yaml, APPLY, fieldManager="you")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    forced = await api.patch(PATH, yaml, APPLY, fieldManager="you", force="true")
    assert forced.body["data"] == {"k": "v"}
    edited = await api.ask(
        "PATCH",
        PATH,
        {"data": {"k": "e"}},
        content_type="application/merge-patch+json",
        headers={"User-Agent": "ed/1"},
    )
    assert owned_fields(edited.body)["ed", "Update"] == {"f:data": {"f:k": {}}}
    assert server.get("v1", "configmaps", "a")["data"] == {"k": "e"}


async def test_a_scale_is_applied(api: APIClient, server: APIServer) -> None:
    server.create(
        "apps/v1", "deployments", {"metadata": {"name": "web"}, "spec": {"paused": True, "replicas": 3}}
    )
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    scale: Object = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}}
    scale["spec"] = {"replicas": 3}
    applied = await api.patch(f"{path}/scale", scale, APPLY, fieldManager="scaler")
    assert (applied.status, applied.body["kind"], applied.body["spec"]) == (200, "Scale", {"replicas": 3})
    whole = (await api.get(path)).body
    assert (whole["spec"]["paused"], whole["spec"]["replicas"]) == (True, 3)
    assert owned_fields(whole)["scaler", "Apply"] == {"f:spec": {"f:replicas": {}}}
    conflict = 'with "scaler" with subresource "scale":'
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    refused = await api.patch(path, {**deployment, "spec": {"replicas": 4}}, APPLY, fieldManager="me")
    assert (refused.status, conflict in refused.body["message"]) == (409, True), refused.body
    refused = await api.patch(f"{path}/scale", deployment, APPLY, fieldManager="scaler")
    assert (refused.status, refused.body["message"]) == (400, "invalid object type: apps/v1, Kind=Deployment")
    await api.patch(f"{path}/scale", {"spec": {"replicas": 5}}, fieldManager="hand")
    refused = await api.patch(f"{path}/scale", scale, APPLY, fieldManager="scaler")
    assert '"hand" with subresource "scale" using apps/v1' in refused.body["message"]


@pytest.mark.parametrize(
    ("body", "query", "status", "message"),
    [
        (
            b"{}",
            {},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for',
        ),
        (
            b"{}",
            {"fieldManager": "x" * 129},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
        ),
        (b"{}", {"fieldManager": "me"}, 400, "invalid object type: /, Kind="),
        (
            b'{"apiVersion": "v1", "kind": "Pod"}',
            {"fieldManager": "me"},
            400,
            "invalid object type: /v1, Kind=Pod",
        ),
        (b"a: [", {"fieldManager": "me"}, 400, "error decoding YAML: "),
        (b"7", {"fieldManager": "me"}, 400, "error decoding YAML: the configuration is no object"),
    ],
)
async def test_invalid_apply_requests_are_refused(
    api: APIClient, body: bytes, query: dict[str, str], status: int, message: str
) -> None:
    answer = await api.patch(PATH, body, APPLY, **query)
    assert (answer.status, answer.body["message"].startswith(message)) == (status, True), answer.body


async def test_a_yaml_body(api: APIClient) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    answer = await api.ask("POST", path, b'metadata: {name: "y"}\n', content_type="application/yaml")
    assert (answer.status, answer.body["metadata"]["name"]) == (201, "y")


async def test_time_in_another_format_counts_as_a_change(api: APIClient) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    lease: dict[str, Any] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a"},
    }
    lease["spec"] = {"renewTime": "2024-01-01T00:00:00.000000+00:00"}
    for manager, status in (("one", 201), ("one", 200), ("two", 409)):
        answer = await api.patch(path, lease, APPLY, fieldManager=manager)
        assert answer.status == status, answer.body
    assert (await api.get(path)).body["spec"] == {"renewTime": "2024-01-01T00:00:00.000000Z"}


@pytest.mark.parametrize(
    ("live", "applied", "result"),
    [
        (["a"], ["b", "a"], ["b", "a"]),
        (["a", "b"], ["c", "b"], ["a", "c", "b"]),
        (["x", "a", "b"], ["b", "a"], ["x", "b", "a"]),
        (["a", "b", "c"], ["c", "d", "a"], ["b", "c", "d", "a"]),
        (["a", "b"], [], ["a", "b"]),
    ],
)
def test_the_applied_order_of_a_list_wins(live: list[str], applied: list[str], result: list[str]) -> None:
    node = Node(properties={"set": Node(type="array", list_type="set")})
    assert merge(node, {"set": live}, {"set": applied}) == {"set": result}
    keyed = Node(type="array", list_type="map", list_keys=("name",))

    def named(names: list[str]) -> list[Object]:
        return [{"name": name} for name in names]

    merged = merge(Node(properties={"map": keyed}), {"map": named(live)}, {"map": named(applied)})
    assert merged == {"map": named(result)}


async def test_owners_before_the_first_apply_are_those_who_wrote(api: APIClient) -> None:
    def by(manager: str) -> dict[str, str]:
        return {"User-Agent": f"{manager}/1.0"}

    collection = PATH.rpartition("/")[0]
    obj = {"metadata": {"name": "a"}, "data": {"a": "1", "b": "1"}}
    assert (await api.ask("POST", collection, obj, headers=by("maker"))).status == 201
    for data in ({"a": "1", "b": "2"}, {"a": "1", "b": "3"}):
        await api.ask("PUT", PATH, {**obj, "data": data}, headers=by("editor"))
    await api.ask("PUT", PATH, {**obj, "data": {"a": "1", "b": "3", "c": "1"}}, headers=by("maker"))
    assert "managedFields" not in (await api.get(PATH)).body["metadata"]
    applied = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"b": "4", "c": "2"},
    }
    refused = await api.ask("PATCH", f"{PATH}?fieldManager=me", applied, headers={"Content-Type": APPLY})
    assert refused.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "editor" using v1:\n- .data.b\n'
        'conflicts with "maker" using v1:\n- .data.c'
    )
    force = f"{PATH}?fieldManager=me&force=true"
    body = (await api.ask("PATCH", force, applied, headers={"Content-Type": APPLY})).body
    assert owned_fields(body) == {
        ("maker", "Update"): {"f:data": {".": {}, "f:a": {}}},
        ("me", "Apply"): {"f:data": {"f:b": {}, "f:c": {}}},
    }


def test_dropping_many_fields_takes_linear_time(appliers: Appliers) -> None:
    # Quadratic work would not end within the test's timeout.
    data = {f"k{number}": "" for number in range(40_000)}
    finalizers = [f"a.b/{name}" for name in data]
    appliers.apply("me", data=data, metadata={"finalizers": finalizers})
    obj = appliers.apply("me", data={"k0": ""}, metadata={"finalizers": finalizers[:1]})
    assert (obj["data"], obj["metadata"]["finalizers"]) == ({"k0": ""}, ["a.b/k0"])
