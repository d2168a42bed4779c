"""A last backup of each PersistentVolumeClaim: after its pods are gone, before the claim is removed.

Kubernetes keeps its own finalizer on a claim, `kubernetes.io/pvc-protection`, while a pod on a node uses it. This
operator leaves that alone. Once it is removed no pod writes any more, and our finalizer still keeps the claim.

    python examples/claim_backup.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioinformer import Client, KubeObject, contains_finalizer
from aioinformer.operator import Controller, Manager, Reconciler, Request, Result
from aioinformer.testing import APIServer, eventually

FINALIZER = "example.com/backup"
PROTECTION = "kubernetes.io/pvc-protection"


class Backups(Reconciler[KubeObject]):
    """A reconciler that takes the backups.

    Args:
        say: Called with a line for each action.
    """

    finalizer = FINALIZER

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say

    async def reconcile(self, request: Request[KubeObject]) -> None:
        """Do nothing: a claim that is not being deleted needs only the finalizer."""

    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        if request.object is not None and contains_finalizer(request.object, PROTECTION):
            self._say(f"{request.name} is in use")
            return Result(requeue_after=60)  # or when the claim changes
        self._say(f"took a backup of {request.name}")
        return None


def operator(client: Client, say: Callable[[str], object] = print, namespace: str | None = None) -> Manager:
    """Add a controller for the claims of a namespace, or of all namespaces."""
    manager = Manager(client, namespace=namespace)
    claims = manager.resource("v1", "persistentvolumeclaims")
    manager.add(Controller("backups", Backups(say), claims))
    return manager


async def main() -> None:
    """Run on an API server inside this process."""
    said: list[str] = []

    def say(what: str) -> None:
        print(what)
        said.append(what)

    async with APIServer() as server, Client.from_url(server.url) as client, operator(client, say):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "photos"}}
        server.create("v1", "persistentvolumeclaims", {"metadata": {"name": "photos"}, "spec": claim})
        server.create(
            "v1", "pods", {"metadata": {"name": "web"}, "spec": {"nodeName": "n", "volumes": [volume]}}
        )
        await eventually(lambda: FINALIZER in finalizers(server))
        server.delete("v1", "persistentvolumeclaims", "photos")
        await eventually(lambda: said)  # "photos is in use"
        print("the pod ends")
        server.delete("v1", "pods", "web")
        await eventually(lambda: "default/photos" not in server.snapshot("v1", "persistentvolumeclaims"))
        print("photos is gone")


def finalizers(server: APIServer) -> list[str]:
    """Return the claim's finalizers."""
    names: list[str] = server.get("v1", "persistentvolumeclaims", "photos")["metadata"]["finalizers"]
    return names


if __name__ == "__main__":
    asyncio.run(main())
