"""A CustomResourceDefinition and its objects."""

from __future__ import annotations

import asyncio

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


async def versions(server: Recorder) -> None:
    """Versions of a custom resource come and go; whatever changes a definition's spec ends all watches."""
    group = f"versions.{server.namespace}.example.com"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/relics.{group}"
    relics, older = (f"/apis/{group}/{version}/namespaces/NS/relics" for version in ("v1", "v1beta1"))
    made = definition(group, "Relic")
    (v1,) = made["spec"]["versions"]
    beta = v1 | {"name": "v1beta1", "storage": False}
    made["spec"]["versions"] = [v1, beta]
    await server.define(made)
    await server.until(200, older)
    other = definition(group, "Rune")
    other["spec"]["versions"] = [
        v1 | {"name": name, "storage": name == "v1alpha1"}
        for name in ("v1alpha1", "odd", "v2beta1", "v10", "v1beta2", "v2")
    ]
    await server.define(other)
    await server.until(200, f"/apis/{group}/v10")
    await server.ask("GET", f"/apis/{group}")
    relic = {"kind": "Relic", "metadata": {"name": "a"}}
    created = await server.ask("POST", relics, relic | {"apiVersion": f"{group}/v1"})
    await server.ask("GET", f"/apis/{group}/v1/cauldrons")
    for served in ([v1, beta | {"served": False}], [v1, beta], [v1]):
        async with asyncio.timeout(20), asyncio.TaskGroup() as watching:
            watching.create_task(server.watch(relics, {"resourceVersion": "0", "timeoutSeconds": "60"}))
            await asyncio.sleep(0.5)
            await server.ask("PATCH", path, {"spec": {"versions": served}}, content_type=MERGE)
        await server.until(200 if beta in served else 404, older)
        await server.until(200, relics)
        for collection in (relics, older):
            await server.ask("GET", collection)
        await server.ask("GET", f"/apis/{group}/v1beta1")
        await server.ask("POST", older, relic | {"apiVersion": f"{group}/v1beta1"})
        await server.watch(older)
        await server.watch(relics, {"resourceVersion": version_of(created)})


async def pruning(server: Recorder) -> None:
    """What a CustomResourceDefinition's schema refuses or drops."""
    group = f"pruning.{server.namespace}.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.define(definition(group, "Relic"))
    relic: Object = {"apiVersion": f"{group}/v1", "kind": "Relic", "spec": {"z": 1}}
    await server.ask("POST", relics, relic | {"metadata": {"name": "pruned"}, "unknown": 1})
    await server.ask("POST", relics, relic | {"metadata": {"name": "bad"}, "spec": 7})
