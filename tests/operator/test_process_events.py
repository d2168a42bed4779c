"""Events about the operator itself."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioinformer import EventRecorder, LeaderElector
from aioinformer._core.lost_lines import LOST_LINES
from aioinformer._core.timers import call_every
from aioinformer.cli.output import print_error
from aioinformer.operator.process_events import CHECK_EVERY, ProcessEvents
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .test_failure_events import list_events, summarize

POD = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "sites-1", "uid": "u"}


@asynccontextmanager
async def checking(
    world: Simulation, problems: dict[str, str], pod: dict[str, str] | None, elector: LeaderElector | None
) -> AsyncIterator[None]:
    """Record Events while the block runs; ``problems`` may change."""
    readers = {reason: (lambda reason=reason: problems[reason]) for reason in problems}
    async with EventRecorder(world.client, "sites") as recorder:
        events = ProcessEvents(recorder, pod, readers, elector)
        with call_every(CHECK_EVERY, events.check):
            yield


@simulate_scenario
async def test_problem_that_lasts_is_a_series_about_the_pod_until_it_is_over(world: Simulation) -> None:
    problems = {"NotReady": "", "LogsLost": ""}
    async with checking(world, problems, POD, None):
        problems["NotReady"] = "has not synced"
        await asyncio.sleep(6)  # as at each start
        problems["NotReady"] = ""
        await asyncio.sleep(60)
        assert summarize(world) == []
        problems["NotReady"] = "pods is not served any more"
        await asyncio.sleep(3000)
        (event,) = list_events(world)
        assert (event["type"], event["reason"]) == ("Warning", "NotReady")
        assert event["regarding"] == POD
        assert event["series"]["count"] > 5
        problems["NotReady"] = ""
        await asyncio.sleep(10)
        assert summarize(world)[1:] == [("Normal", "Recovered", "NotReady: it is over")]


@simulate_scenario
async def test_each_change_of_leadership_is_an_event_about_the_lease(world: Simulation) -> None:
    elector = LeaderElector(world.client, "sites", "default", "me")
    async with checking(world, {"NotReady": "always"}, None, elector):
        async with elector:
            await asyncio.sleep(10)
        await asyncio.sleep(10)
    assert [note for _, _, note in summarize(world)] == ["me became leader", "me stopped leading"]
    assert {event["regarding"]["kind"] for event in list_events(world)} == {"Lease"}


def test_log_continues_after_a_full_disk_and_counts_the_lost_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lost, log = LOST_LINES.count, tmp_path / "log"
    with Path("/dev/full").open("w") as stream, log.open("w") as with_room:
        monkeypatch.setattr(sys, "stderr", stream)
        stream.reconfigure(line_buffering=True)
        print_error("one")
        print_error("two")
        assert LOST_LINES.count == lost + 2
        assert (LOST_LINES.is_losing, LOST_LINES.reason) == (True, "No space left on device")
        os.dup2(with_room.fileno(), stream.fileno())
        print_error("three")
        assert LOST_LINES.count == lost + 2
    assert log.read_text().endswith("three\n")
