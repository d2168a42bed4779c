"""Blocking code in a thread, which cannot be cancelled: the reconcile and the leadership end after the thread.

python examples/operator_threads.py
"""

from __future__ import annotations

import asyncio
import time

from aioinformer import Client, KubeObject
from aioinformer.leaderelection import LeaderElector
from aioinformer.operator import Controller, Manager, Request, in_thread
from aioinformer.testing import APIServer, eventually


class Uploads:
    """A reconciler that uploads objects with a blocking library."""

    def __init__(self, elector: LeaderElector) -> None:
        self.elector = elector
        self.sent: list[str] = []

    def upload(self, key: str) -> None:
        """Upload one object in parts; stop between parts if another replica may lead."""
        for part in range(3):
            self.elector.require_leadership()  # in any thread
            self.sent.append(f"{key}/{part}")
            time.sleep(0.1)

    async def reconcile(self, request: Request[KubeObject]) -> None:
        """Reconcile an object."""
        await in_thread(self.upload, request.key)  # asyncio.to_thread ends before its thread


async def main() -> None:
    """Stop in the middle of an upload, on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "photos"}})
        elector = LeaderElector(client, "uploads", "default")
        uploads = Uploads(elector)
        manager = Manager(client, leader_election=elector, grace_period=0)
        manager.add(Controller("uploads", uploads.reconcile, manager.for_resource("v1", "configmaps")))
        async with manager:
            await eventually(lambda: uploads.sent)
        print("ended with", len(uploads.sent), "of 3 parts sent")
        lease = server.get("coordination.k8s.io/v1", "leases", "uploads")
        print("given back:", lease["spec"]["holderIdentity"] == "")


if __name__ == "__main__":
    asyncio.run(main())
