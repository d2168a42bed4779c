"""Events about objects whose reconcile fails."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import EventRecorder, KubeObject, Resource, TerminalError
from aioinformer.operator import Controller, Kind, Manager, Operator, Request
from aioinformer.operator import failure_events as module
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .test_undecodable import FITS, Map
from .worlds import change, create

Event = dict[str, Any]


class Trouble:
    """A reconciler that raises what the test says."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.calls = 0

    async def __call__(self, request: Request[Any]) -> None:
        self.calls += 1
        if request.object is not None and self.error is not None:
            raise self.error


def declare(reconcile: Any, resource: Any = "configmaps", **options: Any) -> Operator:
    operator = Operator("tests", **options)
    operator.controller(resource)(reconcile)
    return operator


def list_events(world: Simulation) -> list[Event]:
    return world.server.list("events.k8s.io/v1", "events")


def summarize(world: Simulation) -> list[tuple[str, str, str]]:
    return [(event["type"], event["reason"], event["note"]) for event in list_events(world)]


WARNING = ("Warning", "ReconcileFailed", "ValueError: no")
RECOVERED = ("Normal", "Recovered", "it was reconciled, after failures")


@simulate_scenario
async def test_failing_key_has_one_series_and_a_normal_event_after_it(world: Simulation) -> None:
    trouble = Trouble(ValueError("no"))
    stored = create(world, "a")
    async with declare(trouble).running(world.client):
        await asyncio.sleep(3000)
        assert summarize(world) == [WARNING]
        (event,) = list_events(world)
        assert event["series"]["count"] > 10
        assert event["regarding"] == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "default",
            "name": "a",
            "uid": stored["metadata"]["uid"],
            "resourceVersion": stored["metadata"]["resourceVersion"],
        }
        assert (event["action"], event["reportingController"]) == ("Reconcile", "tests")
        trouble.error = None
        await asyncio.sleep(1500)
        assert summarize(world) == [WARNING, RECOVERED]
    assert summarize(world) == [WARNING, RECOVERED]


@simulate_scenario
async def test_terminal_error_has_an_event_and_a_change_that_repairs_it(world: Simulation) -> None:
    trouble = Trouble(TerminalError("no such plan"))
    create(world, "a")
    async with declare(trouble).running(world.client):
        await asyncio.sleep(4000)
        assert summarize(world) == [("Warning", "ReconcileFailed", "no such plan")]
        (event,) = list_events(world)
        assert event["series"]["count"] > 5  # though it is not retried: the Event would expire
        assert trouble.calls == 1
        trouble.error = TerminalError("no such region")
        change(world, "a", data={"b": "1"})
        await asyncio.sleep(1)
        assert summarize(world)[1:] == [("Warning", "ReconcileFailed", "no such region")]
        trouble.error = None
        change(world, "a", data={"b": "2"})
        await asyncio.sleep(1)
        assert summarize(world)[2:] == [RECOVERED]


@simulate_scenario
async def test_error_whose_text_changes_each_time_is_one_series_for_a_minute(world: Simulation) -> None:
    calls = 0

    async def reconcile(request: Request[KubeObject]) -> None:
        nonlocal calls
        calls += 1
        raise ValueError(f"no {calls}")

    create(world, "a")
    async with declare(reconcile).running(world.client):
        await asyncio.sleep(30)
        assert calls > 10
        assert [note for _, _, note in summarize(world)] == ["ValueError: no 1"]
        await asyncio.sleep(1000)
        assert 2 <= len(summarize(world)) <= 6


@simulate_scenario
async def test_conflict_that_the_next_try_repairs_has_no_event(world: Simulation) -> None:
    calls = 0

    async def reconcile(request: Request[KubeObject]) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await request_conflict(world)

    create(world, "a")
    async with declare(reconcile).running(world.client):
        await asyncio.sleep(10)
    assert calls == 2
    assert summarize(world) == []


async def request_conflict(world: Simulation) -> None:
    await Resource(world.client, "configmaps").patch("default/a", {"metadata": {"resourceVersion": "1"}})


@simulate_scenario
async def test_timeout_and_unfit_object_have_reasons_of_their_own(world: Simulation) -> None:
    async def reconcile(request: Request[Map]) -> None:
        await asyncio.sleep(10**6)

    operator = Operator("tests")
    operator.controller(Kind("configmaps", Map), timeout=5)(reconcile)
    create(world, "fits", **FITS)
    create(world, "unfit", data={"other": "x"})
    async with operator.running(world.client):
        await asyncio.sleep(10)
    reasons = {event["regarding"]["name"]: event["reason"] for event in list_events(world)}
    assert reasons == {"fits": "ReconcileTimedOut", "unfit": "ObjectDoesNotFit"}
    (unfit,) = [event for event in list_events(world) if event["regarding"]["name"] == "unfit"]
    assert "Object missing required field `node`" in unfit["note"]


