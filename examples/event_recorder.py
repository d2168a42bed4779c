"""Events, which `kubectl describe` shows. Recording never waits; repeated events become a series.

python examples/event_recorder.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, EventRecorder, EventRecorderState, KubeObject, Resource
from aioinformer.events import EventType
from aioinformer.testing import APIServer


def record_mount(events: EventRecorder, cave: KubeObject, error: str) -> None:
    """Record how mounting went; equal events are one series."""
    type: EventType = "Warning" if error else "Normal"
    events.event(cave, type, "MountFailed" if error else "Mounted", error or "at /cave", action="Mount")


def count_lost(state: EventRecorderState) -> str:
    """Return how many events were dropped."""
    return f"dropped {state.dropped} of {state.recorded}, {state.over_budget} of them over the budget"


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        cave = await Resource(client, "v1", "configmaps").create(
            {"metadata": {"name": "cave", "namespace": "default"}}
        )
        async with EventRecorder(client, "example.com/cave-controller", burst=5) as events:
            events.event(cave, "Normal", "Provisioned", "10 Gi on disk-7", action="Provision")
            for _ in range(20):
                record_mount(events, cave, "timed out")
            for number in range(20):
                events.event(cave, "Normal", f"Noise{number}", "one of many")
        # Leaving has sent the waiting events.
        for event in server.list("events.k8s.io/v1", "events"):
            if not event["reason"].startswith("Noise"):
                print(event["type"], event["reason"], event["note"], event.get("series", {}).get("count", 1))
        print(count_lost(events.state))


if __name__ == "__main__":
    asyncio.run(main())
