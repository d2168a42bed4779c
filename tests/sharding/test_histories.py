"""Seeded histories of replicas that share the work, and bugs in the hand-over that they find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from aioinformer import Client, Resource, TransportError
from aioinformer.client.transport import ByteStream, Query
from aioinformer.errors import LeadershipLostError
from aioinformer.sharding import leases
from aioinformer.sharding.members import Members
from aioinformer.sharding.sharding import Sharding
from aioinformer.sharding.share import Share
from aioinformer.testing import Simulation, simulate

from .world import SLOTS, ReadingLink, Referee, Replica, Settled, live_through

HISTORIES = 40
"""Histories of each run; ``make replicas`` runs 5,000."""

MOST = 120
"""Histories after which a bug counts as missed."""


@pytest.mark.parametrize("first", range(0, HISTORIES, 10))
def test_no_key_is_in_two_hands_and_no_slot_waits_too_long(first: int) -> None:
    for seed in range(first, first + 10):
        simulate(live_through, seed=seed)


def test_no_slot_moves_between_replicas_that_start_together() -> None:
    async def scenario(world: Simulation) -> None:
        gained: list[int] = []

        def record(slots: Collection[int]) -> None:
            gained.extend(slots)

        referee = Referee(world)
        for number in range(8):
            replica = Replica(world, referee, f"replica-{number}", Random(number))
            replica.sharding.share.on_gain.append(record)
            referee.replicas.append(replica)
        await world.eventually(Settled(referee), within=20.0, what="all slots are shared evenly")
        assert sorted(gained) == list(range(SLOTS))
        for replica in referee.replicas:
            await replica.end()

    simulate(scenario, seed=1)


class ListlessLink(ReadingLink):
    """A link that answers no list while ``fails``."""

    fails = False

    async def stream(self, path: str, query: Query = (), **options: Any) -> ByteStream:
        if self.fails:
            raise TransportError("no lists")
        return await super().stream(path, query, **options)


def test_cancellation_that_arrives_while_slots_are_lost_is_not_lost() -> None:
    async def scenario(world: Simulation) -> None:
        link = ListlessLink(world.new_client().transport)
        sharding = Sharding(Client(link), "demo", "default")
        cleaning = asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.sleep(3600.0)
            finally:
                cleaning.set()
                await asyncio.sleep(1.0)

        async def live() -> None:
            while True:
                with suppress(LeadershipLostError):
                    await sharding.run(work)

        task = asyncio.create_task(live())
        await world.eventually(lambda: sharding.state.owned, within=20.0)
        link.fails = True
        await cleaning.wait()
        task.cancel()
        await asyncio.wait((task,), timeout=120.0)
        assert task.cancelled()

    simulate(scenario, seed=1)


def _trust_half_a_lease(patch: pytest.MonkeyPatch) -> None:
    def expires_at(self: Members, identity: str) -> float:
        return original(self, identity) - 9.0

    original = Members.expires_at
    patch.setattr(Members, "expires_at", expires_at)


def _give_back_before_work_has_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Share, "is_busy", lambda self, slot: False)


def _begin_work_in_leaving_slots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Share, "owns", lambda self, slot: slot in self.slots and self.may_work())


def _work_without_a_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Share, "owns", lambda self, slot: slot in self.slots and slot not in self.leaving)


def _write_over_others(patch: pytest.MonkeyPatch) -> None:
    async def update(self: Resource[Any], obj: Any, **options: Any) -> Any:
        metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
        return await original(self, {**obj, "metadata": metadata}, **options)

    original = Resource.update
    patch.setattr(leases, "Resource", type("Overwriting", (Resource,), {"update": update}))


def _cancel_nothing(patch: pytest.MonkeyPatch) -> None:
    async def drain(self: Sharding, slot: int) -> None:
        """Wait for nothing, and never look again."""

    patch.setattr(Sharding, "_drain", drain)
    patch.setattr(Share, "is_busy", lambda self, slot: True)


def _keep_an_identity(patch: pytest.MonkeyPatch) -> None:
    def new_elector(self: Sharding) -> Any:
        elector = original(self)
        self._identity = identity = identities.setdefault(self, self._identity)
        elector._lock._metadata["name"] = identity
        return elector

    original = Sharding._new_elector
    identities: dict[Sharding, str] = {}
    patch.setattr(Sharding, "_new_elector", new_elector)


def _count_silent_members(patch: pytest.MonkeyPatch) -> None:
    from aioinformer.sharding import assignment, sharding

    def assign(slots: int, owners: Any, members: Any) -> Any:
        return original(slots, owners, {*members, "silent"})

    original = assignment.assign
    patch.setattr(sharding, "assign", assign)


@pytest.mark.parametrize(
    "plant",
    [
        _trust_half_a_lease,
        _give_back_before_work_has_ended,
        _begin_work_in_leaving_slots,
        _work_without_a_lease,
        _write_over_others,
        _cancel_nothing,
        _keep_an_identity,
        _count_silent_members,
    ],
    ids=lambda plant: plant.__name__.strip("_"),
)
def test_histories_find_bug_in_the_hand_over(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        for seed in range(MOST):
            _run(seed)


def _run(seed: int) -> None:
    async def scenario(world: Simulation) -> None:
        await live_through(world)

    simulate(scenario, seed=seed, shrink=False)
