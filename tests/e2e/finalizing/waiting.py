"""Wait for controllers, with watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..api import JSON_PATCH, Object, Resource
from ..clusters import Cluster

CLAIMS = Resource("v1", "persistentvolumeclaims")
VOLUMES = Resource("v1", "persistentvolumes", namespaced=False)

PATIENCE = 40.0
"""Seconds; the namespace controller waits 5 s, then checks every 8 s."""


def in_own(cluster: Cluster, resource: Resource, name: str) -> str:
    """The path of an object of the test's namespace, or of one that is in none."""
    return resource.path(cluster.namespace, name)


async def find(cluster: Cluster, resource: Resource, name: str) -> Object | None:
    """An object as it is now."""
    answer = await cluster.api.ask("GET", in_own(cluster, resource, name))
    assert answer.status in (200, 404), answer
    return answer.body if answer.status == 200 else None


async def delete(cluster: Cluster, resource: Resource, name: str, **options: Any) -> Object:
    """Delete an object; options as DeleteOptions has them, such as ``propagationPolicy``."""
    return await cluster.api.do("DELETE", in_own(cluster, resource, name), options or None)


async def until_object(
    cluster: Cluster,
    resource: Resource,
    name: str,
    condition: Callable[[Object], object],
    *,
    patience: float = PATIENCE,
) -> Object:
    """Wait until an object is as it should be; that state of it.

    Raises:
        TimeoutError: It did not become so.
    """
    fields = await _wait(cluster, resource, name, condition, patience)
    assert fields is not None, f"{name} is gone"
    return fields


async def until_gone(cluster: Cluster, resource: Resource, name: str, *, patience: float = PATIENCE) -> None:
    """Wait until an object is gone.

    Raises:
        TimeoutError: It stays.
    """
    assert await _wait(cluster, resource, name, lambda _: False, patience) is None


async def _wait(
    cluster: Cluster, resource: Resource, name: str, condition: Callable[[Object], object], patience: float
) -> Object | None:
    """None once it is gone."""
    async with asyncio.timeout(patience):
        obj = await find(cluster, resource, name)
        if obj is None or condition(obj):
            return obj
        query = {
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": obj["metadata"]["resourceVersion"],
        }
        async with cluster.api.watch(resource.path(cluster.namespace), query) as events:
            async for event in events:
                if event["type"] == "DELETED":
                    return None
                assert event["type"] != "ERROR", event
                changed: Object = event["object"]
                if condition(changed):
                    return changed
    raise AssertionError("the watch ended")


def finalizers(obj: Object) -> list[str]:
    """An object's finalizers."""
    return obj["metadata"].get("finalizers") or []


async def drop_finalizer(cluster: Cluster, resource: Resource, name: str, finalizer: str) -> Object:
    """Remove a finalizer; the patch is refused if another one is at its position."""
    obj = await cluster.api.do("GET", in_own(cluster, resource, name))
    path = f"/metadata/finalizers/{finalizers(obj).index(finalizer)}"
    patch = [{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
    return await cluster.api.do("PATCH", in_own(cluster, resource, name), patch, content_type=JSON_PATCH)


def metadata_owned_by(*owners: Object, blocking: bool = True) -> Object:
    """Metadata of something that these own."""
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocking,
        }
        for owner in owners
    ]
    return {"ownerReferences": references}
