"""Custom resources that tests define."""

from __future__ import annotations

from .api import Object, Resource


def definition(group: str, kind: str) -> Object:
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
            "scope": "Namespaced",
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


CAVES = Resource("example.com/v1", "caves")
CAVE_DEFINITION = definition("example.com", "Cave")


def cave(name: str, depth: int = 0) -> Object:
    return {
        "apiVersion": CAVES.api_version,
        "kind": "Cave",
        "metadata": {"name": name},
        "spec": {"depth": depth},
    }
