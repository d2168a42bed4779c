"""EventRecorder: upstream's rules of series, in virtual time, on the embedded server."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from aioinformer import Client, ConfigError, EventRecorder, KubeObject
from aioinformer._core.tasks import finish
from aioinformer.client.transport import READ_TIMEOUT
from aioinformer.errors import AlreadyStartedError, ClientClosedError, WrongEventLoopError
from aioinformer.events import series
from aioinformer.events.series import FINISH_TIME, REFRESH_TIME
from aioinformer.testing import Simulation, simulate
from tests.virtual_time import simulate_scenario

from ..leaderelection.world import Link
from .worlds import CONTROLLER, about, events, idle, recorder, verbs


@simulate_scenario
async def test_event_has_all_fields(world: Simulation) -> None:
    async with recorder(world) as subject:
        await asyncio.sleep(1.5)
        subject.event(about(), "Normal", "Provisioned", "10 Gi", action="Provision", related=about("b"))
        await idle(subject)
    (event,) = events(world)
    assert event["metadata"]["name"] == f"a.{(1_750_000_001_500_000) * 1000:x}"
    assert event["metadata"]["namespace"] == "default"
    assert event["eventTime"] == "2025-06-15T15:06:41.500000Z"
    assert event["regarding"] == {
        "apiVersion": "example.com/v1",
        "kind": "Cave",
        "namespace": "default",
        "name": "a",
        "uid": "uid-a",
        "resourceVersion": "7",
    }
    assert event["related"]["name"] == "b"
    said = {name: event[name] for name in ("type", "reason", "action", "note")}
    assert said == {"type": "Normal", "reason": "Provisioned", "action": "Provision", "note": "10 Gi"}
    assert (event["reportingController"], event["reportingInstance"]) == (CONTROLLER, "one")
    assert "series" not in event
    state = subject.state
    assert (state.recorded, state.sent, state.dropped, state.last_error) == (1, 1, 0, None)


@simulate_scenario
async def test_event_time_follows_the_clock_after_it_was_set_back(world: Simulation) -> None:
    offset = 3600.0
    async with recorder(world, wall=lambda: 1_750_000_000.0 + offset) as subject:
        subject.event(about(), "Normal", "One", "")
        offset = 0.0
        for reason in ("Two", "Three", "Three"):
            subject.event(about(), "Normal", reason, "")
            await idle(subject)
    shown = {event["reason"]: event for event in events(world)}
    assert len({event["metadata"]["name"] for event in shown.values()}) == 3
    assert [shown[reason]["eventTime"][:16] for reason in ("One", "Two")] == [
        "2025-06-15T16:06",
        "2025-06-15T15:06",
    ]
    assert shown["Three"]["series"]["lastObservedTime"] == shown["Three"]["eventTime"]


@simulate_scenario
async def test_second_event_is_written_at_once_and_the_count_at_the_end_of_the_series(
    world: Simulation,
) -> None:
    async with recorder(world, burst=3) as subject:
        for number in range(30):
            # The versions differ, as when the object's status changes each time.
            subject.event(about(version=str(number)), "Warning", "Failed", "no disk")
            if number < 3:
                await idle(subject)
                (event,) = events(world)
                assert event.get("series", {}).get("count", 1) == min(number + 1, 2)
            await asyncio.sleep(1)
        assert verbs(world) == ["create", "patch"]
        (event,) = events(world)
        assert event["note"] == "no disk"
        assert event["series"]["lastObservedTime"].startswith("2025-06-15T15:06:41")
        await asyncio.sleep(2 * FINISH_TIME)
        assert verbs(world) == ["create", "patch", "patch"]
        (event,) = events(world)
        assert event["series"]["count"] == 30
        assert event["series"]["lastObservedTime"].startswith("2025-06-15T15:07:09")
        assert subject.state.series == 0
        subject.event(about(), "Warning", "Failed", "no disk")
        await idle(subject)
        assert len(events(world)) == 2


@simulate_scenario
async def test_events_with_different_notes_are_separate(world: Simulation) -> None:
    async with recorder(world) as subject:
        for note in ("disk-1 is full", "disk-2 is full", "disk-1 is full"):
            subject.event(about(), "Warning", "Failed", note)
            await idle(subject)
        shown = {event["note"]: event.get("series", {}).get("count", 1) for event in events(world)}
        assert shown == {"disk-1 is full": 2, "disk-2 is full": 1}


@simulate_scenario
async def test_varying_notes_do_not_use_up_the_budget_of_other_events(world: Simulation) -> None:
    async with recorder(world, burst=5, refill=60) as subject:
        for number in range(600):
            subject.event(about(), "Normal", "Synced", f"in {number} ms")
            await asyncio.sleep(1)
        notes = [event["note"] for event in events(world)]
        assert 10 <= len(notes) <= 20
        assert "in 0 ms" in notes
        assert any(
            note in notes for note in (f"in {number} ms" for number in range(540, 600))
        )  # a new note each minute
        assert subject.state.over_budget == 600 - len(notes)
        for number in range(5):
            subject.event(about(), "Normal", f"Reason{number}", "")
        await idle(subject)
        assert {f"Reason{number}" for number in range(4)} <= {event["reason"] for event in events(world)}
        await asyncio.sleep(2 * FINISH_TIME)
        assert subject.state.series == 0
        assert not subject._cache.kinds


@simulate_scenario
async def test_different_reasons_types_actions_and_objects_are_separate(world: Simulation) -> None:
    async with recorder(world) as subject:
        subject.event(about(), "Normal", "One", "")
        subject.event(about(), "Warning", "One", "")
        subject.event(about(), "Normal", "Two", "")
        subject.event(about(), "Normal", "One", "", action="Act")
        subject.event(about("b"), "Normal", "One", "")
        subject.event(about(), "Normal", "One", "", related=about("b"))
        await idle(subject)
        assert len(events(world)) == 6
        assert len({event["metadata"]["name"] for event in events(world)}) == 6


@simulate_scenario
async def test_continuing_series_is_refreshed_before_it_expires(world: Simulation) -> None:
    async with recorder(world) as subject:
        for _ in range(75):
            subject.event(about(), "Normal", "Beat", "")
            await asyncio.sleep(60)
        (event,) = events(world)
        assert 66 <= event["series"]["count"] <= 74
        assert verbs(world) == ["create", "patch", "patch", "patch"]
        assert 2 * REFRESH_TIME < 75 * 60
        # The Event has expired: it is created again, with the whole series.
        world.server.delete("events.k8s.io/v1", "events", event["metadata"]["name"])
        await asyncio.sleep(2 * FINISH_TIME)
        (event,) = events(world)
        assert event["series"]["count"] == 75


@simulate_scenario
async def test_series_without_a_budget_is_refreshed(world: Simulation) -> None:
    """The second event found no budget."""
    async with recorder(world, burst=1, refill=1e6) as subject:
        for _ in range(75):
            subject.event(about(), "Normal", "Beat", "")
            await asyncio.sleep(60)
        assert verbs(world) == ["create", "patch", "patch"]
        (event,) = events(world)
        assert 66 <= event["series"]["count"] <= 74


@simulate_scenario
async def test_waiting_repetitions_are_one_request(world: Simulation) -> None:
    """Events recorded before the recorder runs, or faster than the server accepts them."""
    subject = recorder(world)
    for _ in range(5):
        subject.event(about(), "Normal", "Early", "")
    async with subject:
        await idle(subject)
        (event,) = events(world)
        assert event["series"]["count"] == 5
        assert verbs(world) == ["create"]


@simulate_scenario
async def test_object_has_a_budget(world: Simulation) -> None:
    async with recorder(world, burst=5, refill=60) as subject:
        for number in range(20):
            subject.event(about(), "Normal", f"Reason{number}", "")
            subject.event(about("b"), "Normal", "Same", "")
        subject.event(about(), "Warning", "Other", "")
        await idle(subject)
        assert len(events(world)) == 5 + 1 + 1
        assert subject.state.over_budget == 15
        assert subject.state.dropped == 15
        await asyncio.sleep(121)
        for number in range(20):
            subject.event(about(), "Normal", f"Again{number}", "")
        await idle(subject)
        assert len(events(world)) == 7 + 2
        # Repetitions of a known event are counted even without budget.
        for _ in range(3):
            subject.event(about(), "Normal", "Again0", "")
        await asyncio.sleep(3 * FINISH_TIME)
        (again,) = [event for event in events(world) if event["reason"] == "Again0"]
        assert again["series"]["count"] == 4


@simulate_scenario
async def test_refill_of_zero_means_no_budget(world: Simulation) -> None:
    async with recorder(world, refill=0) as subject:
        for number in range(100):
            subject.event(about(), "Normal", f"Reason{number}", "")
        await idle(subject)
        assert len(events(world)) == 100


@simulate_scenario
async def test_full_queue_drops_and_counts_new_events_w27(world: Simulation) -> None:
    world.network.refuse()
    async with recorder(world, queue_limit=10, flush_timeout=60) as subject:
        for number in range(25):
            subject.event(about(f"o{number}"), "Normal", "Reason", "")
            subject.event(about(f"o{number}"), "Normal", "Reason", "")
        assert subject.state.queued == 10
        assert subject.state.overflowed == 30
        world.network.accept()
    assert {event["regarding"]["name"] for event in events(world)} == {f"o{number}" for number in range(10)}
    assert {event["series"]["count"] for event in events(world)} == {2}


def test_count_of_a_series_dropped_during_its_write_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MOST_SERIES", 1)

    async def scenario(world: Simulation) -> None:
        world.server.faults.delay(20, verb="create", times=1)
        async with recorder(world) as subject:
            for name in ("a", "a", "a", "b"):
                subject.event(about(name), "Normal", "One", "")
                await asyncio.sleep(1)
            await idle(subject)
            assert {
                event["regarding"]["name"]: event.get("series", {}).get("count") for event in events(world)
            } == {
                "a": 3,
                "b": None,
            }
            assert (subject.state.series, subject.state.dropped) == (1, 0)

    simulate(scenario, seed=2, shrink=False)


@simulate_scenario
async def test_series_that_end_in_an_outage_wait_for_room(world: Simulation) -> None:
    """More series end together than the queue may hold; none is lost."""
    async with recorder(world, queue_limit=10) as subject:
        for number in range(25):
            for _ in range(3):
                subject.event(about(f"o{number}"), "Normal", "Reason", "")
                await idle(subject)
        world.network.refuse()
        await asyncio.sleep(2 * FINISH_TIME)
        assert subject.state.queued == 10
        world.network.accept()
        await asyncio.sleep(4 * FINISH_TIME)
        assert subject.state.series == subject.state.dropped == 0
        assert [event["series"]["count"] for event in events(world)] == [3] * 25


@simulate_scenario
async def test_events_are_sent_after_an_outage(world: Simulation) -> None:
    async with recorder(world) as subject:
        world.network.refuse()
        subject.event(about(), "Normal", "One", "")
        await asyncio.sleep(65)
        subject.event(about(), "Normal", "Two", "")
        assert not events(world)
        assert "refused" in str(subject.state.last_error).lower()
        world.network.accept()
        await asyncio.sleep(13)
        assert {event["reason"] for event in events(world)} == {"One", "Two"}


@simulate_scenario
async def test_event_is_dropped_after_many_tries(world: Simulation) -> None:
    async with recorder(world) as subject:
        world.network.refuse()
        subject.event(about(), "Normal", "One", "")
        await asyncio.sleep(12 * 12.5)
        state = subject.state
        assert (state.given_up, state.queued, state.series) == (1, 0, 0)
        world.network.accept()


@simulate_scenario
async def test_lost_answer_makes_no_second_event(world: Simulation) -> None:
    link = Link(world.new_client().transport)
    async with EventRecorder(Client(link), CONTROLLER) as subject:
        link.back = False
        subject.event(about(), "Normal", "One", "")
        await asyncio.sleep(5)
        assert len(events(world)) == 1
        assert subject.state.queued == 1
        link.back = True
        subject.event(about(), "Normal", "One", "")
        await asyncio.sleep(READ_TIMEOUT + 15)
        (event,) = events(world)
        assert event["series"]["count"] == 2
        assert (subject.state.refused, subject.state.queued) == (0, 0)
        assert verbs(world) == ["create", "create", "patch"]


@simulate_scenario
async def test_server_errors_are_retried_and_other_events_go_first(world: Simulation) -> None:
    async with recorder(world) as subject:
        world.server.faults.fail(503, verb="create", resource="events.events.k8s.io", retry_after=30)
        subject.event(about(), "Normal", "One", "")
        subject.event(about(), "Normal", "Two", "")
        await asyncio.sleep(29)
        assert not events(world)
        await asyncio.sleep(2)
        by_version = sorted(events(world), key=lambda event: int(event["metadata"]["resourceVersion"]))
        assert [event["reason"] for event in by_version] == ["Two", "One"]


def in_namespaces(world: Simulation, **count: int) -> list[dict[str, str]]:
    """Return pods to report events about, some per namespace."""
    for name in count:
        world.server.create("v1", "namespaces", {"metadata": {"name": name}})
    return [
        {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": f"p{number}"}
        for namespace in count
        for number in range(count[namespace])
    ]


@simulate_scenario
async def test_failing_events_do_not_delay_others(world: Simulation) -> None:
    pods = in_namespaces(world, bad=30, good=1)
    world.server.faults.fail(
        500, times=None, verb="create", matching=lambda request: request.namespace == "bad"
    )
    async with recorder(world) as subject:
        for pod in pods[:-1]:
            subject.event(pod, "Normal", "One", "")
        await asyncio.sleep(60)
        tries = verbs(world).count("create")
        assert 30 * 4 <= tries <= 30 * 6
        for number in range(20):
            subject.event(pods[-1], "Normal", f"Reason{number}", "")
            await world.eventually(lambda: len(events(world)) == number + 1, within=0.5, every=0.01)  # noqa: B023
        await asyncio.sleep(120)
        assert (subject.state.given_up, subject.state.queued) == (30, 0)


@simulate_scenario
async def test_server_in_trouble_is_spared_a_request_per_event(world: Simulation) -> None:
    world.server.faults.fail(503, times=None, verb="create", resource="events.events.k8s.io")
    async with recorder(world, refill=0, flush_timeout=1) as subject:
        for number in range(1000):
            subject.event(about(), "Normal", f"Reason{number}", "")
        await asyncio.sleep(60)
        assert 400 < verbs(world).count("create") < 600


@simulate_scenario
async def test_refusal_is_logged_once(world: Simulation) -> None:
    rule = world.server.forbid("create", "events.events.k8s.io")
    async with recorder(world) as subject:
        for number in range(5):
            subject.event(about(f"o{number}"), "Normal", "One", "")
            await idle(subject)
        assert subject.state.refused == 5
        rule.remove()
        world.server.create(
            "v1", "namespaces", {"metadata": {"name": "going", "finalizers": ["example.com/x"]}}
        )
        gone = {"apiVersion": "v1", "kind": "Pod", "namespace": "gone", "name": "p"}
        for _ in range(2):
            subject.event(gone, "Normal", "One", "")
            await idle(subject)
        assert subject.state.refused == 7
        subject.event(about(), "Normal", "One", "")
        await idle(subject)
        assert len(events(world)) == 1
    messages = [
        str(entry) for entry in world.history if "an event was refused" in str(entry) and "WARN" in str(entry)
    ]
    assert len(messages) == 2, messages


@simulate_scenario
async def test_leaving_sends_waiting_events_and_last_counts(world: Simulation) -> None:
    async with recorder(world) as subject:
        for _ in range(9):
            subject.event(about(), "Normal", "One", "")
            await asyncio.sleep(1)
        subject.event(about(), "Normal", "Last", "")
    assert {event["reason"]: event.get("series", {}).get("count") for event in events(world)} == {
        "One": 9,
        "Last": None,
    }


@simulate_scenario
async def test_leaving_ends_at_flush_timeout(world: Simulation) -> None:
    world.network.refuse()
    began = world.now
    async with recorder(world, flush_timeout=2.0) as subject:
        subject.event(about(), "Normal", "One", "")
        await asyncio.sleep(1)
    assert world.now - began < 3.1
    assert (subject.state.given_up, subject.state.queued) == (1, 0)
    world.network.accept()


@simulate_scenario
async def test_cancelled_scope_lets_run_send_waiting_events(world: Simulation) -> None:
    """A scope of anyio cancels every await, so also those of a cleanup."""
    subject = recorder(world)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(subject.run)
            await asyncio.sleep(1)
            subject.event(about(), "Normal", "One", "")
            scope.cancel()
    assert (subject.state.sent, subject.state.given_up) == (1, 0)


@simulate_scenario
async def test_cancelled_scope_lets_recorder_left_before_its_first_step_send(world: Simulation) -> None:
    subject = recorder(world)
    subject.event(about(), "Normal", "One", "")
    with anyio.CancelScope() as scope:
        async with subject:
            scope.cancel()
    assert (subject.state.sent, subject.state.given_up) == (1, 0)


def test_second_cancellation_of_run_drops_waiting_events_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: Simulation) -> None:
        subject = recorder(world)
        running = asyncio.create_task(subject.run())
        await asyncio.sleep(1)
        world.network.refuse()
        subject.event(about(), "Normal", "One", "")
        running.cancel()
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.wait({running})
        world.network.accept()
        assert running.cancelled()
        assert subject.state.given_up == 1

    simulate(scenario, seed=2, shrink=False)
    assert "1 events were dropped unsent: it was cancelled again" in caplog.text


@simulate_scenario
async def test_event_that_fails_on_leaving_does_not_stop_others(world: Simulation) -> None:
    pods = in_namespaces(world, bad=20, good=20)
    world.server.faults.fail(
        500, times=None, verb="create", matching=lambda request: request.namespace == "bad"
    )
    async with recorder(world) as subject:
        for pod in pods:
            subject.event(pod, "Normal", "One", "")
    assert (subject.state.sent, subject.state.given_up) == (20, 20)


@simulate_scenario
async def test_leaving_retries_until_flush_timeout(world: Simulation) -> None:
    for status, retry_after in ((503, None), (429, 1)):
        world.server.faults.fail(
            status, verb="create", resource="events.events.k8s.io", retry_after=retry_after
        )
        async with recorder(world) as subject:
            subject.event(about(), "Normal", "One", "")
            began = world.now
        assert (subject.state.sent, subject.state.given_up) == (1, 0)
        assert world.now - began < 1.5
    # Without time left, it does not wait.
    world.server.faults.fail(429, verb="create", resource="events.events.k8s.io", retry_after=6)
    async with recorder(world) as subject:
        subject.event(about(), "Normal", "One", "")
        began = world.now
    assert (subject.state.sent, subject.state.given_up) == (0, 1)
    assert world.now - began < 0.5


@simulate_scenario
async def test_recorder_runs_once(world: Simulation) -> None:
    async with recorder(world) as subject:
        await asyncio.sleep(1)
        with pytest.raises(AlreadyStartedError):
            await subject.run()
        subject.event(about(), "Normal", "One", "")
    subject.event(about(), "Normal", "Two", "")
    assert (subject.state.sent, subject.state.given_up, subject.state.queued) == (1, 1, 0)
    with pytest.raises(AlreadyStartedError):
        await subject.run()


@simulate_scenario
async def test_second_start_does_not_end_the_first(world: Simulation) -> None:
    subject = recorder(world)
    running = asyncio.create_task(subject.run())
    await asyncio.sleep(1)
    with pytest.raises(AlreadyStartedError):
        async with subject:
            await asyncio.sleep(1)
    subject.event(about(), "Normal", "One", "")
    await idle(subject)
    assert (subject.state.sent, subject.state.given_up) == (1, 0)
    await finish(running)


@simulate_scenario
async def test_recorder_left_before_its_first_step_sends_waiting_events(world: Simulation) -> None:
    async with recorder(world) as subject:
        subject.event(about(), "Normal", "One", "")
    assert (subject.state.sent, subject.state.given_up) == (1, 0)


@simulate_scenario
async def test_closed_client_ends_the_recorder(world: Simulation) -> None:
    client = world.new_client()
    subject = EventRecorder(client, CONTROLLER)
    with pytest.raises(ClientClosedError):
        async with subject:
            await client.close()
            subject.event(about(), "Normal", "One", "")
            await asyncio.sleep(1)
    assert subject.state.given_up == 1


@simulate_scenario
async def test_names_and_notes_are_made_valid(world: Simulation) -> None:
    async with EventRecorder(world.client, CONTROLLER, "ü" * 100, random=world.random) as subject:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "system:x"},
        }
        subject.event(role, "Normal", "ü" * 64, "ä" * 2000)
        subject.event(about("x" * 250), "Normal", "One", "")
        await idle(subject)
        first, second = sorted(events(world), key=lambda event: len(event.get("note", "")), reverse=True)
        assert (first["metadata"]["namespace"], first["regarding"]["name"]) == ("default", "system:x")
        assert len(first["metadata"]["name"]) == len(second["metadata"]["name"]) == 32
        assert len(first["note"].encode()) <= 1024
        assert first["note"].endswith("ää…")
        assert first["reportingInstance"] == "ü" * 62 + "…"


@simulate_scenario
async def test_taken_name_loses_no_event(world: Simulation) -> None:
    """Two processes write in the same microsecond."""
    one, two = (recorder(world, wall=lambda: 1_750_000_000.0) for _ in range(2))
    async with one, two:
        one.event(about(), "Normal", "One", "")
        await idle(one)
        two.event(about(), "Normal", "Two", "")
        await idle(two)
        assert {event["reason"] for event in events(world)} == {"One", "Two"}
        assert (two.state.sent, two.state.dropped) == (1, 0)


@simulate_scenario
async def test_invalid_unicode_is_replaced(world: Simulation) -> None:
    """For example, the name of a file that is not UTF-8."""
    async with recorder(world) as subject:
        subject.event(about(), "Warning", "Failed", "cannot open a\udcff")
        await idle(subject)
        (event,) = events(world)
        assert event["note"] == "cannot open a?"
        with pytest.raises(ConfigError, match="reason must have 1 to 128 bytes of text"):
            subject.event(about(), "Warning", "Failed\udcff", "")


@simulate_scenario
async def test_invalid_events_are_refused(world: Simulation) -> None:
    subject = recorder(world)
    bad: list[tuple[Any, ...]] = [
        (about(), "Error", "One", ""),
        (about(), "Normal", "", ""),
        (about(), "Normal", "x" * 129, ""),
        (about(), "Normal", "ü" * 65, ""),
        (about(), "Normal", "One", None),
        ({"metadata": {"name": "a"}}, "Normal", "One", ""),
        ({"kind": "Pod"}, "Normal", "One", ""),
        (KubeObject.from_dict({"kind": "Pod", "metadata": {}}), "Normal", "One", ""),
        *(
            (about(metadata={"name": "a", "namespace": bad}), "Normal", "One", "")
            for bad in ("a/b", "..", "%")
        ),
        ({"kind": "Pod", "name": "a", "namespace": "Team A"}, "Normal", "One", ""),
        *(
            ({"kind": "Pod", "name": "a", field: "\udcff"}, "Normal", "One", "")
            for field in ("uid", "fieldPath")
        ),
        ({"metadata": {"name": "a\udcff"}, "kind": "Pod"}, "Normal", "One", ""),
    ]
    for arguments in bad:
        with pytest.raises(ConfigError):
            subject.event(*arguments)
    with pytest.raises(ConfigError, match=r"not .*: read with metadata_only=True"):
        subject.event(about(apiVersion="meta.k8s.io/v1", kind="PartialObjectMetadata"), "Normal", "One", "")
    assert subject.state.recorded == 0
    for name in ("", "my controller", "a/b/c", "example.com/", "Example.com/a", "a" * 64):
        with pytest.raises(ConfigError, match="controller must"):
            EventRecorder(world.client, name)
    with pytest.raises(ConfigError, match="instance must be a string"):
        EventRecorder(world.client, CONTROLLER, 5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="burst must be a whole number, 1 or more, not 0"):
        EventRecorder(world.client, CONTROLLER, burst=0)
    assert repr(subject) == f"<EventRecorder {CONTROLLER}>"


def test_recorder_belongs_to_one_event_loop() -> None:
    subject = EventRecorder(Client.from_url("http://127.0.0.1:1"), CONTROLLER)
    with pytest.raises(WrongEventLoopError):
        subject.event(about(), "Normal", "One", "")


async def storm(world: Simulation) -> None:
    """Under random faults, each recorded event is either counted as dropped, or on the server with its count."""
    subject = recorder(world, flush_timeout=600, refill=0)
    expected: dict[str, int] = {}
    async with subject:
        trouble = asyncio.create_task(world.storm(300))
        while not trouble.done():
            name = f"o{world.random.randrange(6)}"
            subject.event(about(name), "Normal", "One", "")
            expected[name] = expected.get(name, 0) + 1
            await asyncio.sleep(world.random.expovariate(0.5))
        await trouble
    assert subject.state.recorded == sum(expected.values())
    assert subject.state.queued == 0
    written: dict[str, int] = {}
    for event in events(world):
        name = event["regarding"]["name"]
        written[name] = written.get(name, 0) + event.get("series", {}).get("count", 1)
    world.note("recorder", f"dropped {subject.state.dropped}")
    if not subject.state.dropped:
        assert written == expected
    assert set(written) <= set(expected)
    assert sum(written.values()) <= sum(expected.values())


@pytest.mark.parametrize("seed", range(6))
def test_events_are_sent_or_counted_in_a_storm(seed: int) -> None:
    simulate(storm, seed=seed)
