"""Namespaces: contents, then finalizers of the spec, then finalizers of the metadata."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import configmap

from ..api import CONFIGMAPS, NAMESPACES, PODS, Object
from ..clusters import Cluster, pod_manifest
from .waiting import delete, drop_finalizer, finalizers, find, until_gone, until_object

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # no code of ours asks

HOLD = "example.com/hold"


def conditions(namespace: Object) -> dict[str, Object]:
    return {condition["type"]: condition for condition in namespace["status"].get("conditions") or []}


def is_emptied(namespace: Object) -> bool:
    """Return whether the namespace controller has finished."""
    return "kubernetes" not in (namespace["spec"].get("finalizers") or [])


async def finalize(cluster: Cluster, name: str, finalizer: str) -> Object:
    """Remove a finalizer of the spec through the finalize subresource, as its owner does."""
    namespace = await cluster.api.do("GET", NAMESPACES.path(name=name))
    namespace["spec"]["finalizers"].remove(finalizer)
    return await cluster.api.do("PUT", NAMESPACES.path(name=name) + "/finalize", namespace)


async def test_a_namespace_is_emptied_and_goes(cluster: Cluster) -> None:
    await cluster.create(CONFIGMAPS, configmap("inside"))
    await cluster.create(PODS, pod_manifest("runs"))
    left = await delete(cluster, NAMESPACES, cluster.namespace)
    assert left["status"]["phase"] == "Terminating"
    await until_gone(cluster, NAMESPACES, cluster.namespace)
    assert await cluster.list(CONFIGMAPS) == {}
    assert await cluster.list(PODS) == {}


async def test_it_says_what_it_waits_for(cluster: Cluster) -> None:
    held = configmap("held")
    held["metadata"]["finalizers"] = [HOLD]
    await cluster.create(CONFIGMAPS, held)
    await cluster.create(CONFIGMAPS, configmap("free"))
    await delete(cluster, NAMESPACES, cluster.namespace)
    namespace = await until_object(
        cluster,
        NAMESPACES,
        cluster.namespace,
        lambda obj: conditions(obj).get("NamespaceFinalizersRemaining", {}).get("status") == "True",
    )
    reasons = {
        kind: (condition["status"], condition["reason"]) for kind, condition in conditions(namespace).items()
    }
    assert reasons == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    assert conditions(namespace)["NamespaceFinalizersRemaining"]["message"] == (
        f"Some content in the namespace has finalizers remaining: {HOLD} in 1 resource instances"
    )
    assert conditions(namespace)["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert await find(cluster, CONFIGMAPS, "free") is None
    refused = await cluster.api.ask("POST", CONFIGMAPS.path(cluster.namespace), configmap("late"))
    assert (refused.status, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    await drop_finalizer(cluster, CONFIGMAPS, "held", HOLD)
    await until_gone(cluster, NAMESPACES, cluster.namespace)


async def test_a_finalizer_of_the_spec_is_asked_too(cluster: Cluster) -> None:
    created = await cluster.api.do(
        "POST", NAMESPACES.path(), {"metadata": {"generateName": "held-"}, "spec": {"finalizers": [HOLD]}}
    )
    name = created["metadata"]["name"]
    assert created["spec"]["finalizers"] == [HOLD, "kubernetes"]
    await cluster.create(CONFIGMAPS, configmap("inside"), name)
    await delete(cluster, NAMESPACES, name)
    emptied = await until_object(cluster, NAMESPACES, name, is_emptied)
    assert emptied["spec"]["finalizers"] == [HOLD]
    assert await cluster.list(CONFIGMAPS, name) == {}
    await finalize(cluster, name, HOLD)
    await until_gone(cluster, NAMESPACES, name)


async def test_the_spec_cannot_be_finalized_by_an_ordinary_update(cluster: Cluster) -> None:
    created = await cluster.api.do(
        "POST", NAMESPACES.path(), {"metadata": {"generateName": "held-"}, "spec": {"finalizers": [HOLD]}}
    )
    name = created["metadata"]["name"]
    created["spec"]["finalizers"] = []
    updated = await cluster.api.do("PUT", NAMESPACES.path(name=name), created)
    assert updated["spec"]["finalizers"] == [HOLD, "kubernetes"]
    await finalize(cluster, name, HOLD)
    refused = await cluster.api.ask("PUT", NAMESPACES.path(name=name) + "/finalize", updated)
    assert refused.status == 409  # it was changed meanwhile


async def test_a_finalizer_of_the_metadata_keeps_a_namespace_that_is_empty(cluster: Cluster) -> None:
    await cluster.patch(NAMESPACES, cluster.namespace, {"metadata": {"finalizers": [HOLD]}})
    await cluster.create(CONFIGMAPS, configmap("inside"))
    await delete(cluster, NAMESPACES, cluster.namespace)
    emptied = await until_object(cluster, NAMESPACES, cluster.namespace, is_emptied)
    assert (emptied["spec"].get("finalizers") or [], finalizers(emptied)) == ([], [HOLD])
    assert await cluster.list(CONFIGMAPS) == {}
    await drop_finalizer(cluster, NAMESPACES, cluster.namespace, HOLD)
    await until_gone(cluster, NAMESPACES, cluster.namespace)


async def test_pods_go_before_all_else(cluster: Cluster) -> None:
    """A pod that still ends may need what it mounts."""
    held: dict[str, Any] = pod_manifest("ends")
    held["metadata"]["finalizers"] = [HOLD]
    await cluster.create(PODS, held)
    await cluster.create(CONFIGMAPS, configmap("mounted"))
    await delete(cluster, NAMESPACES, cluster.namespace)
    await until_object(cluster, PODS, "ends", lambda obj: "deletionTimestamp" in obj["metadata"])
    await until_object(cluster, NAMESPACES, cluster.namespace, conditions)
    assert await find(cluster, CONFIGMAPS, "mounted") is not None
    await drop_finalizer(cluster, PODS, "ends", HOLD)
    await until_gone(cluster, NAMESPACES, cluster.namespace)
