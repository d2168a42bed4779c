"""Deletion: grace periods, finalizers and the control plane, without a server."""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType
from typing import Any

import pytest

from aioinformer.testing import ResourceType, UnknownNameError
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.deletion import Deletion, delete, delete_collection
from aioinformer.testing.cluster.options import DeleteOptions, WriteOptions
from aioinformer.testing.controllers import definitions, garbage, namespaces
from aioinformer.testing.controllers.controller import work_all
from aioinformer.testing.controllers.controlplane import CONTROLLERS, control_plane
from aioinformer.testing.controllers.definitions import Definitions
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import BUILTIN, CLAIMS, DEFINITIONS, NAMESPACES, PODS, VOLUMES
from aioinformer.testing.storage.codec import load

KINDS = {resource.kind: resource for resource in BUILTIN}
CONFIGMAPS, DEPLOYMENTS, REPLICASETS = KINDS["ConfigMap"], KINDS["Deployment"], KINDS["ReplicaSet"]
WHOLE = WriteOptions(whole=True)
SCHEMA = {"openAPIV3Schema": {"type": "object"}}


class World:
    """A cluster that keeps the events it saw, with a control plane if wanted."""

    def __init__(self, controllers: Collection[str] = CONTROLLERS) -> None:
        self.now = 1_700_000_000.0
        self.cluster = Cluster(seed=1, clock=lambda: self.now)
        self.events: list[tuple[str, str]] = []
        self.cluster.observers.append(lambda _, event: self.events.append((event.type, event.key)))
        self.controllers = [Definitions(self.cluster), *control_plane(self.cluster, controllers)]

    def create(self, resource: ResourceType, name: str, namespace: str = "default", **content: Any) -> Object:
        metadata = {"name": name, **content.pop("metadata", {})}
        obj = {"metadata": metadata, **content}
        stored = self.cluster.create(resource, namespace if resource.namespaced else "", obj, WHOLE)
        self.work_all()
        self.events.clear()
        return load(resource, stored)

    def delete(
        self, resource: ResourceType, name: str, namespace: str = "default", **options: Any
    ) -> Deletion:
        where = namespace if resource.namespaced else ""
        outcome = delete(self.cluster, resource, where, name, DeleteOptions(**options))
        self.work_all()
        return outcome

    def patch(self, resource: ResourceType, name: str, namespace: str = "default", **content: Any) -> None:
        where = namespace if resource.namespaced else ""
        self.cluster.modify(resource, where, name, lambda obj: {**obj, **content}, WHOLE)
        self.work_all()

    def finalizers(self, resource: ResourceType, name: str, finalizers: list[str]) -> None:
        def change(obj: Object) -> Object:
            obj["metadata"]["finalizers"] = finalizers
            return obj

        self.cluster.modify(resource, "default" if resource.namespaced else "", name, change)
        self.work_all()

    def get(self, resource: ResourceType, name: str, namespace: str = "default") -> Object | None:
        stored = self.cluster.find(resource, namespace if resource.namespaced else "", name)
        return None if stored is None else load(resource, stored)

    def work_all(self) -> None:
        work_all(self.controllers)
        assert not any(controller.busy for controller in self.controllers)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def bare() -> World:
    return World(())


