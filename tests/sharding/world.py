"""Replicas in a simulation: they join, leave, die, freeze and lose their network, and a referee watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from random import Random
from typing import Any

from aioinformer import Client
from aioinformer.client.transport import JSON, ByteStream, Query
from aioinformer.errors import LeadershipLostError
from aioinformer.sharding import Sharding
from aioinformer.sharding.slots import slot_of
from aioinformer.testing import Simulation
from aioinformer.testing.simulation.loop import PROCESS, VirtualTimeLoop

from ..leaderelection.world import Link

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD, MOVE_GRACE = 15.0, 10.0, 2.0, 3.0
SLOTS = 16
KEYS = [f"uid-{number}" for number in range(24)]

BOUND = LEASE_DURATION + 2 * RETRY_PERIOD + 4.0
"""Seconds without an owner, at most, after the last failure of a replica: one lease, the look that finds it expired,
the look of the replica that takes the slot, and the requests."""

REJOIN = RENEW_DEADLINE / 2 + 2.2 * RETRY_PERIOD + 1.0
"""Seconds until a replica takes part again after a failure: a request without an answer, the wait for the next try,
and that."""

REQUESTS = 4
"""Requests of the replica that takes a slot, on a slow link: it reads and writes, and again after a conflict."""


class ReadingLink(Link):
    """A Link for lists, too. Streams of a link that is cut have no answer."""

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        await self._pass(self.there, self.seconds)
        body = await self._transport.stream(path, query, idle_timeout=idle_timeout, accept=accept)
        try:
            await self._pass(self.back, self.seconds_back)
        except BaseException:
            await body.aclose()
            raise
        return body


class Replica:
    """A simulated process that works on the keys of its slots.

    Attributes:
        frozen_at: When it was frozen last; None if it never was.
        ailed_at: When it was frozen, cut off or slow last.
        well_since: Since when it is well and takes part.
    """

    def __init__(self, world: Simulation, referee: Referee, name: str, random: Random) -> None:
        self.world, self.referee, self.name, self._random = world, referee, name, random
        self.link = ReadingLink(world.new_client().transport)
        skew = random.uniform(-5.0, 5.0)
        self.sharding = Sharding(
            Client(self.link), "demo", "default", slots=SLOTS, random=random, asleep=lambda: 0.0,
            wall=lambda: 1_750_000_000.0 + world.now + skew, move_grace=MOVE_GRACE,
            lease_duration=LEASE_DURATION, renew_deadline=RENEW_DEADLINE, retry_period=RETRY_PERIOD,
        )  # fmt: skip
        self._busy: set[str] = set()
        self.frozen_at: float | None = None
        self.is_frozen = self.is_leaving = False
        self.well_since = self.ailed_at = world.now
        context = copy_context()
        context.run(PROCESS.set, name)
        self.task = asyncio.get_running_loop().create_task(self._live(), name=name, context=context)

    async def _live(self) -> None:
        while True:
            try:
                await self.sharding.run(self._work)
            except LeadershipLostError:
                self.world.note(self.name, "lost its slots")

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(self._work_on_keys())

    async def _work_on_keys(self) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0.05, 1.0))
            key = self._random.choice([key for key in KEYS if key not in self._busy])
            self._busy.add(key)
            task = asyncio.ensure_future(self._work_on(key, slot_of(key, SLOTS)))
            try:
                await asyncio.wait((task,))
            finally:
                if not task.done():
                    task.cancel()
                    while not task.done():
                        await asyncio.wait((task,))
                self._busy.discard(key)
            if not task.cancelled():
                task.result()

    async def _work_on(self, key: str, slot: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        claim = self.sharding.share.claim(slot, task.cancel)
        if claim is None:
            return
        try:
            self.referee.begin(self, key)
            try:
                for _ in range(self._random.randrange(1, 5)):
                    await asyncio.sleep(self._random.uniform(0.0, 2.0))
                    if not self.referee.step(self, key, slot):
                        return
            finally:
                # A clean-up that is shorter than lease_duration - renew_deadline.
                await asyncio.sleep(self._random.uniform(0.0, 1.0))
        finally:
            self.referee.end(self, key)
            claim.end()

    @property
    def is_ill(self) -> bool:
        """Whether it is frozen, cut off or slow."""
        return self.is_frozen or not (self.link.there and self.link.back) or bool(self.link.seconds)

    def freeze(self) -> None:
        """Let nothing of it run."""
        self.frozen_at, self.is_frozen = self.world.now, True
        _loop().freeze(self.name)

    def thaw(self) -> None:
        """Let it run again."""
        self.is_frozen = False
        self.well_since = self.world.now
        _loop().thaw(self.name)

    async def end(self) -> None:
        """Stop it and wait for its end."""
        self.is_leaving = True
        self.task.cancel()
        await asyncio.wait((self.task,))
        if not self.task.cancelled():
            self.task.result()


class Referee:
    """Checks that no key is worked on by two replicas at once, and that no slot stays without an owner."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._hands: dict[str, tuple[Replica, float]] = {}
        self._owned_at = dict.fromkeys(range(SLOTS), 0.0)
        self.failed_at = 0.0
        self.replicas: list[Replica] = []
        self.longest = 0.0
        self.faults: list[str] = []
        self.works = 0

    def begin(self, replica: Replica, key: str) -> None:
        """Record that a replica begins to work on a key."""
        other = self._hands.get(key)
        if other is not None:
            holder, since = other
            # Of a frozen process nothing is known until it runs again: then it must not go on.
            if holder.frozen_at is None or holder.frozen_at < since:
                self.faults.append(f"{key} is in the hands of {holder.name} and of {replica.name}")
        self._hands[key] = replica, self._world.now
        self.works += 1

    def step(self, replica: Replica, key: str, slot: int) -> bool:
        """Return whether a replica may go on. One that was frozen asks first, as users must before a write."""
        holder, since = self._hands.get(key, (None, 0.0))
        if holder is replica:
            was_frozen = replica.frozen_at is not None and replica.frozen_at >= since
            return not was_frozen or replica.sharding.share.owns(slot)
        if replica.frozen_at is None or replica.sharding.share.owns(slot):
            self.faults.append(f"{replica.name} goes on with {key}, which another replica has begun")
        return False

    def end(self, replica: Replica, key: str) -> None:
        """Record that a replica has ended its work on a key."""
        if self._hands.get(key, (None, 0.0))[0] is replica:
            del self._hands[key]

    def check_owners(self) -> None:
        """Check that each slot has at most one owner, and not none for too long."""
        assert not self.faults, self.faults
        now = self._world.now
        for replica in self.replicas:
            if replica.is_ill:
                replica.ailed_at = now
            rejoins = not replica.sharding.is_leader and now - replica.ailed_at <= REJOIN
            if replica.is_ill or rejoins:
                replica.well_since = now
        well = [r for r in self.replicas if not r.is_frozen and not r.is_leaving]
        slow = REQUESTS * max((r.link.seconds + r.link.seconds_back for r in well), default=0.0)
        for slot in range(SLOTS):
            owners = [replica.name for replica in well if replica.sharding.share.owns(slot)]
            assert len(owners) <= 1, f"slot {slot} is owned by {owners}"
            holds = any(
                slot in replica.sharding.share.slots and replica.sharding.is_leader for replica in well
            )
            if holds:
                self._owned_at[slot] = now
            well_since = min((replica.well_since for replica in well), default=now)
            waits = now - max(self._owned_at[slot], self.failed_at, well_since)
            self.longest = max(self.longest, waits - slow)
            assert waits - slow <= BOUND, f"slot {slot} has had no owner for {waits:.1f} s"


