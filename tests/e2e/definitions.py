"""Custom resources that tests define."""

from __future__ import annotations

import asyncio

import msgspec

from .api import API, DEFINITIONS, Object, Resource


class Meta(msgspec.Struct, rename="camel"):
    """The metadata that a cache needs."""

    name: str
    namespace: str
    resource_version: str


def definition(group: str, kind: str, scope: str = "Namespaced") -> Object:
    """A CustomResourceDefinition with a status subresource, whose spec and status may hold anything."""
    singular = kind.lower()
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": f"{singular}s", "singular": singular, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


async def define(api: API, definition: Object) -> None:
    """Create a CustomResourceDefinition where there is none, and wait until it is served."""
    spec = definition["spec"]
    collection = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    answer = await api.ask("POST", DEFINITIONS.path(), definition)
    assert answer.status in (201, 409), answer
    async with asyncio.timeout(20):
        # Established is not enough: a moment of 404 and of 429 "storage is (re)initializing" follow.
        while (await api.ask("GET", collection)).status != 200:  # noqa: ASYNC110 - nothing tells when it is
            await asyncio.sleep(0.05)


async def undefine(api: API, name: str) -> None:
    """Delete a CustomResourceDefinition, and wait until it is gone, so that it can be created again."""
    path = DEFINITIONS.path(name=name)
    await api.ask("DELETE", path)
    async with asyncio.timeout(20):
        while (await api.ask("GET", path)).status != 404:  # noqa: ASYNC110 - its objects go first
            await asyncio.sleep(0.05)


CAVES = Resource("example.com/v1", "caves")
CAVE_DEFINITION = definition("example.com", "Cave")


def cave(name: str, depth: int = 0) -> Object:
    return {
        "apiVersion": CAVES.api_version,
        "kind": "Cave",
        "metadata": {"name": name},
        "spec": {"depth": depth},
    }
