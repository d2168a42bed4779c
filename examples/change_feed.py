"""A feed of changes: two subscribers of one informer, one of which goes and resumes after what it has seen.

python examples/change_feed.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, KubeObject, SharedInformerFactory
from aioinformer.testing import APIServer
from aioinformer.web import ChangeFeed, FeedEvent, Subscription


def line(event: FeedEvent[KubeObject]) -> str:
    """Return an event as a line."""
    team = "" if event.object is None else f" of team {event.object['data']['team']}"
    return f"{event.type} {event.key}{team}"


async def show(name: str, subscription: Subscription[KubeObject], last: str) -> str:
    """Print events up to one that begins with a text; return the id to resume after."""
    async for event in subscription:
        print(f"{name}: {line(event)}")
        if line(event).startswith(last):
            break
    return subscription.id


async def main() -> None:
    """Follow all objects, and those of one team."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}, "data": {"team": "red"}})
        async with SharedInformerFactory(client) as factory:
            maps = factory.for_resource("v1", "configmaps")
            async with ChangeFeed(maps, history=100) as feed:
                everything = feed.subscribe()
                last = await show("red", feed.subscribe(field_selector="data.team=red"), "SYNCED")

                server.patch("v1", "configmaps", "a", {"data": {"team": "blue"}})
                server.create("v1", "configmaps", {"metadata": {"name": "b"}, "data": {"team": "red"}})
                await show("all", everything, "ADDED default/b")

                print("red resumes")
                await show("red", feed.subscribe(last, field_selector="data.team=red"), "ADDED default/b")


if __name__ == "__main__":
    asyncio.run(main())
