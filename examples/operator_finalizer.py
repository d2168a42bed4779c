"""The smallest operator: a finalizer, so that something can be cleaned up before an object goes.

The informer reads, through the ApiClient of kubernetes_asyncio that also writes. The handler only notes keys;
`reconcile` looks at the newest state in the cache, and may be called for the same key again and again.

    python examples/operator_finalizer.py
"""

from __future__ import annotations

import asyncio

from kubernetes_asyncio.client import ApiClient, Configuration, CoreV1Api, V1ConfigMap
from kubernetes_asyncio.client.exceptions import ApiException

from aioinformer import (
    KubeObject,
    ListWatch,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    add_finalizer,
    contains_finalizer,
    remove_finalizer,
)
from aioinformer.testing import APIServer

FINALIZER = "examples.aioinformer.dev/cleanup"


async def reconcile(obj: KubeObject, api: CoreV1Api) -> None:
    """Put our finalizer on what lives, and clean up after what is to go."""
    if obj.metadata.deletion_timestamp is None:
        wanted, changed = add_finalizer(obj, FINALIZER)
        if changed:
            print("taking care of", obj.key)
    else:
        if contains_finalizer(obj, FINALIZER):
            print("cleaning up after", obj.key)
        wanted, changed = remove_finalizer(obj, FINALIZER)
    if changed:
        try:
            await api.replace_namespaced_config_map(obj.name, obj.namespace, wanted.decode(V1ConfigMap))
        except ApiException as error:
            if error.status not in (404, 409):  # gone, or changed meanwhile: then we are told of that
                raise


async def operate(api_client: ApiClient, server: APIServer) -> None:
    """Reconcile each config map that changes, until one has come and gone."""
    keys: asyncio.Queue[str] = asyncio.Queue()
    informer = SharedIndexInformer(ListWatch.for_resource(api_client, "v1", "configmaps"), KubeObject)
    informer.add_event_handler(
        ResourceEventHandlerFuncs(
            on_add=lambda obj, is_in_initial_list: keys.put_nowait(obj.key),
            on_update=lambda old, new: keys.put_nowait(new.key),
            on_delete=lambda obj: keys.put_nowait(obj.key),
        )
    )
    async with informer:
        await informer.wait_synced(timeout=30)
        server.create("v1", "configmaps", {"metadata": {"name": "database"}})
        while True:
            obj = informer.store.get_by_key(key := await keys.get())
            if obj is None:
                print(key, "is gone")
                return
            await reconcile(obj, CoreV1Api(api_client))
            if contains_finalizer(obj, FINALIZER) and obj.metadata.deletion_timestamp is None:
                server.delete("v1", "configmaps", obj.name)  # what a user would do, some day


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, ApiClient(Configuration(host=server.url)) as api_client:
        await operate(api_client, server)


if __name__ == "__main__":
    asyncio.run(main())
