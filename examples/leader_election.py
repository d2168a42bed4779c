"""Leader election: of several processes one works, and another takes over when it stops.

Here they are three tasks; each has a client of its own, as three processes would.

    python examples/leader_election.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, LeaderElector, LeaderElectorState
from aioinformer.errors import LeadershipLostError
from aioinformer.testing import APIServer


def tell(state: LeaderElectorState) -> None:
    """Who leads, as one of them sees it."""
    if state.is_leader:
        print("leader number", state.transitions)


async def candidate(url: str, name: str, leading: asyncio.Queue[str]) -> None:
    """Stand for election again and again."""
    async with Client.from_url(url) as client:
        elector = LeaderElector(
            client, "example", "default", name, lease_duration=3.0, renew_deadline=2.0, retry_period=0.2
        )
        while True:
            try:
                async with elector:
                    tell(elector.state)
                    leading.put_nowait(name)
                    await asyncio.sleep(3600)  # your work; it is cancelled before another one can lead
            except LeadershipLostError as error:
                print(error)


async def main() -> None:
    """Let each lead once."""
    async with APIServer() as server:
        leading: asyncio.Queue[str] = asyncio.Queue()
        tasks = {name: asyncio.create_task(candidate(server.url, name, leading)) for name in ("a", "b", "c")}
        led = []
        while tasks:
            leader = await leading.get()
            led.append(leader)
            lease = server.get("coordination.k8s.io/v1", "leases", "example")
            assert lease["spec"]["holderIdentity"] == leader
            task = tasks.pop(leader)
            task.cancel()  # as when its process is asked to end: it gives the lease back
            await asyncio.wait([task])
        print("everybody has led:", sorted(led))


if __name__ == "__main__":
    asyncio.run(main())
