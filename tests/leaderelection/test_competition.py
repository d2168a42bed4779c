"""Under random faults, two candidates never lead at once; after the faults, one leads."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._core.tasks import finish
from aioinformer.testing import Simulation, simulate

from .world import Candidate, never_two, spec


async def compete(world: Simulation) -> None:
    candidates = [Candidate(world, name) for name in ("one", "two", "three")]
    never_two(world, candidates)
    tasks = []
    for candidate in candidates:
        candidate.cleanup = world.random.choice([0.0, 1.0, 4.0])
        seconds = world.random.choice([1e9, 20.0, 90.0])
        tasks.append(asyncio.create_task(candidate.campaign(seconds)))
    storm = asyncio.create_task(world.storm(600))
    while not storm.done():
        await asyncio.sleep(world.random.expovariate(1 / 15))
        one = world.random.choice(candidates)
        if world.happens("partition", f"changes the link of {one.name}"):
            one.link.there, one.link.back = (world.random.random() < 0.8 for _ in range(2))
            one.link.seconds = world.random.choice([0.0, 0.0, 0.3, 2.0])
            one.link.seconds_back = world.random.choice([0.0, 0.0, 0.3, 2.0, 4.5])
        number = world.random.randrange(len(tasks))
        if world.random.random() < 0.1 and world.happens("other", f"restarts {candidates[number].name}"):
            await finish(tasks[number])
            tasks[number] = asyncio.create_task(candidates[number].campaign())
    await storm
    for candidate in candidates:
        candidate.link.there, candidate.link.back, candidate.link.seconds = True, True, 0.0
        candidate.link.seconds_back = 0.0
    await world.eventually(lambda: any(candidate.leads for candidate in candidates), within=60)
    assert spec(world)["holderIdentity"] in {candidate.name for candidate in candidates if candidate.leads}
    await finish(*tasks)


@pytest.mark.parametrize("seed", range(12))
def test_two_candidates_never_lead_at_once(seed: int) -> None:
    simulate(compete, seed=seed)
