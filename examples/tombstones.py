"""A missed deletion: handling DeletedFinalStateUnknown, after a real disconnect.

Most deletions arrive as the object's last state. If one happened while the watch was down, and the server has
forgotten it, the next list reveals it: then the handler gets the last known state only.

    python examples/tombstones.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    KubeObject,
    ListWatch,
    Reflector,
    ResourceEventHandler,
    SharedIndexInformer,
)
from aioinformer.testing import APIServer


class Volumes(ResourceEventHandler[KubeObject]):
    """A handler that frees what a claim held, once the claim is gone."""

    def __init__(self) -> None:
        self.freed: asyncio.Queue[str] = asyncio.Queue()

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            # obj.key is certain. obj.obj is the last state that we saw: use it to look up our own work, but
            # not as the final state, because it may be stale.
            size = obj.obj["data"]["size"] if obj.obj is not None else "unknown"
            print(f"{obj.key} is gone, its deletion was missed; its last known size was {size}")
        else:
            print(f"{obj.key} is gone; its last size was {obj['data']['size']}")
        self.freed.put_nowait(obj.key)


def print_error(reflector: Reflector[Any], error: Exception) -> None:
    """Print errors instead of logging them."""
    print(f"error: {type(error).__name__}")


async def main() -> None:
    """See one deletion and miss another."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        for name in ("seen", "missed"):
            server.create("v1", "configmaps", {"metadata": {"name": name}, "data": {"size": "1"}})
        informer = SharedIndexInformer(
            ListWatch.for_resource(client, "v1", "configmaps"), KubeObject, watch_error_handler=print_error
        )
        volumes = Volumes()
        informer.add_event_handler(volumes)
        async with informer:
            await informer.wait_synced(timeout=30)
            server.delete("v1", "configmaps", "seen")
            await volumes.freed.get()

            server.faults.refuse(cut=True)  # the server is unreachable
            server.patch("v1", "configmaps", "missed", {"data": {"size": "2"}})
            server.delete("v1", "configmaps", "missed")
            server.faults.expire_history()  # for so long that the server has forgotten the events
            print("still in the cache:", informer.store.list_keys())
            await server.faults.accept()
            await volumes.freed.get()
            print("in the cache now:", informer.store.list_keys())


if __name__ == "__main__":
    asyncio.run(main())
