"""Leader election: one of several processes works, and another one takes over when it stops.

Here they are three tasks, each with its own client, as three processes would have.

    python examples/leader_election.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, LeaderElector, LeaderElectorState
from aioinformer.errors import LeadershipLostError
from aioinformer.testing import APIServer


def tell(state: LeaderElectorState) -> None:
    """Print the leader that one candidate sees."""
    if state.is_leader:
        print("leader number", state.transitions)


async def candidate(url: str, name: str, leading: asyncio.Queue[str]) -> None:
    """Compete for the leadership again and again."""
    async with Client.from_url(url) as client:
        elector = LeaderElector(
            client, "example", "default", name, lease_duration=3.0, renew_deadline=2.0, retry_period=0.2
        )
        while True:
            try:
                async with elector:
                    tell(elector.state)
                    leading.put_nowait(name)
                    await asyncio.sleep(3600)  # your work; it is cancelled before another candidate can lead
            except LeadershipLostError as error:
                print(error)


async def main() -> None:
    """Let each candidate lead once."""
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
            task.cancel()  # as when its process ends: it releases the lease
            await asyncio.wait([task])
        print("everybody has led:", sorted(led))


if __name__ == "__main__":
    asyncio.run(main())
