"""The smallest operator: a Service for each Deployment that has a label, and none for others.

    python examples/operator_quickstart.py
    python examples/operator_quickstart.py in-cluster

The first runs on an API server inside this process. The second is for a pod: it serves probes and metrics, and ends on
SIGTERM.
"""

from __future__ import annotations

import asyncio
import sys

from aioinformer import Client, KubeObject, NotFoundError
from aioinformer.operator import (
    Controller,
    GenerationChanged,
    LabelsChanged,
    Manager,
    Owns,
    Request,
    RunOptions,
    controller_of,
    owner_reference,
    run,
)
from aioinformer.resources import CachedResource
from aioinformer.testing import APIServer, eventually

EXPOSED = "example.com/expose"


def expose(client: Client) -> Manager:
    """Return a manager with the controller."""
    manager = Manager(client)
    deployments = manager.for_resource("apps/v1", "deployments")
    services = manager.resource("v1", "services", kind="Service")

    async def reconcile(request: Request[KubeObject]) -> None:
        deployment = request.object
        if deployment is None:
            return  # the Service goes with its owner
        if EXPOSED in deployment.metadata.labels:
            await services.apply(service_for(deployment))
            print("exposed", request.key)
        elif await is_exposed(services, deployment):
            await services.delete(request.key)
            print("hidden", request.key)

    manager.add(
        Controller(
            "expose",
            reconcile,
            deployments,
            predicate=GenerationChanged() | LabelsChanged(),
            owns=[Owns(services)],  # others may change or delete ours
            concurrency=4,
        )
    )
    return manager


def service_for(deployment: KubeObject) -> dict[str, object]:
    """Return the desired Service."""
    return {
        "metadata": {
            "name": deployment.name,
            "namespace": deployment.namespace,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "selector": deployment["spec"]["selector"]["matchLabels"],
            "ports": [{"port": int(deployment.metadata.labels[EXPOSED])}],
        },
    }


async def is_exposed(services: CachedResource[KubeObject], deployment: KubeObject) -> bool:
    """Return whether the Deployment has its Service. The cache includes our own writes."""
    try:
        service = await services.get(deployment.key)
    except NotFoundError:
        return False
    owner = controller_of(service)
    return owner is not None and owner.uid == deployment.uid


async def main() -> None:
    """Run on an API server inside this process, and make changes as its user."""
    async with APIServer() as server, Client.from_url(server.url) as client, expose(client):
        labels = {"app": "web"}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": []}},
        }
        web = {"metadata": {"name": "web", "labels": {EXPOSED: "8080"}}, "spec": spec}
        server.create("apps/v1", "deployments", web)
        await eventually(lambda: "default/web" in server.snapshot("v1", "services"))
        server.delete("v1", "services", "web")
        await eventually(lambda: "default/web" in server.snapshot("v1", "services"))
        server.patch("apps/v1", "deployments", "web", {"metadata": {"labels": {EXPOSED: None}}})
        await eventually(lambda: "default/web" not in server.snapshot("v1", "services"))


async def in_cluster() -> None:
    """Run in a pod."""
    await run(expose, options=RunOptions(target="expose"))


if __name__ == "__main__":
    asyncio.run(in_cluster() if "in-cluster" in sys.argv else main())
