"""LeaderElector: client-go's semantics, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from aioinformer import ApiError, Client, ConfigError, LeaderElector
from aioinformer._core.tasks import finish
from aioinformer.errors import AlreadyStartedError, ClientClosedError, LeadershipLostError
from aioinformer.leaderelection.elector import WARN_EVERY
from aioinformer.testing import Simulation, simulate
from tests.virtual_time import simulate_scenario

from .world import LEASE, Candidate, never_two, spec, verbs


@simulate_scenario
async def test_new_lease_starts_at_zero_transitions_c88(world: Simulation) -> None:
    one = Candidate(world, "one", labels={"app": "operator"})
    async with one.elector:
        assert one.elector.is_leader
        one.elector.require_leadership()
        said = spec(world)
        assert (said["holderIdentity"], said["leaseDurationSeconds"], said["leaseTransitions"]) == (
            "one",
            15,
            0,
        )
        assert said["acquireTime"] == said["renewTime"]
        assert said["acquireTime"].startswith("2025-06-15T15:06:40.")
        await asyncio.sleep(100)
        later = spec(world)
        assert later["acquireTime"] == said["acquireTime"]
        assert later["renewTime"] > said["renewTime"]
        assert later["leaseTransitions"] == 0
        assert one.elector.state.renewed_seconds is not None
        assert one.elector.state.renewed_seconds < 2.1
        assert world.server.get(*LEASE)["metadata"]["labels"] == {"app": "operator"}
    assert not one.elector.state.is_leader
    assert one.leaders == ["one"]


@simulate_scenario
async def test_renewing_is_one_update_per_retry_period_c89(world: Simulation) -> None:
    one = Candidate(world, "one")
    async with one.elector:
        await asyncio.sleep(20.5)
        assert verbs(world) == ["get", "create", *["update"] * 10]
        # Another client changed the Lease: the update conflicts, and is repeated after a read.
        world.server.patch(
            "coordination.k8s.io/v1", "leases", "operator", {"metadata": {"labels": {"a": "b"}}}
        )
        await asyncio.sleep(2)
        assert verbs(world)[12:] == ["update", "get", "update"]
        assert world.server.get(*LEASE)["metadata"]["labels"] == {"a": "b"}
        await asyncio.sleep(2)
        assert verbs(world)[15:] == ["update"]


@simulate_scenario
async def test_holders_clock_decides_nothing_c87(world: Simulation) -> None:
    """A Lease from the far future is left alone for its duration, counted from its last observed change."""
    for stamp in ("2090-01-01T00:00:00.000000Z", "1990-01-01T00:00:00.000000Z"):
        world.server.create(
            "coordination.k8s.io/v1",
            "leases",
            {
                "metadata": {"name": "operator"},
                "spec": {
                    "holderIdentity": "old",
                    "leaseDurationSeconds": 40,
                    "renewTime": stamp,
                    "acquireTime": stamp,
                    "leaseTransitions": 6,
                },
            },
        )
        one = Candidate(world, "one")
        began = world.now
        waiting = asyncio.create_task(one.campaign())
        await asyncio.sleep(39)
        # It changes again, as by a renewal: the time starts again.
        world.server.patch(
            "coordination.k8s.io/v1", "leases", "operator", {"spec": {"renewTime": stamp[:-2] + "1Z"}}
        )
        await world.eventually(lambda one=one: one.leads, within=100, every=0.1)  # type: ignore[misc]
        assert 39 + 40 <= world.now - began <= 39 + 40 + 2 * 4.5
        assert spec(world)["leaseTransitions"] == 7
        await finish(waiting)
        world.server.delete("coordination.k8s.io/v1", "leases", "operator")


@simulate_scenario
async def test_clock_that_stands_still_or_is_set_back_decides_nothing_c87(world: Simulation) -> None:
    """Each renewal changes the Lease; after the clock was set right, the Lease has the right time."""
    offset = 0.0
    one, two = (Candidate(world, name, wall=lambda: 1_750_000_000.0 + offset) for name in ("one", "two"))
    never_two(world, [one, two])
    first = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, every=0.1)
    second = asyncio.create_task(two.campaign())
    await asyncio.sleep(120)
    assert (one.leads, one.terms, two.leads) == (True, [], False)
    offset = 3600.0
    await asyncio.sleep(5)
    assert spec(world)["renewTime"].startswith("2025-06-15T16:06:40")
    offset = -1.0
    await asyncio.sleep(60)
    assert spec(world)["renewTime"].startswith("2025-06-15T15:06:39")
    assert (one.leads, one.terms, two.leads) == (True, [], False)
    await finish(first, second)


@simulate_scenario
async def test_lease_without_a_holder_is_taken_at_once_c88(world: Simulation) -> None:
    world.server.create("coordination.k8s.io/v1", "leases", {"metadata": {"name": "operator"}, "spec": {}})
    one = Candidate(world, "one")
    began = world.now
    async with one.elector:
        assert world.now - began < 1
        assert spec(world)["leaseTransitions"] == 1


@simulate_scenario
async def test_deleted_lease_counts_as_held_until_it_would_expire(world: Simulation) -> None:
    """The leader learns of the deletion at its next renewal: upstream, two lead until then."""
    one, two = Candidate(world, "one"), Candidate(world, "two")
    never_two(world, [one, two])
    first = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, within=20, every=0.1)
    second = asyncio.create_task(two.campaign())
    await asyncio.sleep(30)
    world.server.delete(*LEASE)
    await asyncio.sleep(30)
    assert one.leads
    assert one.terms == []
    one.link.there = False
    world.server.delete(*LEASE)
    deleted = world.now
    await world.eventually(lambda: two.leads, within=40, every=0.01)
    assert 13 <= world.now - deleted <= 15 + 2 * 4.5
    assert spec(world)["leaseTransitions"] == 1
    one.link.there = True
    await asyncio.sleep(30)
    await finish(second)
    await world.eventually(lambda: one.leads, within=20, every=0.1)
    world.server.delete(*LEASE)
    await asyncio.sleep(10)
    assert spec(world)["leaseTransitions"] == 2, "one's own Lease is as it was"
    await finish(first)


@simulate_scenario
async def test_leader_whose_deleted_lease_is_created_by_another_stops_at_its_next_try(
    world: Simulation,
) -> None:
    one = Candidate(world, "one")
    running = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, within=20, every=0.1)
    one.link.seconds = 0.5
    read = world.server.count("get", "leases")
    world.server.delete(*LEASE)
    await world.eventually(lambda: world.server.count("get", "leases") > read, within=10, every=0.1)
    other = {"holderIdentity": "two", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    world.server.create(*LEASE[:2], {"metadata": {"name": LEASE[2]}, "spec": other}, LEASE[3])
    created = world.now
    await world.eventually(lambda: one.lost, within=20, every=0.1)
    assert one.lost[0][1].why == "two holds it"
    assert one.lost[0][1].__cause__ is None
    assert world.now - created < 3.5
    await finish(running)


@simulate_scenario
async def test_lease_with_maximum_transitions_can_be_taken(world: Simulation) -> None:
    most = 2**31 - 1
    world.server.create(
        *LEASE[:2],
        {"metadata": {"name": "operator", "namespace": "default"}, "spec": {"leaseTransitions": most}},
    )
    one = Candidate(world, "one")
    async with asyncio.timeout(60), one.elector:
        assert one.elector.state.transitions == most
    assert spec(world)["leaseTransitions"] == most


@simulate_scenario
async def test_own_lease_is_taken_up_again_after_a_restart(world: Simulation) -> None:
    """After a restart with the same identity."""
    first = Candidate(world, "one", release=False)
    async with first.elector:
        acquired = spec(world)["acquireTime"]
    again = Candidate(world, "one")
    began = world.now
    async with again.elector:
        assert world.now - began < 1
        assert spec(world)["leaseTransitions"] == 0
        assert spec(world)["acquireTime"] == acquired


@simulate_scenario
async def test_disconnected_leader_ends_its_work_before_another_leads_w26(world: Simulation) -> None:
    for way in ("there", "back"):
        one, two = Candidate(world, "one"), Candidate(world, "two")
        never_two(world, [one, two])
        one.cleanup = 4.0
        first = asyncio.create_task(one.campaign())
        await world.eventually(lambda one=one: one.leads, within=20, every=0.1)  # type: ignore[misc]
        second = asyncio.create_task(two.campaign())
        await asyncio.sleep(30)
        setattr(one.link, way, False)
        cut = world.now
        await world.eventually(lambda two=two: two.leads, within=40, every=0.01)  # type: ignore[misc]
        ((lost_at, error),) = one.lost
        _, ended = one.terms[-1]
        assert 8 <= ended - cut <= 14.01  # ten seconds after the last renewal, and the cleanup
        assert lost_at - ended < 0.01
        assert error.why == "it could not be renewed for 10 s"
        assert (error.lease, error.identity) == ("default/operator", "one")
        assert "no answer within 5 s" in str(error.__cause__)
        assert 13 <= world.now - cut <= 15 + 2 * 4.5
        setattr(one.link, way, True)
        await asyncio.sleep(60)
        assert two.leads
        assert not one.leads
        await finish(first, second)
        await asyncio.sleep(0)


@simulate_scenario
async def test_silent_connection_does_not_end_the_leadership(world: Simulation) -> None:
    """There is time for another request."""
    one = Candidate(world, "one")
    async with one.elector:
        for _ in range(20):
            await asyncio.sleep(world.random.uniform(9, 15))
            one.link.there = False
            await asyncio.sleep(2.5)
            one.link.there = True
        assert one.elector.is_leader


@simulate_scenario
async def test_slow_answers_do_not_extend_a_leadership(world: Simulation) -> None:
    """The deadline starts when a renewal was sent, since others may have seen it then. Upstream: when answered."""
    candidates = [Candidate(world, "one"), Candidate(world, "two")]
    never_two(world, candidates)
    tasks = [asyncio.create_task(candidate.campaign()) for candidate in candidates]
    for _ in range(30):
        await world.eventually(lambda: any(candidate.leads for candidate in candidates), within=60, every=0.1)
        (leader,) = (candidate for candidate in candidates if candidate.leads)
        leader.cleanup = 4.9
        leader.link.seconds_back = 4.8
        await asyncio.sleep(world.random.uniform(10, 20))
        leader.link.there = False
        await world.eventually(lambda leader=leader: not leader.leads, every=0.1)  # type: ignore[misc]
        await asyncio.sleep(world.random.uniform(0, 10))
        leader.link.there, leader.link.seconds_back = True, 0.0
    assert all(candidate.terms for candidate in candidates)
    await finish(*tasks)


@simulate_scenario
async def test_slow_answers_renew_the_lease(world: Simulation) -> None:
    """Together they may take longer than half of the deadline, but not each one."""
    candidates = [Candidate(world, "one"), Candidate(world, "two")]
    for candidate in candidates:
        candidate.link.seconds = candidate.link.seconds_back = 1.3
    tasks = [asyncio.create_task(candidate.campaign()) for candidate in candidates]
    await world.eventually(lambda: any(candidate.leads for candidate in candidates), within=20, every=0.1)
    await asyncio.sleep(600)
    assert [len(candidate.terms) for candidate in candidates] == [0, 0]
    (leader,) = (candidate for candidate in candidates if candidate.leads)
    # Another client edits the Lease: a conflicting update, a read, and an update.
    leader.link.seconds = leader.link.seconds_back = 1.2
    await asyncio.sleep(10)
    labels = {"metadata": {"labels": {"a": "b"}}}
    world.server.patch("coordination.k8s.io/v1", "leases", "operator", labels)
    await asyncio.sleep(60)
    assert (leader.leads, leader.terms) == (True, [])
    await finish(*tasks)


@simulate_scenario
async def test_lease_is_read_after_a_renewal_without_an_answer(world: Simulation) -> None:
    """The elector reads the Lease before it writes again."""
    one = Candidate(world, "one")
    async with one.elector:
        one.link.seconds = one.link.seconds_back = 0.5
        await asyncio.sleep(20)
        one.link.back = False
        before = len(verbs(world))
        await world.eventually(lambda: len(verbs(world)) > before, every=0.01)
        await asyncio.sleep(0.6)
        one.link.back = True
        await asyncio.sleep(8)
        assert verbs(world)[before : before + 3] == ["update", "get", "update"]
        assert one.elector.is_leader


@simulate_scenario
async def test_each_write_changes_the_lease(world: Simulation) -> None:
    """Including the second write of a renewal whose first succeeded but was answered with an error."""
    one = Candidate(world, "one")
    send = one.link.send
    written: list[str] = []

    async def fail_of_what_is_done(*args: Any, **kwargs: Any) -> bytes:
        answer = await send(*args, **kwargs)
        written.append(spec(world)["renewTime"])
        if len(written) == 1:
            await asyncio.sleep(3)
            raise ApiError(504, "Timeout", "the request did not complete")
        return answer

    async with one.elector:
        one.link.send = fail_of_what_is_done  # type: ignore[method-assign]
        await world.eventually(lambda: len(written) == 2, within=6, every=0.01)
        assert written[0] < written[1]
        await asyncio.sleep(0.5)
        renewed = one.elector.state.renewed_seconds
        assert renewed is not None
        assert renewed < 1


@simulate_scenario
async def test_leader_that_finds_another_holder_stops_at_once(world: Simulation) -> None:
    """Someone edited the Lease by hand."""
    one = Candidate(world, "one")
    task = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, every=0.1)
    world.server.patch("coordination.k8s.io/v1", "leases", "operator", {"spec": {"holderIdentity": "thief"}})
    await world.eventually(lambda: not one.leads, within=2.5, every=0.01)
    assert [error.why for _, error in one.lost] == ["thief holds it"]
    assert spec(world)["holderIdentity"] == "thief"
    assert one.leaders == ["one", "thief"]
    await finish(task)


@simulate_scenario
async def test_invalid_work_is_refused(world: Simulation) -> None:
    elector = Candidate(world, "one").elector
    with pytest.raises(ConfigError, match=r"work must be an async function, and .*<lambda> is a plain one"):
        await elector.run(lambda: None)  # type: ignore[arg-type, return-value]
    assert spec(world)["holderIdentity"] == ""


@simulate_scenario
async def test_transitions_stay_those_of_the_own_term_until_it_ends(world: Simulation) -> None:
    """Also while the former leader cleans up: its late writes must not look like the new leader's."""
    one = Candidate(world, "one")
    seen: list[tuple[str, int]] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1e9)
        finally:
            seen.append((one.elector.state.leader, one.elector.state.transitions))

    async with one.elector:
        pass
    task = asyncio.create_task(one.elector.run(work))
    await world.eventually(lambda: one.elector.is_leader, every=0.1)
    taken = {"spec": {"holderIdentity": "thief", "leaseTransitions": 2}}
    world.server.patch("coordination.k8s.io/v1", "leases", "operator", taken)
    with pytest.raises(LeadershipLostError):
        await task
    assert seen == [("thief", 1)]
    assert one.elector.state.transitions == 2


