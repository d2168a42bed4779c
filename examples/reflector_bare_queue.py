"""A Reflector on a bare DeltaFIFO: an object deleted during a disconnect vanishes silently.

The list after a disconnect says what is there, not what is gone. To find the deletions, the queue has to compare
the list with what its consumer has: its known objects. Then they come, as DeletedFinalStateUnknown.

    python examples/reflector_bare_queue.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    DeltaFIFO,
    KubeObject,
    ListWatch,
    Reflector,
    Store,
    deletion_handling_meta_namespace_key_func,
)
from aioinformer.cache import Delta, DeltaType
from aioinformer.testing import APIServer


def describe(obj: KubeObject | DeletedFinalStateUnknown[Any]) -> str:
    """Return a description of a delta's object."""
    return (
        f"a tombstone of {obj.key}" if isinstance(obj, DeletedFinalStateUnknown) else f"the object {obj.key}"
    )


async def live_through_a_disconnect(known_objects: Store[KubeObject] | None) -> list[str]:
    """Reflect two config maps, delete one while the watch is cut, and return what came out of the queue."""
    lines: list[str] = []

    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        for delta_type, obj in deltas:
            lines.append(f"{delta_type}: {describe(obj)}")
            if known_objects is None:
                continue
            if delta_type is DeltaType.DELETED:  # what an informer's process function does for you
                known_objects.delete(obj)
            else:
                known_objects.add(obj)

    async with APIServer() as server, Client.from_url(server.url) as client:
        for name in ("doomed", "kept"):
            server.create("v1", "configmaps", {"metadata": {"name": name}})
        queue = DeltaFIFO(known_objects=known_objects, emit_delta_type_replaced=True)
        reflector = Reflector(ListWatch.for_resource(client, "v1", "configmaps"), KubeObject, queue)
        reflecting = asyncio.create_task(reflector.run())
        try:
            await queue.pop(process)
            await queue.pop(process)

            lines.append("... the server is gone, and forgets what happens meanwhile ...")
            server.faults.refuse(cut=True)
            server.delete("v1", "configmaps", "doomed")
            server.faults.expire_history()
            await server.faults.accept()

            await queue.pop(process)  # the objects of the new list ...
            while len(queue):  # ... and the deletions that the queue derived from it
                await queue.pop(process)
        finally:
            reflecting.cancel()
            await asyncio.wait({reflecting})
    return lines


async def main() -> None:
    """Lose a deletion without known objects, and find it with them."""
    bare, knowing = await asyncio.gather(
        live_through_a_disconnect(known_objects=None),
        live_through_a_disconnect(Store(deletion_handling_meta_namespace_key_func)),
    )
    print("Without known objects:", *bare, sep="\n  ")
    print("With known objects:", *knowing, sep="\n  ")


if __name__ == "__main__":
    asyncio.run(main())
