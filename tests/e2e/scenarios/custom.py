"""A CustomResourceDefinition and its objects."""

from __future__ import annotations

from ..api import JSON_PATCH, MERGE, STRATEGIC, Object
from ..definitions import definition
from ..recording import Recorder
from .common import version_of


async def custom_resources(server: Recorder) -> None:
    """A CustomResourceDefinition and its objects."""
    group = f"{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.ask("GET", f"/apis/{group}")
    await server.ask("GET", relics)
    await server.define(definition(group, "Relic"))
    relic: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "Relic",
        "metadata": {"name": "a"},
        "spec": {"z": 1, "b": 2},
    }
    created = await server.ask("POST", relics, relic)
    await server.ask("POST", relics, relic)
    await server.ask("POST", relics, {"metadata": {"name": "b"}})
    await server.ask("POST", relics, relic | {"kind": "Cave"})
    await server.ask("POST", relics, relic | {"metadata": {"name": "UPPER"}})
    await server.ask("PUT", f"{relics}/a", relic | {"spec": {"z": 2}})
    await server.ask("PUT", f"{relics}/a", created.body | {"spec": {"z": 2}})
    await server.ask("PUT", f"{relics}/a", created.body | {"spec": {"z": 3}})
    await server.ask("PATCH", f"{relics}/a", {"spec": {"z": 4}, "status": {"no": 1}}, content_type=MERGE)
    await server.ask("PATCH", f"{relics}/a", {"spec": {"z": 5}}, content_type=STRATEGIC)
    await server.ask(
        "PATCH", f"{relics}/a", [{"op": "add", "path": "/spec/y", "value": 1}], content_type=JSON_PATCH
    )
    await server.ask(
        "PATCH", f"{relics}/a/status", {"spec": {"no": 1}, "status": {"s": 1}}, content_type=MERGE
    )
    await server.ask("PATCH", f"{relics}/a", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await server.ask("GET", f"{relics}/a")
    await server.ask("GET", relics)
    await server.ask("GET", relics, query={"limit": "1"})
    await server.ask("GET", f"/apis/{group}/v1/relics", query={"labelSelector": "a=b"})
    await server.ask("GET", relics, query={"fieldSelector": "metadata.name=a"})
    await server.ask("GET", relics, query={"fieldSelector": "spec.z=4"})
    await server.ask("GET", f"/apis/{group}/v1")
    await server.ask("GET", f"/apis/{group}")
    await server.watch(relics, {"resourceVersion": version_of(created)})
    stream = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    await server.watch(relics, stream | {"allowWatchBookmarks": "true"})
    await server.ask("DELETE", f"{relics}/a")
    await server.ask("DELETE", relics)


async def definitions(server: Recorder) -> None:
    """A CustomResourceDefinition is changed, and deleted."""
    group = f"definitions.{server.namespace}.example.com"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/relics.{group}"
    await server.define(definition(group, "Relic"))
    changed = await server.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await server.ask("PUT", path, changed.body | {"metadata": changed.body["metadata"] | {"labels": {}}})
    for finalizers in (["not one"], ["unqualified"], []):
        await server.ask("PATCH", path, {"metadata": {"finalizers": finalizers}}, content_type=MERGE)
    await server.ask("DELETE", path)
    await server.until(404, path)


async def pruning(server: Recorder) -> None:
    """What a CustomResourceDefinition's schema refuses or drops."""
    group = f"pruning.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.define(definition(group, "Relic"))
    relic: Object = {"apiVersion": f"{group}/v1", "kind": "Relic", "spec": {"z": 1}}
    await server.ask("POST", relics, relic | {"metadata": {"name": "pruned"}, "unknown": 1})
    await server.ask("POST", relics, relic | {"metadata": {"name": "bad"}, "spec": 7})