@simulate_scenario
async def test_body_decides_how_the_context_ends(world: Simulation) -> None:
    elector = Candidate(world, "one").elector
    assert await elector.run(lambda: asyncio.sleep(3, "done")) == "done"

    async def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await elector.run(fail)
    assert spec(world)["holderIdentity"] == ""
    with pytest.raises(LeadershipLostError, match="it does not lead"):
        elector.require_leadership()


@simulate_scenario
async def test_lost_leadership_and_cancellation_are_distinguished(world: Simulation) -> None:
    one = Candidate(world, "one")
    deadline_passed = False
    try:
        async with asyncio.timeout(30), one.elector:
            await asyncio.sleep(1e9)
    except TimeoutError:
        deadline_passed = True
    assert deadline_passed
    assert spec(world)["holderIdentity"] == ""

    async def hold_out() -> str:
        """A body that ignores its cancellation gets the error on leaving."""
        try:
            await asyncio.sleep(1e9)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "done"

    one.link.there = True
    task = asyncio.create_task(one.elector.run(hold_out))
    await world.eventually(lambda: one.elector.is_leader, every=0.1)
    one.link.there = False
    with pytest.raises(LeadershipLostError):
        await task
    one.link.there = True

    async def fail_of_it() -> None:
        try:
            await asyncio.sleep(1e9)
        except asyncio.CancelledError:
            raise ValueError("of it") from None

    failing = asyncio.create_task(one.elector.run(fail_of_it))
    await world.eventually(lambda: one.elector.is_leader, within=40, every=0.1)
    one.link.there = False
    with pytest.raises(ValueError, match="of it"):
        await failing
    one.link.there = True
    async with one.elector:
        assert asyncio.current_task() is not None
        assert one.elector.is_leader


