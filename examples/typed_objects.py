"""Choosing the object type: the same pods as KubeObject, dict, your own Struct, and V1Pod.

KubeObject keeps the server's bytes and decodes what is read. A Struct keeps only the fields that it names. A dict
or a model is decoded whole, and is one object for all readers: do not change it.

    python examples/typed_objects.py
    python examples/typed_objects.py http://127.0.0.1:8001
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
from kubernetes_asyncio.client import V1Pod

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer, wait_for_cache_sync
from aioinformer.testing import APIServer


class Metadata(msgspec.Struct, rename="camel"):
    """The metadata: name is required, namespace too for namespaced objects, and most uses need the version."""

    name: str
    resource_version: str
    namespace: str = ""


class Spec(msgspec.Struct, rename="camel"):
    """The spec, with the node only."""

    node_name: str | None = None


class PodOnNode(msgspec.Struct):
    """A typed projection of a pod."""

    metadata: Metadata
    spec: Spec


async def read(client: Client) -> None:
    """Read the node of every pod in four ways."""
    pods = ListWatch.for_resource(client, "v1", "pods")
    views = SharedIndexInformer(pods, KubeObject)
    dicts = SharedIndexInformer(pods, dict[str, Any])
    structs = SharedIndexInformer(pods, PodOnNode)
    models = SharedIndexInformer(pods, V1Pod)
    async with views, dicts, structs, models:
        await wait_for_cache_sync(views, dicts, structs, models, timeout=30)
        for view in views.store.list():
            print("KubeObject:", view.name, "on", view["spec"].get("nodeName"))
        for fields in dicts.store.list():
            print("dict:", fields["metadata"]["name"], "on", fields["spec"].get("nodeName"))
        for struct in structs.store.list():
            print("Struct:", struct.metadata.name, "on", struct.spec.node_name)
        for model in models.store.list():
            print("V1Pod:", model.metadata.name, "on", model.spec.node_name)
        # A KubeObject can become any of the others later, and a copy to edit.
        for view in views.store.list():
            copy = view.to_dict()
            copy["spec"]["nodeName"] = "elsewhere"
            print("unchanged:", view.decode(PodOnNode).spec.node_name)


async def main(url: str | None = None) -> None:
    """Run on a cluster, or on an API server inside this process."""
    if url is not None:
        async with Client.from_url(url) as client:
            await read(client)
        return
    async with APIServer() as server:
        pod = {
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "example.com/web:1"}]},
        }
        server.create("v1", "pods", pod)
        await main(server.url)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
