"""Seeded histories of an informer whose slots move while objects change and the server has trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Self

import pytest

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer, TransportError
from aioinformer._core.tasks import finish
from aioinformer.client.transport import JSON, ByteStream, Query
from aioinformer.operator import owner_reference
from aioinformer.sharding import Sharding
from aioinformer.sharding.reading import ShardedListWatch
from aioinformer.testing import Simulation, simulate

from .world import ReadingLink

SLOTS = 4
NAMES = [f"c{number}" for number in range(12)]

State = tuple[str, str]
"""The uid and the version of an object."""


class BrittleLink(ReadingLink):
    """A link whose lists may break off after some bytes.

    Attributes:
        bytes_left: The bytes until the next list breaks off; None for never.
    """

    bytes_left: int | None = None

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        body = await super().stream(path, query, idle_timeout=idle_timeout, accept=accept)
        if self.bytes_left is None or any(name == "watch" for name, _ in query):
            return body
        left, self.bytes_left = self.bytes_left, None
        return BrokenBody(body, left)


class BrokenBody:
    """A ByteStream that breaks off after some bytes."""

    def __init__(self, body: ByteStream, bytes_left: int) -> None:
        self._body, self._left = body, bytes_left

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._left <= 0:
            raise TransportError("the answer broke off")
        chunk = await anext(self._body)
        self._left -= len(chunk)
        return chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class ReadingHistory:
    """One history: what a handler knows must equal what the server has in the slots of the replica."""

    def __init__(self, world: Simulation, shard_by: Any) -> None:
        self.world, self.random = world, world.random
        self.sharding = Sharding(world.client, "demo", "default", slots=SLOTS, random=Random(world.seed))
        self._link = BrittleLink(world.client.transport)
        list_watch = ListWatch.for_resource(Client(self._link), "v1", "configmaps", "default")
        reader = self.sharding.read(list_watch, shard_by)
        assert isinstance(reader, ShardedListWatch)
        self.reader = reader
        self.informer = SharedIndexInformer(
            self.reader,
            KubeObject,
            random=Random(f"{world.seed} informer"),
            page_size=world.random.choice((0, 3)),
        )
        self._text = self.random.randbytes(
            self.random.choice((1, 80_000))
        ).hex()  # large lists come in pieces
        owners = [{"metadata": {"name": f"owner{number}"}} for number in range(8)]
        self._owners = [world.server.create("v1", "secrets", owner) for owner in owners]
        self.known: dict[str, State] = {}
        self.informer.add_event_handler(
            on_add=lambda obj, first: self._record(obj),
            on_update=lambda old, new: self._record(new),
            on_delete_object=lambda obj: self.known.pop(obj.key),
        )

    def _record(self, obj: KubeObject) -> None:
        self.known[obj.key] = obj.uid, obj.resource_version

    async def run(self) -> None:
        """Live through a storm; afterwards everything must be equal."""
        for _ in range(10):
            self._write()
        self._move()
        async with self.informer:
            others = [
                asyncio.create_task(self._repeat(self._write)),
                asyncio.create_task(self._repeat(self._move)),
            ]
            try:
                await self.world.storm(240.0, every=self.random.choice((4.0, 15.0)))
            finally:
                await finish(*others)
            await self.world.eventually(self.is_equal, 900, "cache, handler and server are equal")
            self._move()
            await self.world.eventually(
                self.is_equal, 900, "cache, handler and server are equal after a move"
            )

    async def _repeat(self, act: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(1.0) * self.random.choice((0.01, 0.3, 10.0)))
            act()

    def wanted(self) -> dict[str, State]:
        """Return what the server has in the slots of this replica."""
        objects = map(KubeObject.from_dict, self.world.server.list("v1", "configmaps", "default"))
        return {
            obj.key: (obj.uid, obj.resource_version)
            for obj in objects
            if self.reader.placement.slot_for(obj) in self.sharding.share.slots
        }

    def is_equal(self) -> bool:
        """Return whether cache, handler and placement equal the server."""
        wanted = self.wanted()
        cached = {obj.key: (obj.uid, obj.resource_version) for obj in self.informer.store.list()}
        return wanted == cached == self.known and sum(self.reader.placement.counts().values()) == len(wanted)

    def _move(self) -> None:
        slots = {slot for slot in range(SLOTS) if self.random.random() < 0.5}
        if self.world.happens("replica", f"owns {sorted(slots)}"):
            if self.random.random() < 0.3:  # the list of the slots that come breaks off
                self._link.bytes_left = self.random.randrange(600_000)
            self.sharding.share.change(slots)

    def _write(self) -> None:
        """Create, change or delete an object; a name comes back with another uid, and so in another slot."""
        random, server = self.random, self.world.server
        name, owner = random.choice(NAMES), random.choice(self._owners)
        there = {obj["metadata"]["name"]: obj for obj in server.list("v1", "configmaps", "default")}
        acts = ["change", "change", "own", "delete", "replace"] if name in there else ["create"]
        act = random.choice(acts)
        if not self.world.happens("writer", f"{act} {name}"):
            return
        new = {
            "metadata": {"name": name, "ownerReferences": [owner_reference(owner)]},
            "data": {"at": f"{self.world.now} {self._text}"},
        }
        if act in ("delete", "replace"):
            server.delete("v1", "configmaps", name, "default")
        if act in ("create", "replace"):
            server.create("v1", "configmaps", new, "default")
        elif act == "own":
            server.update("v1", "configmaps", new, "default")
        elif act == "change":
            old = there[name]
            server.update("v1", "configmaps", {**old, "data": new["data"]}, "default")


async def live(world: Simulation) -> None:
    await ReadingHistory(world, ("uid", "owner")[world.seed // 2 % 2]).run()


HISTORIES = 40
"""Histories of each run; pass another range to look further."""


def read_through(seed: int) -> None:
    """Run the history of a seed. Odd seeds have a server that selects."""
    simulate(live, seed=seed, shards=bool(seed % 2))


@pytest.mark.parametrize("first", range(0, HISTORIES, 10))
def test_cache_equals_the_share_after_moves_and_trouble(first: int) -> None:
    for seed in range(first, first + 10):
        read_through(seed)