@simulate_scenario
async def test_work_that_ends_too_late_is_logged(world: Simulation) -> None:
    one = Candidate(world, "one")
    one.cleanup = 30
    task = asyncio.create_task(one.campaign())
    await world.eventually(lambda: one.leads, every=0.1)
    one.link.there = False
    await world.eventually(lambda: bool(one.lost), every=0.1)
    await finish(task)
    assert any("ended 25.0 s after the lease had expired" in str(entry) for entry in world.history)


@simulate_scenario
async def test_refused_candidate_retries_and_logs_why(world: Simulation) -> None:
    one = Candidate(world, "one")
    rule = world.server.forbid("get", "leases")
    task = asyncio.create_task(one.campaign())
    await asyncio.sleep(60)
    assert not one.leads
    assert "403 Forbidden" in str(one.elector.state.last_error)
    rule.remove()
    await world.eventually(lambda: one.leads, within=5, every=0.1)
    assert one.elector.state.last_error is None
    await finish(task)


@simulate_scenario
async def test_missing_namespace_is_logged_again(world: Simulation) -> None:
    elector = LeaderElector(world.client, "operator", "nowhere", "one", random=world.random)
    task = asyncio.create_task(elector.run(lambda: asyncio.sleep(1e9)))
    await asyncio.sleep(2 * WARN_EVERY + 60)
    warnings = [str(entry) for entry in world.history if " WARNING " in str(entry)]
    assert len(warnings) == 3
    assert all('namespaces "nowhere" not found' in warning for warning in warnings)
    assert not elector.is_leader
    world.server.create("v1", "namespaces", {"metadata": {"name": "nowhere"}})
    await world.eventually(lambda: elector.is_leader, within=5, every=0.1)
    await finish(task)


