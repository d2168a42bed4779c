"""EventRecorder: warnings about events that are never sent."""

from __future__ import annotations

import asyncio

from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .worlds import CONTROLLER, about, events, idle, recorder


def warnings_of(world: Simulation) -> list[str]:
    return [str(entry) for entry in world.history if " WARNING " in str(entry)]


@simulate_scenario
async def test_recorder_that_is_never_started_is_logged_once(world: Simulation) -> None:
    subject = recorder(world)
    for reason in ("One", "Two"):
        subject.event(about(), "Normal", reason, "")
        await asyncio.sleep(9)
    (warning,) = warnings_of(world)
    assert f"<EventRecorder {CONTROLLER}> was not started, so 2 events wait: enter it" in warning
    subject.event(about(), "Normal", "Three", "")
    await asyncio.sleep(60)
    assert len(warnings_of(world)) == 1
    async with subject:
        await idle(subject)
    assert len(events(world)) == 3


@simulate_scenario
async def test_events_before_the_start_are_not_logged(world: Simulation) -> None:
    subject = recorder(world)
    subject.event(about(), "Normal", "One", "")
    await asyncio.sleep(9)
    async with subject:
        await asyncio.sleep(60)
    assert warnings_of(world) == []


@simulate_scenario
async def test_events_after_the_end_are_logged_once(world: Simulation) -> None:
    async with recorder(world) as subject:
        await asyncio.sleep(1)
    for reason in ("One", "Two"):
        subject.event(about(), "Normal", reason, "")
    (warning,) = warnings_of(world)
    assert f"<EventRecorder {CONTROLLER}> has ended: it does not send One of a and later events" in warning
    await asyncio.sleep(60)
    assert (len(warnings_of(world)), subject.state.given_up) == (1, 2)
