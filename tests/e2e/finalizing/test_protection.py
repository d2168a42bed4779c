"""Claims and volumes stay while they are in use."""

from __future__ import annotations

from typing import Any

import pytest

from ..api import PODS, Object
from ..clusters import Cluster, pod_manifest
from .waiting import CLAIMS, VOLUMES, delete, drop_finalizer, finalizers, find, until_gone, until_object

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # no code of ours asks

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


def claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def user(name: str, of: str, *, node: str = "") -> Object:
    obj = pod_manifest(name, node=node)
    obj["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": of}}]
    return obj


async def until_protection_is_idle(cluster: Cluster) -> None:
    """Wait until the controller has processed all earlier changes."""
    await cluster.create(CLAIMS, claim("sentinel"))
    await delete(cluster, CLAIMS, "sentinel")
    await until_gone(cluster, CLAIMS, "sentinel")


async def end(cluster: Cluster, name: str) -> None:
    """Do what the kubelet does when a pod has stopped."""
    await delete(cluster, PODS, name, gracePeriodSeconds=0)


async def test_an_unused_claim_goes(cluster: Cluster) -> None:
    created = await cluster.create(CLAIMS, claim("data"))
    assert finalizers(created) == [CLAIM_PROTECTION]
    await delete(cluster, CLAIMS, "data")
    await until_gone(cluster, CLAIMS, "data")


async def test_a_claim_stays_while_a_pod_on_a_node_uses_it(cluster: Cluster) -> None:
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, user("first", "data", node="n1"))
    await cluster.create(PODS, user("second", "data", node="n1"))
    left = await delete(cluster, CLAIMS, "data")
    assert finalizers(left) == [CLAIM_PROTECTION]
    await end(cluster, "first")
    await until_protection_is_idle(cluster)
    assert await find(cluster, CLAIMS, "data") is not None
    await end(cluster, "second")
    await until_gone(cluster, CLAIMS, "data")


async def test_a_pod_that_is_being_deleted_uses_it_still(cluster: Cluster) -> None:
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, user("ends", "data", node="n1"))
    await delete(cluster, CLAIMS, "data")
    await delete(cluster, PODS, "ends")
    await until_protection_is_idle(cluster)
    assert await find(cluster, CLAIMS, "data") is not None
    await end(cluster, "ends")
    await until_gone(cluster, CLAIMS, "data")


async def test_a_pod_that_has_ended_uses_it_still(cluster: Cluster) -> None:
    """It may have to be removed before its claim goes: a finished Job's pod does that."""
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, user("ended", "data", node="n1"))
    await cluster.patch(PODS, "ended", {"status": {"phase": "Succeeded"}}, subresource="/status")
    await delete(cluster, CLAIMS, "data")
    await until_protection_is_idle(cluster)
    assert await find(cluster, CLAIMS, "data") is not None
    await end(cluster, "ended")
    await until_gone(cluster, CLAIMS, "data")


async def test_a_pod_on_no_node_does_not_count(cluster: Cluster) -> None:
    """No kubelet starts it when the claim is terminating."""
    await cluster.create(CLAIMS, claim("data"))
    await cluster.create(PODS, user("waits", "data"))
    await delete(cluster, CLAIMS, "data")
    await until_gone(cluster, CLAIMS, "data")


async def test_finalizers_of_others_keep_it_too(cluster: Cluster) -> None:
    created = claim("data")
    created["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create(CLAIMS, created)
    await delete(cluster, CLAIMS, "data")
    left = await until_object(cluster, CLAIMS, "data", lambda obj: CLAIM_PROTECTION not in finalizers(obj))
    assert finalizers(left) == ["example.com/hold"]
    await drop_finalizer(cluster, CLAIMS, "data", "example.com/hold")
    await until_gone(cluster, CLAIMS, "data")


async def test_a_claim_that_lost_its_protection_is_protected_again(cluster: Cluster) -> None:
    await cluster.create(CLAIMS, claim("data"))
    before = await cluster.patch(CLAIMS, "data", {"metadata": {"finalizers": None}})
    assert finalizers(before) == []
    await until_object(cluster, CLAIMS, "data", lambda obj: finalizers(obj) == [CLAIM_PROTECTION])


async def bound_volume(cluster: Cluster, labels: dict[str, str] | None = None) -> str:
    """Create a volume with the phase Bound and return its name."""
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "nfs": {"server": "10.0.0.7", "path": "/deep"},
        "claimRef": {"namespace": cluster.namespace, "name": "data"},
    }
    name = f"disk-{cluster.namespace}"
    metadata = {"name": name, "labels": labels or {}}
    created = await cluster.create(VOLUMES, {"metadata": metadata, "spec": spec})
    assert finalizers(created) == [VOLUME_PROTECTION]
    await _say(cluster, name, "Bound")
    return name


async def release(cluster: Cluster, name: str) -> None:
    """Do what the volume controller does when a volume's claim is deleted."""
    await _say(cluster, name, "Released")


async def _say(cluster: Cluster, name: str, phase: str) -> None:
    await cluster.patch(VOLUMES, name, {"status": {"phase": phase}}, subresource="/status")


async def test_a_volume_stays_while_it_is_bound(cluster: Cluster) -> None:
    volume = await bound_volume(cluster)
    left = await delete(cluster, VOLUMES, volume)
    assert finalizers(left) == [VOLUME_PROTECTION]
    await until_protection_is_idle(cluster)
    assert await find(cluster, VOLUMES, volume) is not None
    await release(cluster, volume)
    await until_gone(cluster, VOLUMES, volume)
