"""LeaderElector: when a leadership starts, and how leaderships are distinguished."""

from __future__ import annotations

import asyncio
import re

import pytest

from aioinformer import LeaderElector
from aioinformer._core.tasks import finish
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .world import LEASE, Candidate, spec


@simulate_scenario
async def test_blocked_candidate_does_not_lead_by_a_stale_answer(world: Simulation) -> None:
    """The holder may have changed by then: the candidate asks again."""

    def stand_still(leader: str) -> None:
        leaders.append(leader)
        if len(leaders) == 1:
            world._loop.work(60)

    leaders: list[str] = []
    elector = LeaderElector(world.client, "operator", "default", "one", on_new_leader=stand_still)
    async with elector:
        assert elector.is_leader
        elector.require_leadership()
        assert spec(world)["leaseTransitions"] == 0
    assert leaders == ["one"]


@simulate_scenario
async def test_candidate_waits_after_its_lease_was_taken_while_it_was_blocked(world: Simulation) -> None:
    def stand_still(leader: str) -> None:
        leaders.append(leader)
        if len(leaders) == 1:
            taken = {"spec": {"holderIdentity": "two", "leaseTransitions": 1}}
            world.server.patch("coordination.k8s.io/v1", "leases", "operator", taken)
            world._loop.work(60)

    leaders: list[str] = []
    elector = LeaderElector(world.client, "operator", "default", "one", on_new_leader=stand_still)
    began = world.now
    async with elector:
        assert world.now - began > 60 + 15
        assert (leaders, elector.state.transitions) == (["one", "two", "one"], 2)


@simulate_scenario
async def test_transitions_increase_while_the_lease_exists(world: Simulation) -> None:
    """A candidate that had not seen the Lease before it was deleted or emptied restarts the count."""

    async def lead(name: str, *, release: bool = True) -> int:
        async with Candidate(world, name, release=release).elector as elector:
            return elector.state.transitions

    assert [await lead(name) for name in "abc"] == [0, 1, 2]
    assert await lead("d", release=False) == 3
    assert await lead("d") == 3
    world.server.patch("coordination.k8s.io/v1", "leases", "operator", {"spec": None})
    assert [await lead(name) for name in "ef"] == [1, 2]
    world.server.delete(*LEASE)
    assert await lead("g") == 0


@simulate_scenario
async def test_renewed_seconds_are_kept_after_the_leadership(world: Simulation) -> None:
    """Also while it waits for the Lease again."""
    one, two = Candidate(world, "one").elector, Candidate(world, "two").elector
    assert one.state.renewed_seconds is None
    async with one:
        pass
    async with two:
        waiting = asyncio.create_task(one.run(lambda: asyncio.sleep(1)))
        await asyncio.sleep(60)
        assert one.state.renewed_seconds == pytest.approx(60, abs=1)
        assert not one.is_leader
    await waiting


@simulate_scenario
async def test_refusal_of_another_verb_is_a_warning(world: Simulation) -> None:
    """A permission that was just granted shows which one is missing next."""
    one = Candidate(world, "one")
    task = asyncio.create_task(one.campaign())
    refused = [world.server.forbid(verb, "leases") for verb in ("get", "create")]
    for verb in refused:
        await asyncio.sleep(60)
        verb.remove()
    await world.eventually(lambda: one.leads, within=5, every=0.1)
    await finish(task)
    warnings = [str(entry) for entry in world.history if " WARNING " in str(entry)]
    assert [re.findall(r"cannot (\w+) resource", warning) for warning in warnings] == [["get"], ["create"]]
