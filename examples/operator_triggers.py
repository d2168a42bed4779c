"""Other triggers of reconciles: related objects, by a map function, and requests from anywhere.

ConfigMaps are reconciled, when Secrets that name them change, and when a timer says so.

    python examples/operator_triggers.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aioinformer import Client, KubeObject
from aioinformer.operator import Change, Controller, LabelsMatch, Manager, Request, Watch
from aioinformer.testing import APIServer


def map_of(secret: KubeObject) -> Request[KubeObject]:
    """Return the ConfigMap that a Secret is for; a map function may be async, and return several requests or None."""
    return Request(secret.namespace, secret.metadata.labels["for"])


async def every(
    seconds: float, request: Request[KubeObject], begin: asyncio.Event
) -> AsyncIterator[Request[KubeObject]]:
    """Yield requests; a source is any async iterator of requests, for instance from a queue or a webhook."""
    await begin.wait()
    while True:
        await asyncio.sleep(seconds)
        yield request


def not_ours(change: Change[KubeObject]) -> bool:
    """Return whether a change counts; combine predicates with & | ~."""
    return change.obj is not None and not change.obj.name.startswith("kube-")


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        seen: asyncio.Queue[str] = asyncio.Queue()
        timer = asyncio.Event()

        async def reconcile(request: Request[KubeObject]) -> None:
            await seen.put(request.key)

        manager = Manager(client)
        controller = manager.add(
            Controller(
                "maps",
                reconcile,
                manager.for_resource("v1", "configmaps"),
                predicate=not_ours,
                watches=[Watch(manager.for_resource("v1", "secrets"), map_of, LabelsMatch("for"))],
                sources=[lambda: every(0.3, Request("default", "timed"), timer)],
            )
        )
        server.create("v1", "configmaps", {"metadata": {"name": "kube-root-ca.crt"}})
        server.create("v1", "configmaps", {"metadata": {"name": "settings"}})
        async with manager:
            print("of the first list:", await seen.get())
            server.create("v1", "secrets", {"metadata": {"name": "unrelated"}})
            server.create("v1", "secrets", {"metadata": {"name": "key", "labels": {"for": "settings"}}})
            print("by its secret:", await seen.get())
            timer.set()
            print("by the timer:", await seen.get())
            for trigger in controller.state.triggers:
                print(trigger.name, "passed", trigger.passed, "of", trigger.seen)


if __name__ == "__main__":
    asyncio.run(main())
