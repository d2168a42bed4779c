"""EventRecorder: what is recorded where nobody sends it is told of."""

from __future__ import annotations

import asyncio

from aioinformer.testing import Simulation

from .worlds import CONTROLLER, about, events, idle, recorder, simulated


def warnings_of(world: Simulation) -> list[str]:
    return [str(entry) for entry in world.history if " WARNING " in str(entry)]


@simulated
async def test_one_that_nobody_enters_is_named_once(world: Simulation) -> None:
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


@simulated
async def test_events_before_it_is_entered_are_nothing_to_warn_of(world: Simulation) -> None:
    subject = recorder(world)
    subject.event(about(), "Normal", "One", "")
    await asyncio.sleep(9)
    async with subject:
        await asyncio.sleep(60)
    assert warnings_of(world) == []


@simulated
async def test_that_events_come_after_it_was_left_is_told_once(world: Simulation) -> None:
    async with recorder(world) as subject:
        await asyncio.sleep(1)
    for reason in ("One", "Two"):
        subject.event(about(), "Normal", reason, "")
    (warning,) = warnings_of(world)
    assert f"<EventRecorder {CONTROLLER}> has ended: it does not send One of a and later events" in warning
    await asyncio.sleep(60)
    assert (len(warnings_of(world)), subject.state.given_up) == (1, 2)
