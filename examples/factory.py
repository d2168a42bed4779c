"""SharedInformerFactory: one shared informer per collection.

    python examples/factory.py
    python examples/factory.py http://127.0.0.1:8001

The second reads a cluster, through `kubectl proxy`.
"""

from __future__ import annotations

import asyncio
import sys

from aioinformer import Client, KubeObject, SharedInformerFactory
from aioinformer.testing import APIServer


async def inform(client: Client) -> None:
    """Watch the pods of two namespaces, all deployments, and all nodes."""
    factory = SharedInformerFactory(client)
    pods = factory.for_resource("v1", "pods", namespaces=["shop", "blog"])
    deployments = factory.for_resource("apps/v1", "deployments")
    nodes = factory.for_resource("v1", "nodes")
    print("requested twice, the same informer:", factory.for_resource("v1", "nodes") is nodes)

    def print_added(pod: KubeObject, is_in_initial_list: bool) -> None:
        print("a pod:", pod.key)

    registration = pods.add_event_handler(on_add=print_added)
    deployments.add_indexers({"image": images})
    async with factory:  # starts and stops the informers
        await factory.wait_for_cache_sync(timeout=30)
        await registration.wait_synced(timeout=30)
        print("nodes:", sorted(node.name for node in nodes.lister.list()))
        print("pods in shop:", [pod.name for pod in pods.lister.namespace("shop").list()])
        print(
            "by image:",
            [deployment.key for deployment in deployments.indexer.by_index("image", "example.com/web:1")],
        )

        # Informers may be added at any time; start() starts those that do not run yet.
        services = factory.for_resource("v1", "services", namespace="shop")
        factory.start()
        await factory.wait_for_cache_sync(timeout=30)
        print("services in shop:", services.store.list_keys())
        for informer in factory.informers:
            print(f"{informer.name}: {len(informer.store)} objects, synced: {informer.has_synced()}")


def images(deployment: KubeObject) -> list[str]:
    """Return the images of a deployment's containers."""
    return [container["image"] for container in deployment["spec"]["template"]["spec"]["containers"]]


def populate(server: APIServer) -> None:
    """Create the objects of this example."""
    containers = [{"name": "web", "image": "example.com/web:1"}]
    for namespace in ("shop", "blog", "attic"):
        pod = {"metadata": {"name": "web"}, "spec": {"containers": containers}}
        server.create("v1", "pods", pod, namespace)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    server.create("apps/v1", "deployments", {"metadata": {"name": "web"}, "spec": spec}, "shop")
    server.create("v1", "nodes", {"metadata": {"name": "node-1"}})
    server.create("v1", "services", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}, "shop")


async def main(url: str | None = None) -> None:
    """Run on a cluster, or on an API server inside this process."""
    if url is not None:
        async with Client.from_url(url) as client:
            await inform(client)
        return
    async with APIServer() as server:
        populate(server)
        await main(server.url)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
