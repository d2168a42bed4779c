"""operator/runs.py and workers.py: reconciles that exceed their timeout."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import KubeObject
from aioinformer.operator import ReconcileTimeout, Request, Result
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .worlds import Reconciler, StubbornReconcile, change, create, quiet, return_or_raise, run_controller


@simulate_scenario
async def test_hanging_reconcile_is_cancelled_and_retried(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler(lambda request: asyncio.sleep(3600) if len(reconciler.seen) < 3 else None)
    async with run_controller(world, reconciler, timeout=60) as controller:
        await asyncio.sleep(50)
        (run,) = controller.state.running
        assert (run.key, run.overdue) == ("default/a", False)
        assert run.seconds == pytest.approx(50, abs=2)
        await quiet(controller, 100)
        state = controller.state
        assert (len(reconciler.seen), state.timed_out, state.failed, state.failing) == (3, 2, 2, 0)
        assert isinstance(state.last_error, ReconcileTimeout)
        assert str(state.last_error) == "tests: default/a took longer than 60 s"


@simulate_scenario
async def test_each_reconcile_has_its_own_deadline(world: Simulation) -> None:
    ended: dict[str, float] = {}

    async def act(request: Request[KubeObject]) -> None:
        began = world.now
        try:
            await asyncio.sleep(3600 if request.name == "slow" else 40)
        finally:
            ended.setdefault(request.name, world.now - began)

    reconciler = Reconciler(act)
    async with run_controller(world, reconciler, timeout=60, concurrency=2):
        create(world, "quick")
        await asyncio.sleep(30)
        create(world, "slow")
        await asyncio.sleep(15)
        create(world, "quicker")
        await asyncio.sleep(80)
        assert ended == pytest.approx({"quick": 40, "slow": 60, "quicker": 40}, abs=0.1)


@pytest.mark.parametrize("made_of_it", [None, Result(requeue_after=3600), 5, ValueError("gave up")], ids=repr)
def test_timed_out_reconcile_fails_whatever_it_returns(made_of_it: Any) -> None:
    """At once, or after some seconds."""

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        create(world, "a")
        seconds = iter([0, 5])

        async def act(request: Request[KubeObject]) -> Any:
            if (cleaning_up := next(seconds, None)) is None:
                return None
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.sleep(cleaning_up)
            return return_or_raise(made_of_it)

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler, timeout=60) as controller:
            await quiet(controller, 200)
            state = controller.state
            assert (len(reconciler.seen), state.timed_out, state.failed, state.failing) == (3, 2, 2, 0)
            assert (state.workers, state.running, state.queue.delayed) == (1, (), 0)
            assert isinstance(state.last_error, ReconcileTimeout)
            assert str(state.last_error).startswith("tests: default/a took longer than 60 s")
            if isinstance(made_of_it, Exception):
                assert state.last_error.__cause__ is made_of_it
                assert str(state.last_error).endswith("; when cancelled, it raised ValueError: gave up")

    scenario()


@simulate_scenario
async def test_reconcile_that_ignores_its_timeout_is_replaced_and_logged(world: Simulation) -> None:
    create(world, "a")
    stubborn = StubbornReconcile()
    reconciler = Reconciler(lambda request: stubborn(request) if request.name == "a" else None)
    async with run_controller(world, reconciler, timeout=60) as controller:
        await asyncio.sleep(65)
        assert str(controller.state.running[0]).endswith("was cancelled")
        create(world, "b")
        await asyncio.sleep(10)
        assert reconciler.keys == ["default/a", "default/b"]
        (stuck,) = controller.state.stuck
        assert (stuck.key, stuck.overdue) == ("default/a", True)
        assert controller.state.workers == 1
        change(world, "a", data={"k": "1"})
        await asyncio.sleep(10)
        assert reconciler.keys == ["default/a", "default/b"], "it is still at work on it"
        stubborn.gives_in = True
        await quiet(controller, 10)
        assert reconciler.keys == ["default/a", "default/b", "default/a"]
        assert (controller.state.stuck, controller.state.workers) == ((), 1)


@simulate_scenario
async def test_reconcile_without_a_timeout_may_take_any_time(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler(lambda request: asyncio.sleep(36_000))
    async with run_controller(world, reconciler, timeout=None) as controller:
        await quiet(controller, 40_000)
        assert (controller.state.reconciles, controller.state.failed) == (1, 0)
