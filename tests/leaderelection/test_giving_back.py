"""LeaderElector: leaving gives the Lease back where possible."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import LeaderElector, TransportError
from aioinformer._core.tasks import finish
from aioinformer.errors import LeadershipLostError
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .world import Candidate, spec, verbs


@simulate_scenario
async def test_lease_is_given_back_and_the_next_candidate_leads_at_once_c90(world: Simulation) -> None:
    one, two = Candidate(world, "one"), Candidate(world, "two")
    async with one.elector:
        waiting = asyncio.create_task(two.campaign())
        await asyncio.sleep(60)
        assert not two.leads
        before = spec(world)
    said = spec(world)
    assert (said["holderIdentity"], said["leaseDurationSeconds"], said["leaseTransitions"]) == ("", 1, 0)
    left = world.now
    await world.eventually(lambda: two.leads, within=4.5, every=0.1)
    said = spec(world)
    assert (said["holderIdentity"], said["leaseTransitions"]) == ("two", 1)
    assert said["acquireTime"] > before["renewTime"]
    assert world.now - left < 4.5
    assert two.leaders == ["one", "two"]
    await finish(waiting)


@simulate_scenario
async def test_giving_back_continues_after_a_conflict_c90(world: Simulation) -> None:
    one = Candidate(world, "one")
    async with one.elector:
        failing = world.server.faults.fail(409, verb="update", resource="leases", times=3)
    assert spec(world)["holderIdentity"] == ""
    failing.remove()


@simulate_scenario
async def test_lease_expires_without_release(world: Simulation) -> None:
    one, two = Candidate(world, "one", release=False), Candidate(world, "two")
    async with one.elector:
        waiting = asyncio.create_task(two.campaign())
        await asyncio.sleep(30)
    left = world.now
    assert spec(world)["holderIdentity"] == "one"
    await world.eventually(lambda: two.leads, within=30, every=0.1)
    assert 13 <= world.now - left <= 15 + 2 * 4.5
    assert spec(world)["leaseTransitions"] == 1
    await finish(waiting)


@simulate_scenario
async def test_lease_expires_once_after_let_expire(world: Simulation) -> None:
    one = Candidate(world, "one")
    async with one.elector:
        one.elector.let_expire("a thread")
    assert spec(world)["holderIdentity"] == "one"
    (warning,) = [str(entry) for entry in world.history if " WARNING " in str(entry)]
    assert warning.endswith(
        "the lease is not released and has to expire, since this work still runs: a thread"
    )
    async with one.elector:
        pass
    assert spec(world)["holderIdentity"] == ""


@simulate_scenario
async def test_work_that_ended_in_time_is_not_logged_as_late(world: Simulation) -> None:
    """Even if the renewing task ends late, since a request swallows its cancellation."""
    one = Candidate(world, "one")

    async def hang(*args: Any, **kwargs: Any) -> bytes:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1e9)
        await asyncio.sleep(20)
        raise TransportError("cut")

    task = asyncio.create_task(one.elector.run(one.lead))
    await world.eventually(lambda: one.leads, every=0.1)
    one.link.send = hang  # type: ignore[method-assign]
    with pytest.raises(LeadershipLostError):
        await task
    ((began, ended),) = one.terms
    assert (ended - began < 12, world.now - began > 20) == (True, True)
    assert not any("after the lease" in str(entry) for entry in world.history)


@simulate_scenario
async def test_work_that_still_runs_is_logged_as_running(world: Simulation) -> None:
    """Including after a lost leadership."""
    one = Candidate(world, "one")

    async def work() -> None:
        try:
            await one.lead()
        finally:
            one.elector.let_expire("a thread")

    one.cleanup = 30
    leading = asyncio.create_task(one.elector.run(work))
    await world.eventually(lambda: one.leads, every=0.1)
    one.link.there = False
    with pytest.raises(LeadershipLostError):
        await leading
    assert any(
        "leadership still runs, 25.0 s after the lease has expired: a thread" in str(entry)
        for entry in world.history
    )


@simulate_scenario
async def test_failure_to_give_back_does_not_change_the_outcome(world: Simulation) -> None:
    client = world.new_client()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1), LeaderElector(client, "operator", "default", "one"):
            await client.close()
            await asyncio.sleep(1e9)


@simulate_scenario
async def test_giving_back_ends_without_an_answer(world: Simulation) -> None:
    one = Candidate(world, "one")
    async with one.elector:
        one.link.there = False
    (warning,) = [str(entry) for entry in world.history if " WARNING " in str(entry)]
    assert re.search("could not be released, it has to expire: .*no answer within 5 s", warning)


@simulate_scenario
async def test_request_that_swallows_its_cancellation_is_the_last(world: Simulation) -> None:
    one = Candidate(world, "one")
    send = one.link.send

    async def send_anyway(*args: Any, **kwargs: Any) -> bytes:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        return await send(*args, **kwargs)

    async def work() -> None:
        one.link.send = send_anyway  # type: ignore[method-assign]
        await asyncio.sleep(2.5)  # until it renews

    leading = asyncio.create_task(one.elector.run(work))
    await asyncio.wait({leading}, timeout=60)
    assert leading.done()
    assert spec(world)["holderIdentity"] == ""


@simulate_scenario
async def test_candidate_cancelled_during_a_request_leaves_no_lease(world: Simulation) -> None:
    """Only the answer is missing; the Lease may be held."""
    one = Candidate(world, "one")
    one.link.back = False
    original = one.link.get
    one.link.get = lambda *args, **kwargs: _get_anyway(one, original, *args, **kwargs)  # type: ignore[method-assign]
    task = asyncio.create_task(one.campaign())
    await world.eventually(lambda: "create" in verbs(world), every=0.01)
    await asyncio.sleep(0.5)
    assert spec(world)["holderIdentity"] == "one"
    one.link.back = True
    await finish(task)
    assert spec(world)["holderIdentity"] == ""


@simulate_scenario
async def test_candidate_that_lost_the_race_gives_nothing_back(world: Simulation) -> None:
    """It ends at once, even if the server does not answer."""
    candidates = [Candidate(world, name) for name in ("one", "two", "three")]
    tasks = {candidate: asyncio.create_task(candidate.campaign()) for candidate in candidates}
    await asyncio.sleep(60)
    assert verbs(world).count("create") == 3
    losers = [candidate for candidate in candidates if not candidate.leads]
    for loser in losers:
        loser.link.there = False
    began = world.now
    await finish(*(tasks.pop(loser) for loser in losers))
    assert world.now == began
    await finish(*tasks.values())


@simulate_scenario
async def test_second_cancellation_still_gives_the_lease_back(world: Simulation) -> None:
    """At any step of leaving."""
    for step in range(20):
        one = Candidate(world, "one")
        task = asyncio.create_task(one.campaign())
        await world.eventually(lambda one=one: one.leads, within=20, every=0.1)  # type: ignore[misc]
        await asyncio.sleep(2 + world.random.random())
        task.cancel()
        await asyncio.sleep(0.002 * step)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert spec(world)["holderIdentity"] == ""


async def _get_anyway(one: Candidate, get: Any, *args: Any, **kwargs: Any) -> Any:
    back, one.link.back = one.link.back, True
    try:
        return await get(*args, **kwargs)
    finally:
        one.link.back = back
