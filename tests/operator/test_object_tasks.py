"""operator/object_tasks.py: a coroutine that runs as long as its object exists and matches."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject
from aioinformer.operator import Context, Manager, Operator, Request, Result
from aioinformer.operator.object_tasks import RECOVERED_AFTER
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .worlds import StubbornReconcile, change, create, elector

WATCHED: dict[str, Any] = {"metadata": {"labels": {"watched": "yes"}}}
UNWATCHED: dict[str, Any] = {"metadata": {"labels": {"watched": "no"}}}


def is_watched(obj: KubeObject) -> bool:
    return obj.metadata.labels.get("watched") == "yes"


class Tasks:
    """Tasks that record which objects they run for.

    Attributes:
        running: The uid of each object that has a task, by key.
        started: The keys in the order of their starts.
        fails: Keys whose tasks fail after a second.
        returns: Keys whose tasks return after a second.
        interrupted: Whether a clean-up after a cancellation was cancelled.
    """

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self.started: list[str] = []
        self.fails: set[str] = set()
        self.returns: set[str] = set()
        self.interrupted = False

    async def __call__(self, request: Request[KubeObject]) -> None:
        assert request.object is not None
        key = request.key
        assert key not in self.running, "never twice at once"
        self.running[key] = request.object.uid
        self.started.append(key)
        task = asyncio.current_task()
        assert task is not None
        try:
            await asyncio.sleep(1)
            while key not in self.returns:
                if key in self.fails:
                    raise ValueError("no connection")
                await asyncio.sleep(1)
        finally:
            cancellations = task.cancelling()
            try:
                await asyncio.sleep(0.1)  # a clean-up that awaits
            finally:
                self.interrupted |= cancellations > 0 and task.cancelling() > cancellations
                del self.running[key]


@asynccontextmanager
async def run_tasks(
    world: Simulation, function: Any, when: Any = is_watched, **options: Any
) -> AsyncIterator[Manager]:
    operator = Operator("keeper", events=False)
    operator.task("configmaps", when=when, name="tasks")(function)
    async with operator.manager(world.client, **options) as manager:
        yield manager


@simulate_scenario
async def test_a_task_runs_while_its_object_exists_and_matches(world: Simulation) -> None:
    tasks = Tasks()
    create(world, "a", **WATCHED)
    create(world, "b", **UNWATCHED)
    async with run_tasks(world, tasks):
        await world.eventually(lambda: tasks.running.keys() == {"default/a"})
        change(world, "b", **WATCHED)
        await world.eventually(lambda: tasks.running.keys() == {"default/a", "default/b"})
        change(world, "a", data={"changed": "yes"})
        await asyncio.sleep(60)
        assert tasks.started == ["default/a", "default/b"], "a change that still matches starts nothing"
        change(world, "a", **UNWATCHED)
        await world.eventually(lambda: tasks.running.keys() == {"default/b"})
        world.server.delete("v1", "configmaps", "b")
        await world.eventually(lambda: not tasks.running)


@simulate_scenario
async def test_another_object_of_the_same_name_has_a_task_of_its_own(world: Simulation) -> None:
    tasks = Tasks()
    create(world, "a", **WATCHED)
    async with run_tasks(world, tasks):
        await world.eventually(lambda: len(tasks.running) == 1)
        world.server.delete("v1", "configmaps", "a")
        uid = create(world, "a", **WATCHED)["metadata"]["uid"]
        await world.eventually(lambda: tasks.running == {"default/a": uid})


@simulate_scenario
async def test_a_task_ends_when_its_object_is_marked_for_deletion(world: Simulation) -> None:
    tasks = Tasks()
    create(world, "a", metadata={**WATCHED["metadata"], "finalizers": ["example.com/other"]})
    async with run_tasks(world, tasks):
        await world.eventually(lambda: len(tasks.running) == 1)
        world.server.delete("v1", "configmaps", "a")
        await world.eventually(lambda: not tasks.running)
        await asyncio.sleep(60)
        assert tasks.started == ["default/a"]


@simulate_scenario
async def test_a_task_that_fails_starts_again_and_is_forgiven_after_a_minute(world: Simulation) -> None:
    tasks = Tasks()
    tasks.fails.add("default/a")
    create(world, "a", **WATCHED)
    async with run_tasks(world, tasks) as manager:
        (controller,) = manager.controllers
        await world.eventually(lambda: len(tasks.started) == 5)
        assert [failing.key for failing in controller.failing()] == ["default/a"]
        assert controller.state.failed >= 4
        tasks.fails.clear()
        await asyncio.sleep(RECOVERED_AFTER / 2)
        assert controller.state.failing == 1, "it may fail again"
        await asyncio.sleep(RECOVERED_AFTER)
        assert (controller.state.failing, controller.queue.num_requeues("default/a")) == (0, 0)
        assert tasks.running


@simulate_scenario
async def test_a_task_that_returns_is_not_called_again_for_its_object(world: Simulation) -> None:
    tasks = Tasks()
    tasks.returns.add("default/a")
    create(world, "a", **WATCHED)
    async with run_tasks(world, tasks):
        await world.eventually(lambda: bool(tasks.started) and not tasks.running)
        change(world, "a", data={"changed": "yes"})
        await asyncio.sleep(60)
        assert len(tasks.started) == 1
        change(world, "a", **UNWATCHED)
        await asyncio.sleep(1)
        change(world, "a", **WATCHED)
        await world.eventually(lambda: len(tasks.started) == 2)


@simulate_scenario
async def test_tasks_have_no_limit_of_concurrency_and_leave_no_idle_workers(world: Simulation) -> None:
    tasks = Tasks()
    for number in range(100):
        create(world, f"a-{number}", **WATCHED)
    async with run_tasks(world, tasks) as manager:
        await world.eventually(lambda: len(tasks.running) == 100)
        state = manager.controllers[0].state
        assert (state.concurrency, state.workers) == (None, 101)
        assert "101 workers" in str(state)
        for number in range(90):
            world.server.delete("v1", "configmaps", f"a-{number}")
        await world.eventually(lambda: len(tasks.running) == 10)
        await asyncio.sleep(1)
        assert manager.controllers[0].state.workers == 11
        assert "max_concurrent_reconciles" not in manager.metrics()


@simulate_scenario
async def test_an_object_that_changed_while_its_task_runs_waits_for_no_worker(world: Simulation) -> None:
    create(world, "a", **WATCHED)
    tasks = Tasks()
    async with run_tasks(world, tasks) as manager:
        await asyncio.sleep(2)
        change(world, "a", data={"more": "x"})
        await asyncio.sleep(3600)
        assert tasks.started == ["default/a"]
        assert manager.state.controllers[0].queued_seconds == 0


@simulate_scenario
async def test_the_end_of_the_manager_cancels_tasks_without_a_grace_period(world: Simulation) -> None:
    tasks = Tasks()
    create(world, "a", **WATCHED)
    async with run_tasks(world, tasks, grace_period=3600):
        await world.eventually(lambda: len(tasks.running) == 1)
        ended = world.now
    assert world.now - ended < 5
    assert not tasks.running


def test_a_task_that_ignores_its_cancellation_is_stuck_and_not_doubled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        stubborn = StubbornReconcile()
        create(world, "a", **WATCHED)
        async with run_tasks(world, stubborn) as manager:
            await world.eventually(lambda: bool(manager.controllers[0].state.running))
            change(world, "a", **UNWATCHED)
            change(world, "a", **WATCHED)
            change(world, "a", **UNWATCHED)
            await world.eventually(lambda: bool(manager.state.controllers[0].stuck), within=60)
            assert "is stuck at default/a" in str(manager.healthy())
            stubborn.gives_in = True
            await world.eventually(lambda: not manager.state.controllers[0].running)

    with caplog.at_level(logging.ERROR):
        scenario()
    assert "tasks: the reconcile of default/a ignores its cancellation for 10 s" in caplog.text


@simulate_scenario
async def test_only_the_leader_runs_tasks(world: Simulation) -> None:
    first, second = Tasks(), Tasks()
    create(world, "a", **WATCHED)
    async with run_tasks(world, first, leader_election=elector(world.client)):
        await world.eventually(lambda: len(first.running) == 1)
        async with run_tasks(world, second, leader_election=elector(world.new_client())):
            await asyncio.sleep(60)
            assert not second.running
    assert not first.running


@simulate_scenario
async def test_a_condition_that_fails_ends_no_task_and_is_seen(world: Simulation) -> None:
    tasks = Tasks()
    create(world, "a", **WATCHED)

    def when(obj: KubeObject) -> bool:
        if obj.get("data"):
            raise ValueError("unknown data")
        return True

    async with run_tasks(world, tasks, when) as manager:
        await world.eventually(lambda: len(tasks.running) == 1)
        change(world, "a", data={"changed": "yes"})
        await world.eventually(lambda: manager.controllers[0].state.triggers[0].failed == 1)
        await asyncio.sleep(60)
        assert tasks.running
        create(world, "b", data={"changed": "yes"})
        await world.eventually(lambda: manager.controllers[0].state.failing == 1)


@simulate_scenario
async def test_whatever_happens_each_object_that_matches_has_one_task(world: Simulation) -> None:
    choose = random.Random(world.seed)
    names = [f"a-{number}" for number in range(5)]
    tasks = Tasks()
    exists: dict[str, bool] = {}
    async with run_tasks(world, tasks, leader_election=elector(world.client)) as manager:
        await world.eventually(lambda: manager.state.leading)
        for _ in range(150):
            name = choose.choice(names)
            watched = choose.random() < 0.6
            labels = WATCHED if watched else UNWATCHED
            match choose.choice(("change", "delete", "recreate", "fail", "recover", "other leader")):
                case "fail":
                    tasks.fails.add(f"default/{name}")
                case "recover":
                    tasks.fails.discard(f"default/{name}")
                case "other leader":
                    lease = world.server.get("coordination.k8s.io/v1", "leases", "operator")
                    lease["spec"]["holderIdentity"] = "other"
                    world.server.update("coordination.k8s.io/v1", "leases", lease)
                case "delete" if name in exists:
                    del exists[name]
                    world.server.delete("v1", "configmaps", name)
                case "recreate" if name in exists:
                    world.server.delete("v1", "configmaps", name)
                    create(world, name, **labels)
                    exists[name] = watched
                case _:
                    change(world, name, **labels) if name in exists else create(world, name, **labels)
                    exists[name] = watched
            await asyncio.sleep(choose.choice((0, 0, 0.05, 1, 30)))
        tasks.fails.clear()
        wanted = {f"default/{name}" for name, watched in exists.items() if watched}
        await asyncio.sleep(2000)
        assert tasks.running.keys() == wanted
        assert not tasks.interrupted, "a task is cancelled once"
        for key, uid in tasks.running.items():
            assert world.server.get("v1", "configmaps", key.partition("/")[2])["metadata"]["uid"] == uid


def test_mistakes_of_a_task_are_named() -> None:
    operator = Operator("keeper")

    async def is_wanted(obj: KubeObject) -> bool:
        return True

    with pytest.raises(ConfigError, match="when"):
        operator.task("configmaps", when=is_wanted)(Tasks())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="every must be a number of seconds above 0, not 0"):
        operator.timer("configmaps", every=0)(Tasks())
    with pytest.raises(TypeError, match="concurrency"):
        operator.task("configmaps", concurrency=3)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="task takes a resource"):
        operator.task(is_wanted)  # type: ignore[call-overload]


def test_a_task_needs_the_right_to_read_its_objects() -> None:
    operator = Operator("keeper", events=False)

    @operator.task("pods")
    async def keep(request: Request[KubeObject], context: Context) -> Result | None: ...

    @operator.timer("secrets", every=60)
    async def look(request: Request[KubeObject]) -> None: ...

    rights = operator.rights(leader_election=False)
    assert {(right.resource, verb) for right in rights for verb in right.verbs} == {
        (resource, verb) for resource in ("pods", "secrets") for verb in ("get", "list", "watch")
    }
