"""Events: what `kubectl describe` shows of an object. Recording never waits; what repeats is a series.

python examples/event_recorder.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, EventRecorder, Resource
from aioinformer.testing import APIServer


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        cave = await Resource(client, "v1", "configmaps").create(
            {"metadata": {"name": "cave", "namespace": "default"}}
        )
        async with EventRecorder(client, "example.com/cave-controller", burst=5) as events:
            events.event(cave, "Normal", "Provisioned", "10 Gi on disk-7", action="Provision")
            for number in range(20):
                events.event(cave, "Warning", "MountFailed", f"try {number}: timed out", action="Mount")
            for number in range(20):
                events.event(cave, "Normal", f"Noise{number}", "nobody needs so many")
        # Left, it has sent what was waiting.
        for event in server.list("events.k8s.io/v1", "events"):
            if not event["reason"].startswith("Noise"):
                print(event["type"], event["reason"], event["note"], event.get("series", {}).get("count", 1))
        print("over the budget:", events.state.over_budget)


if __name__ == "__main__":
    asyncio.run(main())
