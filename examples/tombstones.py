"""A deletion that nobody saw: handling DeletedFinalStateUnknown, produced by a real disconnect.

Most deletions arrive as the object's last state. One that happened while the watch was down, and that the server
does not remember any more, is found out by the next list: then there is only the last state that we knew.

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
    """Frees what a claim held, once the claim is gone, by whichever way it hears of it."""

    def __init__(self) -> None:
        self.freed: asyncio.Queue[str] = asyncio.Queue()

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            # obj.key is sure. obj.obj is the last state that we saw: it may be stale, so it is good for looking
            # up what we did ourselves, and no evidence of what the object was like in the end.
            size = obj.obj["data"]["size"] if obj.obj is not None else "unknown"
            print(f"{obj.key} is gone, we did not see it go; when last seen its size was {size}")
        else:
            print(f"{obj.key} is gone; its last size was {obj['data']['size']}")
        self.freed.put_nowait(obj.key)


def tell(reflector: Reflector[Any], error: Exception) -> None:
    """Print what goes wrong, in place of the log."""
    print(f"trouble: {type(error).__name__}")


async def main() -> None:
    """See one deletion, and miss another."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        for name in ("seen", "missed"):
            server.create("v1", "configmaps", {"metadata": {"name": name}, "data": {"size": "1"}})
        informer = SharedIndexInformer(
            ListWatch.for_resource(client, "v1", "configmaps"), KubeObject, watch_error_handler=tell
        )
        volumes = Volumes()
        informer.add_event_handler(volumes)
        async with informer:
            await informer.wait_synced(timeout=30)
            server.delete("v1", "configmaps", "seen")
            await volumes.freed.get()

            server.faults.refuse(cut=True)  # the network is gone
            server.patch("v1", "configmaps", "missed", {"data": {"size": "2"}})
            server.delete("v1", "configmaps", "missed")
            server.faults.expire_history()  # and gone for so long that the server forgot the events
            print("still in the cache:", informer.store.list_keys())
            await server.faults.accept()
            await volumes.freed.get()
            print("in the cache now:", informer.store.list_keys())


if __name__ == "__main__":
    asyncio.run(main())
