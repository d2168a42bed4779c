"""LeaderElector: when a leadership begins, and how leaderships are told apart."""

from __future__ import annotations

from aioinformer import LeaderElector
from aioinformer.testing import Simulation

from .world import simulated, spec


@simulated
async def test_who_stood_still_after_asking_does_not_begin_to_lead(world: Simulation) -> None:
    """Nobody knows whose the Lease is by then: it asks anew."""

    def stand_still(leader: str) -> None:
        told.append(leader)
        if len(told) == 1:
            world._loop.work(60)

    told: list[str] = []
    elector = LeaderElector(world.client, "operator", "default", "one", on_new_leader=stand_still)
    async with elector:
        assert elector.is_leader
        elector.require_leadership()
        assert spec(world)["leaseTransitions"] == 0
    assert told == ["one"]


@simulated
async def test_whose_lease_was_taken_while_it_stood_still_waits_for_it(world: Simulation) -> None:
    def stand_still(leader: str) -> None:
        told.append(leader)
        if len(told) == 1:
            taken = {"spec": {"holderIdentity": "two", "leaseTransitions": 1}}
            world.server.patch("coordination.k8s.io/v1", "leases", "operator", taken)
            world._loop.work(60)

    told: list[str] = []
    elector = LeaderElector(world.client, "operator", "default", "one", on_new_leader=stand_still)
    began = world.now
    async with elector:
        assert world.now - began > 60 + 15
        assert (told, elector.state.transitions) == (["one", "two", "one"], 2)