def _loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


async def live_through(
    world: Simulation, *, actions: int = 12, report: Callable[[Any], object] = bool
) -> None:
    """Let up to eight replicas live through random troubles, then check that they share all slots again."""
    random = world.random
    referee = Referee(world)
    gone: list[Replica] = []

    def join() -> None:
        name = f"replica-{len(referee.replicas) + len(gone)}"
        referee.replicas.append(Replica(world, referee, name, Random(random.getrandbits(32))))

    async def watch_owners() -> None:
        while True:
            await asyncio.sleep(0.25)
            referee.check_owners()

    async def trouble() -> None:
        kind = random.choice(("join", "join", "leave", "kill", "freeze", "partition", "slow", "outage"))
        well = [replica for replica in referee.replicas if not replica.is_ill]
        if kind == "join" and len(referee.replicas) < 8:
            if world.happens("world", "a replica joins"):
                join()
            return
        if not well:
            return
        replica = random.choice(well)
        seconds = random.uniform(1.0, 40.0)
        if not world.happens(replica.name, f"{kind} for {seconds:.1f} s"):
            return
        referee.failed_at = world.now
        if kind in ("leave", "kill"):
            if len(well) == 1:
                return
            referee.replicas.remove(replica)
            gone.append(replica)
            if kind == "kill":
                replica.freeze()
            else:
                await replica.end()
                referee.failed_at = world.now
        elif kind == "freeze":
            replica.freeze()
            await asyncio.sleep(seconds)
            replica.thaw()
            referee.failed_at = world.now
        elif kind == "partition":
            replica.link.there, replica.link.back = random.choice(((False, False), (True, False)))
            await asyncio.sleep(seconds)
            replica.link.there = replica.link.back = True
        elif kind == "slow":
            replica.link.seconds, replica.link.seconds_back = (
                random.uniform(0.2, 4.0),
                random.uniform(0.0, 0.9),
            )
            await asyncio.sleep(seconds)
            replica.link.seconds = replica.link.seconds_back = 0.0
        elif kind == "outage":
            for other in well:
                other.link.there = False
            await asyncio.sleep(seconds)
            for other in well:
                other.link.there = True
        referee.failed_at = world.now

    for _ in range(random.randrange(1, 5)):
        join()
    async with asyncio.TaskGroup() as troubles:
        watching = troubles.create_task(watch_owners())
        for _ in range(actions):
            await asyncio.sleep(random.uniform(0.0, 20.0))
            troubles.create_task(trouble())
        await asyncio.sleep(41.0)
        watching.cancel()
    referee.failed_at = world.now
    settled = Settled(referee)
    await world.eventually(settled, within=2 * BOUND + LEASE_DURATION, what="all slots are shared evenly")
    for replica in [*referee.replicas, *gone]:
        if replica.is_frozen:
            replica.thaw()
        if not replica.task.done():
            await replica.end()
    assert not referee.faults, referee.faults
    report(referee)


class Settled:
    """Whether the living replicas own all slots, each about as many."""

    def __init__(self, referee: Referee) -> None:
        self._referee = referee

    def __call__(self) -> bool:
        replicas = self._referee.replicas
        counts = [len(replica.sharding.share.slots) for replica in replicas if replica.sharding.is_leader]
        return len(counts) == len(replicas) and sum(counts) == SLOTS and max(counts) - min(counts) <= 1