@simulate_scenario
async def test_unexpected_error_is_retried(world: Simulation) -> None:
    """A user's transport may raise anything: neither the waiting nor the leadership ends."""
    one = Candidate(world, "one")
    one.link.failure = ZeroDivisionError("a bug")
    task = asyncio.create_task(one.campaign())
    await asyncio.sleep(20)
    assert one.elector.state.last_error is one.link.failure
    one.link.failure = None
    await world.eventually(lambda: one.leads, within=5, every=0.1)
    for _ in range(3):
        one.link.failure = ZeroDivisionError("a bug")
        await asyncio.sleep(7)
        one.link.failure = None
        await asyncio.sleep(7)
    assert (one.leads, one.lost) == (True, [])
    warnings = [str(entry) for entry in world.history if " WARNING " in str(entry)]
    said = [warning.partition(">: ")[2].partition("; raised in ")[0] for warning in warnings]
    assert said == ["ZeroDivisionError: a bug"] * 4
    await finish(task)


@simulate_scenario
async def test_closed_client_ends_the_leadership(world: Simulation) -> None:
    client = world.new_client()
    elector = LeaderElector(client, "operator", "default", "one")
    with pytest.raises(LeadershipLostError, match="it cannot be renewed: the client is closed"):
        async with elector:
            await client.close()
            await asyncio.sleep(1e9)
    with pytest.raises(ClientClosedError):
        async with elector:
            raise AssertionError("it cannot lead")