@simulate_scenario
async def test_failing_clean_up_has_an_action_of_its_own(world: Simulation) -> None:
    async def cleanup(request: Request[KubeObject]) -> None:
        raise ValueError("the bucket is in use")

    operator = Operator("tests")
    operator.controller("configmaps", finalizer="example.com/f", cleanup=cleanup)(Trouble())
    create(world, "a")
    async with operator.running(world.client):
        await asyncio.sleep(1)
        world.server.delete("v1", "configmaps", "a", "default")
        await asyncio.sleep(1)
    (event,) = list_events(world)
    assert (event["action"], event["note"]) == ("CleanUp", "ValueError: the bucket is in use")


@simulate_scenario
async def test_failing_task_and_timer_have_events(world: Simulation) -> None:
    operator, is_failing = Operator("tests"), True

    @operator.task("configmaps")
    async def watch_health(request: Request[KubeObject]) -> None:
        if is_failing:
            raise ValueError("no")
        await asyncio.sleep(10**6)

    @operator.timer("configmaps", every=1000)
    async def rotate(request: Request[KubeObject]) -> None:
        if is_failing:
            raise ValueError("no key")

    create(world, "a")
    async with operator.running(world.client):
        await asyncio.sleep(100)
        assert sorted(summarize(world)) == [WARNING, ("Warning", "ReconcileFailed", "ValueError: no key")]
        is_failing = False
        await asyncio.sleep(1000)
        assert RECOVERED in summarize(world)


@simulate_scenario
async def test_deleted_object_has_no_events(world: Simulation) -> None:
    async def reconcile(request: Request[KubeObject]) -> None:
        if request.object is None:
            raise ValueError("no")

    create(world, "a")
    async with declare(reconcile).running(world.client):
        await asyncio.sleep(1)
        world.server.delete("v1", "configmaps", "a", "default")
        await asyncio.sleep(10)
    assert summarize(world) == []


@simulate_scenario
async def test_events_can_be_switched_off_and_rights_follow(world: Simulation) -> None:
    create(world, "a")
    for options in ({"events": False}, {"failure_events": False}):
        async with declare(Trouble(ValueError("no")), **options).running(world.client):
            await asyncio.sleep(100)
    assert summarize(world) == []
    rights = {str(right) for right in declare(Trouble(), failure_events=False).rights()}
    assert "create, patch events.events.k8s.io" in rights
    assert not any("events" in str(right) for right in declare(Trouble(), events=False).rights())


@simulate_scenario
async def test_bare_controller_has_no_events_without_a_recorder(world: Simulation) -> None:
    create(world, "a")
    for recorder in (None, EventRecorder(world.client, "bare")):
        manager = Manager(world.client)
        maps = manager.for_resource("v1", "configmaps")
        manager.add(Controller("tests", Trouble(ValueError("no")), maps, recorder=recorder))
        if recorder is None:
            async with manager:
                await asyncio.sleep(10)
            assert summarize(world) == []
        else:
            async with recorder, manager:
                await asyncio.sleep(10)
    assert summarize(world) == [WARNING]


@simulate_scenario
async def test_refused_events_fail_no_reconcile(world: Simulation) -> None:
    world.tolerate("an event was refused")
    world.server.faults.fail(403, resource="events", times=None)
    trouble = Trouble(ValueError("no"))
    create(world, "a")
    async with declare(trouble).running(world.client) as manager:
        await asyncio.sleep(10)
        trouble.error = None
        await asyncio.sleep(10)
        assert manager.controllers[0].state.failing == 0


def test_many_failing_objects_have_a_bounded_number_of_events(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_REPORTED", 20)

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        trouble = Trouble(ValueError("no"))
        for number in range(50):
            create(world, f"a{number}")
        async with declare(trouble).running(world.client) as manager:
            await asyncio.sleep(2000)
            assert manager.controllers[0].state.failing == 50
            assert summarize(world) == [WARNING] * 20
            trouble.error = None
            await asyncio.sleep(2000)
            assert manager.controllers[0].state.failing == 0
            warned, recovered = (
                sorted(event["regarding"]["name"] for event in list_events(world) if event["type"] == kind)
                for kind in ("Warning", "Normal")
            )
            assert warned == recovered == sorted({*warned})

    with caplog.at_level(logging.WARNING):
        scenario()
    warnings = [record for record in caplog.records if "more than 20 objects fail" in record.getMessage()]
    assert len(warnings) == 3  # one for each order of the simulation
