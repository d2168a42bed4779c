"""alarm.py: one timer for many deadlines."""

from __future__ import annotations

import asyncio
import math

import pytest

from aioinformer._core.timers import Alarm, every

from ..steps import turns, until
from ..virtual_time import virtual_time

LONG = 3600.0


class Rung:
    """When an alarm rang."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.alarm = Alarm(self.times.append)

    def set(self, seconds: float) -> float:
        at = asyncio.get_running_loop().time() + seconds
        self.alarm.ring_by(at)
        return at


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.0004, 0.0011, 0.02])
async def test_it_rings_once_and_no_earlier_than_it_was_set_to(seconds: float) -> None:
    rung = Rung()
    at = rung.set(seconds)
    assert rung.alarm.at == at
    await until(lambda: rung.times)
    await turns(3)
    assert len(rung.times) == 1
    assert rung.times[0] >= at
    assert rung.alarm.at == math.inf


async def test_of_two_deadlines_the_sooner_counts() -> None:
    rung = Rung()
    rung.set(LONG)
    soon = rung.set(0.01)
    rung.set(LONG)
    assert rung.alarm.at == soon
    await until(lambda: rung.times)
    assert rung.times[0] < soon + LONG / 2
    assert rung.alarm.at == math.inf


async def test_a_deadline_that_is_as_good_as_now_does_not_keep_others_from_ringing() -> None:
    """uvloop gives a handle that is due at once, and does not know when it was."""
    rung = Rung()
    for done in range(3):
        rung.set(0.0001)
        rung.set(0.00005)
        await until(lambda done=done: len(rung.times) > done)  # type: ignore[misc]
    assert len(rung.times) == 3


async def test_it_can_be_set_while_it_rings() -> None:
    times: list[float] = []

    def ring(now: float) -> None:
        times.append(now)
        if len(times) < 3:
            alarm.ring_by(now + 0.001)

    alarm = Alarm(ring)
    alarm.ring_by(asyncio.get_running_loop().time())
    await until(lambda: len(times) == 3)
    assert times == sorted(times)
    assert alarm.at == math.inf


async def test_turned_off_it_does_not_ring() -> None:
    rung = Rung()
    rung.set(0.0)
    rung.alarm.turn_off()
    rung.alarm.turn_off()
    assert rung.alarm.at == math.inf
    await turns(5)
    assert rung.times == []
    rung.set(0.0)
    await until(lambda: rung.times)


@virtual_time
async def test_every_so_many_seconds_until_it_has_ended() -> None:
    now = asyncio.get_running_loop().time
    times: list[float] = []
    start = now()
    with every(10, lambda: times.append(now() - start)):
        await asyncio.sleep(35)
    await asyncio.sleep(35)
    assert times == pytest.approx([10, 20, 30])