def test_state_may_be_read_in_any_thread_and_after_the_loop_has_ended() -> None:
    electors: list[LeaderElector] = []

    async def scenario(world: Simulation) -> None:
        one = Candidate(world, "one").elector
        electors.append(one)
        async with one:
            with ThreadPoolExecutor() as threads:
                assert threads.submit(lambda: one.state).result().is_leader

    simulate(scenario, seed=1, shrink=False)
    state = electors[0].state
    assert (state.is_leader, state.renewed_seconds is not None) == (False, True)


@simulate_scenario
async def test_each_new_leader_is_reported_once_c91(world: Simulation) -> None:
    """Unlike upstream's OnStoppedLeading, it is not called if the candidate never led."""
    one, two = Candidate(world, "one"), Candidate(world, "two")
    async with one.elector:
        await asyncio.sleep(10)
        waiting = asyncio.create_task(two.campaign())
        await asyncio.sleep(30)
        await finish(waiting)
        assert one.leaders == two.leaders == ["one"]
        assert not two.terms


@pytest.mark.parametrize("failure", [ValueError, asyncio.CancelledError])
def test_callback_that_raises_is_logged(
    failure: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    simulate(partial(callback_raises, failure), seed=1, shrink=False)
    assert "on_new_leader failed" in caplog.text


async def callback_raises(failure: type[BaseException], world: Simulation) -> None:
    def fail(leader: str) -> None:
        raise failure(leader)

    elector = LeaderElector(world.client, "operator", "default", "one", on_new_leader=fail)
    async with elector:
        assert elector.state.leader == "one"
        assert elector.state.transitions == 0
        with pytest.raises(AlreadyStartedError):
            async with elector:
                raise AssertionError("not twice")
        assert repr(elector) == "<LeaderElector default/operator as one>"


async def tell_later(leader: str) -> None:
    raise AssertionError("no task would await it")


@pytest.mark.parametrize(
    "options",
    [
        {"lease_duration": 10.0},
        {"renew_deadline": 2.4},
        {"retry_period": 0.0},
        {"lease_duration": float("inf")},
        {"identity": ""},
        {"on_new_leader": "print"},
        {"on_new_leader": tell_later},
        {"name": "Bad Name"},
        {"name": ""},
        {"namespace": ""},
        {"namespace": "a.b"},
    ],
)
def test_invalid_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        LeaderElector(
            Client.from_url("http://127.0.0.1:1"), **{"name": "operator", "namespace": "default", **options}
        )


def test_default_identities_are_unique() -> None:
    client = Client.from_url("http://127.0.0.1:1")
    made = {LeaderElector(client, "operator", "default").identity for _ in range(3)}
    assert len(made) == 3
    assert logging.getLogger("aioinformer.leaderelection.elector").name
