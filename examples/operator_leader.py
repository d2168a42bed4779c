"""Two replicas of an operator: one works, the other stands by with a filled cache.

python examples/operator_leader.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, KubeObject
from aioinformer.leaderelection import LeaderElector
from aioinformer.operator import Controller, LeaderElection, Manager, Request
from aioinformer.testing import APIServer, eventually


def replica(name: str, client: Client, election: LeaderElection) -> Manager:
    """Return one replica."""
    manager = Manager(client, leader_election=election)

    async def reconcile(request: Request[KubeObject]) -> None:
        print(name, "reconciles", request.key)

    manager.add(Controller("maps", reconcile, manager.for_resource("v1", "configmaps")))
    return manager


async def main() -> None:
    """Run both on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        one, two = [
            replica(name, client, LeaderElector(client, "maps-operator", "default", name, retry_period=0.1))
            for name in ("one", "two")
        ]
        async with two:
            async with one:
                await eventually(lambda: one.state.leading or two.state.leading)
                await eventually(lambda: one.ready() and two.ready())
                print(
                    "both ready; leading:",
                    [bool(elector.state.leading) for elector in (one, two)].count(True),
                )
            await eventually(lambda: two.state.leading)  # at once, because the lease was released
            server.create("v1", "configmaps", {"metadata": {"name": "settings"}})
            await eventually(lambda: two.state.controllers[0].reconciles)


if __name__ == "__main__":
    asyncio.run(main())
