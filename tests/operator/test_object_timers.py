"""operator/object_timers.py: calls at fixed times for each object."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject
from aioinformer.operator import Manager, Operator, Request, Result
from aioinformer.operator.object_timers import first_due, next_due
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .worlds import change, create, elector

PERIOD = 60.0


class Calls:
    """Records the time of each call.

    Attributes:
        times: Seconds of the simulation, by key.
        takes: Seconds that a call takes.
        fails: How many calls fail from now on.
    """

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self.times: dict[str, list[float]] = {}
        self.takes = 0.0
        self.fails = 0

    async def __call__(self, request: Request[KubeObject]) -> None:
        self.times.setdefault(request.key, []).append(self._world.now)
        await asyncio.sleep(self.takes)
        if self.fails:
            self.fails -= 1
            raise ValueError("no connection")


@asynccontextmanager
async def run_timer(world: Simulation, function: Any, **options: Any) -> AsyncIterator[Manager]:
    operator = Operator("keeper", events=False)
    operator.timer("configmaps", every=PERIOD, name="timer", **options)(function)
    async with operator.manager(world.client) as manager:
        yield manager


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


@given(created=st.floats(0, 2e9), every=st.floats(0.5, 1e7), age=st.floats(0, 1e8))
def test_times_are_whole_periods_after_the_creation(created: float, every: float, age: float) -> None:
    now = created + age
    due = next_due(created, every, now)
    assert due >= now - 1e-3
    assert due - now <= every * (1 + 1e-6) + 1e-3
    assert abs((due - created) / every - round((due - created) / every)) < 1e-3
    first = first_due(created, every, now)
    assert first == (now if age < every else due)


@simulate_scenario
async def test_an_object_is_called_for_at_its_creation_and_every_period_after(world: Simulation) -> None:
    calls = Calls(world)
    async with run_timer(world, calls):
        await asyncio.sleep(10)
        create(world, "a")
        created = world.now
        await asyncio.sleep(10 * PERIOD)
        change(world, "a", data={"changed": "yes"})
        await asyncio.sleep(PERIOD)
    times = calls.times["default/a"]
    assert times[0] - created < 1
    assert len(times) in (11, 12)
    assert all(abs(gap - PERIOD) < 1 for gap in gaps(times)[1:])


@simulate_scenario
async def test_a_restart_moves_no_call(world: Simulation) -> None:
    calls = Calls(world)
    create(world, "a")
    created = world.now
    for pause in (130, 250, 70):
        async with run_timer(world, calls):
            await asyncio.sleep(pause)
        await asyncio.sleep(pause / 7)
    for time in calls.times["default/a"][1:]:
        assert (time - created + 1) % PERIOD < 3, (time, created)


@simulate_scenario
async def test_calls_of_a_new_object_that_takes_the_name_start_again(world: Simulation) -> None:
    calls = Calls(world)
    create(world, "a")
    async with run_timer(world, calls):
        await asyncio.sleep(90)
        world.server.delete("v1", "configmaps", "a")
        await asyncio.sleep(5 * PERIOD)
        assert len(calls.times["default/a"]) == 2
        create(world, "a")
        await asyncio.sleep(1)
        assert len(calls.times["default/a"]) == 3


@simulate_scenario
async def test_only_objects_that_match_are_called_for(world: Simulation) -> None:
    calls = Calls(world)
    create(world, "a", data={"on": "no"})
    async with run_timer(world, calls, when=lambda obj: obj["data"]["on"] == "yes"):
        await asyncio.sleep(3 * PERIOD)
        assert not calls.times
        change(world, "a", data={"on": "yes"})
        await asyncio.sleep(3.5 * PERIOD)
        assert len(calls.times["default/a"]) == 3
        change(world, "a", data={"on": "no"})
        await asyncio.sleep(3.5 * PERIOD)
        assert len(calls.times["default/a"]) == 3


@simulate_scenario
async def test_a_call_that_fails_is_repeated_after_a_back_off(world: Simulation) -> None:
    calls = Calls(world)
    calls.fails = 5
    create(world, "a")
    async with run_timer(world, calls) as manager:
        await asyncio.sleep(5)
        assert len(calls.times["default/a"]) == 6
        assert manager.controllers[0].state.failing == 0
        await asyncio.sleep(PERIOD)
        assert len(calls.times["default/a"]) == 7


def test_calls_that_are_due_while_another_runs_are_left_out_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        calls = Calls(world)
        calls.takes = 2.5 * PERIOD
        create(world, "a")
        async with run_timer(world, calls):
            await asyncio.sleep(11 * PERIOD)
        assert len(calls.times["default/a"]) == 4

    with caplog.at_level(logging.WARNING):
        scenario()
    assert "timer: default/a was called too late: 2 calls were left out" in caplog.text


@simulate_scenario
async def test_a_timer_that_returns_something_has_failed(world: Simulation) -> None:
    async def call(request: Request[KubeObject]) -> Result:
        return Result(requeue_after=3)

    create(world, "a")
    async with run_timer(world, call) as manager:
        await asyncio.sleep(5)
        error = str(manager.controllers[0].state.last_error)
        assert error.startswith(
            "timer: the timer returned Result(requeue=False, requeue_after=3, progressing='') for default/a"
        )


@simulate_scenario
async def test_lifespans_of_the_leader_are_open_only_while_it_leads(world: Simulation) -> None:
    log: list[str] = []
    operator = Operator("keeper", events=False)

    @operator.lifespan
    async def always(context: Any) -> AsyncIterator[str]:
        log.append("opened")
        yield "always"
        log.append("closed")

    @operator.lifespan(leading=True)
    async def leading(context: Any) -> AsyncIterator[bytes]:
        log.append("leads")
        yield context.get(str).encode()
        log.append("stopped leading")

    @operator.timer("configmaps", every=PERIOD)
    async def call(request: Request[KubeObject], context: Any) -> None:
        log.append(context.get(bytes).decode())

    create(world, "a")
    async with operator.manager(world.client, leader_election=elector(world.client)) as manager:
        await world.eventually(lambda: log == ["opened", "leads", "always"])
        lease = world.server.get("coordination.k8s.io/v1", "leases", "operator")
        lease["spec"]["holderIdentity"] = "other"
        world.server.update("coordination.k8s.io/v1", "leases", lease)
        await world.eventually(lambda: log[3:] == ["stopped leading"], within=14, every=0.1)
        assert not manager.state.leading
        await world.eventually(lambda: log[4:5] == ["leads"])
    assert log[-2:] == ["stopped leading", "closed"]