def test_a_pod_on_a_node_waits_for_its_kubelet(bare: World) -> None:
    bare.create(PODS, "a", spec={"nodeName": "n"})
    assert not bare.delete(PODS, "a").gone
    pod = bare.get(PODS, "a")
    assert pod is not None
    assert pod["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    assert (pod["metadata"]["deletionGracePeriodSeconds"], pod["metadata"]["generation"]) == (30, 2)
    version = bare.cluster.resource_version
    assert not bare.delete(PODS, "a").gone
    assert not bare.delete(PODS, "a", grace_period_seconds=60).gone
    assert bare.cluster.resource_version == version
    assert not bare.delete(PODS, "a", grace_period_seconds=-1).gone
    shortened = bare.get(PODS, "a")
    assert shortened is not None
    assert shortened["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:21Z"
    assert bare.delete(PODS, "a", grace_period_seconds=0).gone
    assert bare.get(PODS, "a") is None


def test_ended_pod_is_deleted_immediately(bare: World) -> None:
    bare.create(PODS, "a", spec={"nodeName": "n"}, status={"phase": "Succeeded"})
    assert bare.delete(PODS, "a").gone


def test_the_control_plane_ends_pods(world: World) -> None:
    world.create(PODS, "a", spec={"nodeName": "n", "terminationGracePeriodSeconds": 5})
    world.delete(PODS, "a")
    assert world.get(PODS, "a") is None
    assert [kind for kind, _ in world.events] == ["MODIFIED", "MODIFIED", "DELETED"]


def test_a_pod_with_finalizers_stays(world: World) -> None:
    world.create(PODS, "a", metadata={"finalizers": ["x/y"]}, spec={"nodeName": "n"})
    world.delete(PODS, "a")
    assert world.get(PODS, "a") is not None
    world.finalizers(PODS, "a", [])
    assert world.get(PODS, "a") is None


def test_without_a_control_plane_a_namespace_stays_until_it_is_finalized(bare: World) -> None:
    bare.create(NAMESPACES, "team")
    assert not bare.delete(NAMESPACES, "team").gone
    empty: Object = {"spec": {"finalizers": []}}
    bare.cluster.modify(
        NAMESPACES, "", "team", lambda obj: {**obj, **empty}, WriteOptions(subresource="finalize")
    )
    assert bare.get(NAMESPACES, "team") is None


def test_unused_claim_and_unbound_volume_are_deleted(world: World) -> None:
    world.create(CLAIMS, "data")
    volume = world.create(VOLUMES, "disk")
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    world.delete(CLAIMS, "data")
    world.delete(VOLUMES, "disk")
    assert world.get(CLAIMS, "data") is None
    assert world.get(VOLUMES, "disk") is None


def test_a_bound_volume_stays_until_its_claim_is_gone(world: World) -> None:
    claim = world.create(CLAIMS, "data")
    reference = {"namespace": "default", "name": "data", "uid": claim["metadata"]["uid"]}
    world.create(VOLUMES, "disk", spec={"claimRef": reference}, status={"phase": "Bound"})
    world.delete(VOLUMES, "disk")
    assert world.get(VOLUMES, "disk") is not None
    world.delete(CLAIMS, "data")
    assert world.get(VOLUMES, "disk") is None


def owned_by(owner: Object, *others: Object, blocking: bool = False) -> dict[str, Any]:
    references = [
        {
            **({"blockOwnerDeletion": True} if blocking else {}),
            "apiVersion": other["apiVersion"],
            "kind": other["kind"],
            "name": other["metadata"]["name"],
            "uid": other["metadata"]["uid"],
        }
        for other in (owner, *others)
    ]
    return {"ownerReferences": references}


def definition(name: str = "caves", **spec: Any) -> dict[str, Any]:
    return {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": name, "kind": "Cave", "shortNames": ["cv"]},
        "versions": [
            {"name": "v1beta1", "served": True, "storage": False, "schema": SCHEMA},
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": SCHEMA,
                "subresources": {"status": {}},
            },
            {"name": "v0", "served": False, "storage": False, "schema": SCHEMA},
        ],
        **spec,
    }


def test_a_definition_brings_its_resource(world: World) -> None:
    world.create(DEFINITIONS, "caves.example.com", spec=definition())
    crd = world.get(DEFINITIONS, "caves.example.com")
    assert crd is not None
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert crd["spec"]["names"]["listKind"] == "CaveList"
    first, second = (
        world.cluster.registry.find("example.com", version, "caves") for version in ("v1", "v1beta1")
    )
    assert first is not None
    assert second is not None
    assert first.has_status
    assert not second.has_status
    assert world.cluster.registry.find("example.com", "v0", "caves") is None
    world.create(first, "deep", spec={"depth": 7})
    assert load(second, world.cluster.get(second, "default", "deep"))["apiVersion"] == "example.com/v1beta1"


def test_a_definition_is_changed(world: World) -> None:
    world.create(DEFINITIONS, "caves.example.com", spec=definition())
    names = {"plural": "caves", "kind": "Cave", "shortNames": ["cv"], "categories": ["all"]}
    world.patch(DEFINITIONS, "caves.example.com", spec=definition(names=names))
    caves = world.cluster.registry.find("example.com", "v1", "caves")
    assert caves is not None
    assert caves.categories == ("all",)
    world.finalizers(DEFINITIONS, "caves.example.com", ["plain"])
    world.delete(DEFINITIONS, "caves.example.com")
    crd = world.get(DEFINITIONS, "caves.example.com")
    assert crd is not None
    assert crd["metadata"]["finalizers"] == ["plain"]
    assert crd["status"]["conditions"][-1]["type"] == "Terminating"
    world.finalizers(DEFINITIONS, "caves.example.com", [])
    assert world.get(DEFINITIONS, "caves.example.com") is None


def test_versions_come_and_go(world: World) -> None:
    world.create(DEFINITIONS, "caves.example.com", spec=definition())
    find = world.cluster.registry.find
    caves, versions = find("example.com", "v1", "caves"), definition()["versions"]
    assert caves is not None
    world.create(caves, "a")
    collection = world.cluster.collection(caves)
    world.patch(
        DEFINITIONS, "caves.example.com", metadata={"name": "caves.example.com", "labels": {"a": "b"}}
    )
    assert world.cluster.collection(caves) is collection
    for kept in (versions[1:], [version | {"served": False} for version in versions]):
        world.patch(DEFINITIONS, "caves.example.com", spec=definition(versions=kept))
        assert find("example.com", "v1beta1", "caves") is None
    assert collection.closed
    assert find("example.com", "v1", "caves") is None
    assert world.get(caves, "a") is not None
    world.delete(DEFINITIONS, "caves.example.com")
    assert ("DELETED", "default/a") in world.events


def test_a_definition_takes_its_objects_along(world: World) -> None:
    world.create(DEFINITIONS, "caves.example.com", spec=definition())
    caves = world.cluster.registry.find("example.com", "v1", "caves")
    assert caves is not None
    world.create(caves, "a")
    world.create(caves, "b", metadata={"finalizers": ["x/y"]})
    collection = world.cluster.collection(caves)
    world.delete(DEFINITIONS, "caves.example.com")
    assert world.get(DEFINITIONS, "caves.example.com") is not None
    assert sorted(collection.objects) == ["default/b"]
    assert not world.delete(DEFINITIONS, "caves.example.com").gone
    world.finalizers(caves, "b", [])
    assert world.get(DEFINITIONS, "caves.example.com") is None
    assert collection.closed
    assert world.cluster.registry.find("example.com", "v1", "caves") is None


def test_delete_collection_skips_objects_that_are_gone(world: World) -> None:
    for name in "abc":
        world.create(CONFIGMAPS, name)
    objects = list(world.cluster.collection(CONFIGMAPS).objects.values())
    deleting = delete_collection(world.cluster, CONFIGMAPS, objects, DeleteOptions())
    assert next(deleting).name == "a"
    world.delete(CONFIGMAPS, "b")
    assert [stored.name for stored in deleting] == ["c"]


def test_the_work_is_done_in_small_steps(world: World) -> None:
    world.create(NAMESPACES, "team")
    for index in range(20):
        world.create(CONFIGMAPS, f"c{index}", "team")
    delete(world.cluster, NAMESPACES, "", "team", DeleteOptions())
    assert sum(1 for controller in world.controllers for _ in controller.work()) >= 20
    assert world.get(NAMESPACES, "team") is None


def test_an_owner_of_an_unknown_kind_keeps_what_it_owns(world: World) -> None:
    cave = {"apiVersion": "example.com/v1", "kind": "Cave", "metadata": {"name": "x", "uid": "u"}}
    world.create(CONFIGMAPS, "a", metadata=owned_by(cave))
    assert world.get(CONFIGMAPS, "a") is not None


def test_ephemeral_volume_is_deleted_with_its_pod() -> None:
    """A claim of an ephemeral volume is deleted even if a finalizer keeps the stopped pod."""
    world = World(["persistentvolumeclaim-protection-controller"])
    spec = {"nodeName": "n", "volumes": [{"name": "v", "ephemeral": {}}]}
    pod = world.create(PODS, "p", spec=spec, metadata={"finalizers": ["x/y"]})
    world.create(CLAIMS, "p-v", metadata=owned_by(pod))
    world.delete(CLAIMS, "p-v")
    world.delete(PODS, "p")
    assert world.get(CLAIMS, "p-v") is not None
    world.delete(PODS, "p", grace_period_seconds=0)
    assert world.get(PODS, "p") is not None
    assert world.get(CLAIMS, "p-v") is None


def test_controllers_can_be_chosen_by_name() -> None:
    world = World(["namespace-controller"])
    world.create(PODS, "a", spec={"nodeName": "n"})
    assert not world.delete(PODS, "a").gone
    world.create(NAMESPACES, "team")
    world.delete(NAMESPACES, "team")
    assert world.get(NAMESPACES, "team") is None
    with pytest.raises(UnknownNameError, match="there is no controller 'job-controller'"):
        World(["job-controller"])


class Counted:
    """A function that counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> None:
        self.calls = 0
        self._func = getattr(module, name)
        monkeypatch.setattr(module, name, self)

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self._func(*args)


def test_foreground_deletion_reads_each_dependent_a_few_times(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, owner = 100, world.create(CONFIGMAPS, "owner")
    metadata = {**owned_by(owner, blocking=True), "finalizers": ["x/y"]}
    names = [f"a{number}" for number in range(count)]
    for name in names:
        world.create(CONFIGMAPS, name, metadata=metadata)
    loads = Counted(monkeypatch, garbage, "load")
    world.delete(CONFIGMAPS, "owner", propagation_policy="Foreground")
    for name in names:
        assert world.get(CONFIGMAPS, "owner") is not None
        world.finalizers(CONFIGMAPS, name, [])
    assert world.get(CONFIGMAPS, "owner") is None
    assert loads.calls < 10 * count


def test_terminating_namespace_reads_each_object_a_few_times(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 200
    world.create(NAMESPACES, "team")
    for number in range(count):
        world.create(CONFIGMAPS, f"a{number}", "team", metadata={"finalizers": ["x/y"]})
    loads = Counted(monkeypatch, namespaces, "load")
    world.delete(NAMESPACES, "team")
    for number in range(count):
        assert world.get(NAMESPACES, "team") is not None
        world.patch(CONFIGMAPS, f"a{number}", "team", metadata={"name": f"a{number}", "namespace": "team"})
    assert world.get(NAMESPACES, "team") is None
    assert loads.calls < 30 * count


def test_new_definition_leaves_those_with_names_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = Counted(monkeypatch, definitions, "with_names")
    count = 20
    for number in range(count):
        names = {"plural": f"c{number}s", "kind": f"C{number}"}
        world.create(DEFINITIONS, f"c{number}s.example.com", spec=definition(names=names))
    assert settled.calls <= 3 * count
