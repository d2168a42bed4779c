"""The first informer: a live, indexed copy of a cluster's pods, and a handler for every change.

Without arguments it runs on an API server inside this process. On a cluster it only reads.

    python examples/quickstart.py
    python examples/quickstart.py --kubeconfig ~/.kube/config
    python examples/quickstart.py http://127.0.0.1:8001

The last URL is that of a `kubectl proxy`.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    KubeObject,
    ListWatch,
    ResourceEventHandler,
    SharedIndexInformer,
)
from aioinformer.testing import APIServer

FOLLOW = 10.0
"""Seconds for which it watches a real cluster."""


class Printer(ResourceEventHandler[KubeObject]):
    """A handler that prints every change."""

    def __init__(self) -> None:
        self.deleted = asyncio.Event()

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        print("there was" if is_in_initial_list else "added", obj.key)

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        print("updated", new.key, "to", new["status"]["phase"])

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        print("deleted", obj.key)
        self.deleted.set()


def by_node(pod: KubeObject) -> list[str]:
    """Return the values under which the index lists a pod."""
    return [pod["spec"].get("nodeName", "no node")]


async def inform(client: Client, server: APIServer | None = None) -> None:
    """Watch all pods; on an embedded server, change some."""
    informer = SharedIndexInformer(
        ListWatch.for_resource(client, "v1", "pods"), KubeObject, indexers={"node": by_node}
    )
    printer = Printer()
    registration = informer.add_event_handler(printer)
    async with informer:
        await registration.wait_synced(timeout=30)
        print(f"synced: {len(informer.store)} pods")
        for node in sorted(informer.indexer.list_index_func_values("node")):
            print(node, "runs", sorted(pod.name for pod in informer.indexer.by_index("node", node)))
        print("labelled app=web:", sorted(pod.key for pod in informer.lister.list("app=web")))
        if server is None:
            await asyncio.sleep(FOLLOW)
            return
        server.create("v1", "pods", pod("web-3", "node-1"))
        server.patch("v1", "pods", "web-1", {"status": {"phase": "Succeeded"}})
        server.delete("v1", "pods", "web-2", grace_period_seconds=0)
        await printer.deleted.wait()
        print("in the end:", sorted(informer.store.list_keys()))


def pod(name: str, node: str) -> dict[str, Any]:
    """Return a pod."""
    return {
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
        "status": {"phase": "Running"},
    }


async def main(client: Client | None = None) -> None:
    """Run on a cluster, or on an API server inside this process."""
    if client is not None:
        async with client:
            await inform(client)
        return
    async with APIServer() as server:
        server.create("v1", "pods", pod("web-1", "node-1"))
        server.create("v1", "pods", pod("web-2", "node-2"))
        async with Client.from_url(server.url) as client:
            await inform(client, server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    parser.add_argument("--kubeconfig")
    chosen = parser.parse_args()
    if chosen.kubeconfig:
        asyncio.run(main(Client.from_kubeconfig(path=chosen.kubeconfig)))
    else:
        asyncio.run(main(Client.from_url(chosen.url) if chosen.url else None))
