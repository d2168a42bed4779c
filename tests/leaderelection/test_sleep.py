"""LeaderElector on a machine that sleeps: the event loop's clock stops, and other candidates may lead."""

from __future__ import annotations

import asyncio
import time

import pytest

from aioinformer import Client, LeaderElector
from aioinformer._core.tasks import finish
from aioinformer.errors import LeadershipLostError
from aioinformer.testing import APIServer, Simulation
from tests.virtual_time import simulate_scenario

from .world import Candidate, spec


@simulate_scenario
async def test_leader_does_not_lead_after_a_long_sleep(world: Simulation) -> None:
    slept = 0.0
    one = Candidate(world, "one", asleep=lambda: 1000.0 + slept)
    task = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, every=0.1)
    await asyncio.sleep(60)
    one.elector.require_leadership()
    slept = 60.0
    assert not one.elector.is_leader
    assert one.elector.state.renewed_seconds == pytest.approx(61, abs=1)
    with pytest.raises(LeadershipLostError):
        one.elector.require_leadership()
    woke = world.now
    await world.eventually(lambda: bool(one.lost), every=0.1)
    ((at, error),) = one.lost
    assert at - woke <= 2.0
    assert "could not be renewed for 10 s, as the machine slept for 60 s" in str(error)
    await world.eventually(lambda: one.leads, every=0.1)  # it still holds the lease
    one.elector.require_leadership()
    await finish(task)


@simulate_scenario
async def test_short_sleep_shortens_the_remaining_time(world: Simulation) -> None:
    slept = 0.0
    one = Candidate(world, "one", asleep=lambda: slept)
    task = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, every=0.1)
    one.link.there = False
    cut = world.now
    slept = 5.0
    await world.eventually(lambda: bool(one.lost), every=0.1)
    assert 3.0 <= one.lost[0][0] - cut <= 5.0
    await finish(task)


@simulate_scenario
async def test_leader_that_slept_finds_the_new_leader(world: Simulation) -> None:
    slept = 0.0
    one, two = Candidate(world, "one", asleep=lambda: slept), Candidate(world, "two")
    tasks = [asyncio.create_task(one.campaign())]
    await world.eventually(lambda: one.leads, every=0.1)
    taken = {"spec": {"holderIdentity": "two", "leaseTransitions": 1}}
    world.server.patch("coordination.k8s.io/v1", "leases", "operator", taken)
    slept = 60.0
    with pytest.raises(LeadershipLostError):
        one.elector.require_leadership()
    tasks.append(asyncio.create_task(two.campaign()))
    await world.eventually(lambda: two.leads and not one.leads, every=0.1)
    assert spec(world)["holderIdentity"] == "two"
    for task in tasks:
        await finish(task)


@pytest.mark.parametrize("clock", ["boottime", "wall"])
async def test_sleep_is_measured_by_the_machines_clocks(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gettime, wall, slept = time.clock_gettime, time.time, 0.0
    if clock == "wall":
        monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
        monkeypatch.setattr(time, "time", lambda: wall() + slept)
    elif not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this machine has no CLOCK_BOOTTIME")
    else:
        boottime = time.CLOCK_BOOTTIME
        monkeypatch.setattr(time, "clock_gettime", lambda which: gettime(which) + slept * (which == boottime))
    async with APIServer() as server, Client.from_url(server.url) as client:
        elector = LeaderElector(client, "operator", "default")
        with pytest.raises(LeadershipLostError, match="the machine slept for 3600 s"):
            async with elector:
                elector.require_leadership()
                slept = 3600.0
                assert not elector.is_leader
                await asyncio.sleep(10)
