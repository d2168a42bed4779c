"""Wiping a PersistentVolume before it is removed, but only after its claim has released it.

Kubernetes has a finalizer of its own on a volume, `kubernetes.io/pv-protection`, for as long as a claim is bound to it.
It is left alone. When it is off it does not come back on what is being deleted, and ours still keeps the volume.

    python examples/volume_wipe.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioinformer import Client, KubeObject, contains_finalizer
from aioinformer.operator import Controller, Manager, Reconciler, Request, Result
from aioinformer.testing import APIServer, eventually

FINALIZER = "example.com/wipe"
PROTECTION = "kubernetes.io/pv-protection"
WIPED = "example.com/wiped"


class Wiping(Reconciler[KubeObject]):
    """A reconciler that wipes volumes.

    Args:
        say: Called with a line for each action.
    """

    finalizer = FINALIZER

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say

    async def reconcile(self, request: Request[KubeObject]) -> None:
        """Do nothing: a volume that is not being deleted needs only the finalizer."""

    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        volume = request.object
        assert volume is not None
        if contains_finalizer(volume, PROTECTION):
            self._say(f"{request.name} is bound")
            return Result(requeue_after=60)  # or when the volume changes
        self._say(f"wiped {volume['spec']['nfs']['path']} of {request.name}")
        return None


def operator(client: Client, say: Callable[[str], object] = print, wiped: str = WIPED) -> Manager:
    """Add a controller for the volumes that have a label; volumes are cluster-scoped.

    Args:
        client: Of the cluster.
        say: Called with a line for each action.
        wiped: The label.
    """
    manager = Manager(client)
    volumes = manager.resource("v1", "persistentvolumes", namespaced=False, label_selector=wiped)
    manager.add(Controller("wiping", Wiping(say), volumes))
    return manager


async def main() -> None:
    """Run on an API server inside this process."""
    said: list[str] = []

    def say(what: str) -> None:
        print(what)
        said.append(what)

    async with APIServer() as server, Client.from_url(server.url) as client, operator(client, say):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        server.create("v1", "persistentvolumeclaims", {"metadata": {"name": "photos"}, "spec": claim})
        volume = {
            "metadata": {"name": "disk", "labels": {WIPED: ""}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "nfs": {"server": "10.0.0.7", "path": "/photos"},
                "claimRef": {"namespace": "default", "name": "photos"},
            },
            "status": {"phase": "Bound"},
        }
        server.create("v1", "persistentvolumes", volume)
        await eventually(
            lambda: FINALIZER in server.get("v1", "persistentvolumes", "disk")["metadata"]["finalizers"]
        )
        server.delete("v1", "persistentvolumes", "disk")
        await eventually(lambda: said)  # "disk is bound"
        print("the claim goes")
        server.delete("v1", "persistentvolumeclaims", "photos")
        await eventually(lambda: "disk" not in server.snapshot("v1", "persistentvolumes"))
        print("disk is gone")


if __name__ == "__main__":
    asyncio.run(main())
