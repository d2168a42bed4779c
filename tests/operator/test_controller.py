"""operator/controller.py: the results of reconciles, and misbehaving reconcilers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.errors import AlreadyStartedError, InvalidResultError, TerminalError, VersionTimeout
from aioinformer.operator import Controller, Request, Result
from aioinformer.operator import Reconciler as ReconcilerClass
from aioinformer.testing import Simulation
from aioinformer.workqueue import ItemExponentialFailureRateLimiter
from tests.virtual_time import simulate_scenario

from ..virtual_time import settle
from .worlds import Reconciler, StubbornReconcile, change, create, feed_queue, quiet, run_controller

SOME_WORK = 0.01
"""Seconds that the simulation adds for work, in pieces of 3 ms, depending on the seed."""


def assert_backed_off(times: Sequence[float]) -> None:
    """Check that each pause is twice as long as the one before; the first is 5 ms."""
    for number, (earlier, later) in enumerate(pairwise(times)):
        assert -1e-6 < later - earlier - 0.005 * 2**number < SOME_WORK, times


@simulate_scenario
async def test_object_is_reconciled_once_per_change(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler()
    async with run_controller(world, reconciler) as controller:
        await quiet(controller)
        assert reconciler.keys == ["default/a"]
        create(world, "b")
        version = change(world, "a", data={"k": "1"})["metadata"]["resourceVersion"]
        await quiet(controller)
        assert sorted(reconciler.keys) == ["default/a", "default/a", "default/b"]
        assert ("default/a", version) in reconciler.seen
        world.server.delete("v1", "configmaps", "a")
        await quiet(controller)
        assert reconciler.seen[-1] == ("default/a", None)
        assert (controller.state.reconciles, controller.state.failed) == (4, 0)


@simulate_scenario
async def test_changes_during_a_reconcile_cause_one_more_reconcile(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler(lambda request: asyncio.sleep(10))
    async with run_controller(world, reconciler, concurrency=5) as controller:
        await asyncio.sleep(1)
        version = ""
        for number in range(20):
            version = change(world, "a", data={"k": str(number)})["metadata"]["resourceVersion"]
        await quiet(controller, 30)
        assert [key for key, _ in reconciler.seen] == ["default/a"] * 2
        assert reconciler.seen[-1] == ("default/a", version)


@simulate_scenario
async def test_concurrency_limits_running_reconciles(world: Simulation) -> None:
    most = 0

    async def act(request: Request[KubeObject]) -> None:
        nonlocal most
        most = max(most, len(reconciler.at_work))
        await asyncio.sleep(1)

    for number in range(10):
        create(world, f"map-{number}")
    reconciler = Reconciler(act)
    async with run_controller(world, reconciler, concurrency=3) as controller:
        await quiet(controller, 10)
        assert most == 3
        assert len(reconciler.seen) == 10


@simulate_scenario
async def test_plain_functions_and_reconciler_classes_are_accepted(world: Simulation) -> None:
    create(world, "a")
    seen: list[str] = []

    def plain(request: Request[KubeObject]) -> Result:
        seen.append("plain")
        return Result()

    class ByClass(ReconcilerClass[KubeObject]):
        async def reconcile(self, request: Request[KubeObject]) -> Result | None:
            assert request.object is not None
            seen.append(f"class {request.object.name}")
            return None

    for reconcile in (plain, ByClass()):
        async with run_controller(world, reconcile) as controller:
            await quiet(controller)
            assert controller.state.failed == 0
    assert seen == ["plain", "class a"]


class TestResults:
    @staticmethod
    @simulate_scenario
    async def test_requeue_after_reconciles_again_after_the_delay(world: Simulation) -> None:
        create(world, "a")
        times: list[float] = []

        def act(request: Request[KubeObject]) -> Result | None:
            times.append(world.now)
            return Result(requeue_after=20) if len(times) < 4 else None

        async with run_controller(world, Reconciler(act)) as controller:
            await quiet(controller, 200)
            assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx([20, 20, 20])
            assert controller.state.reconciles == 4

    @staticmethod
    @simulate_scenario
    async def test_change_during_requeue_after_replaces_the_delayed_reconcile(world: Simulation) -> None:
        create(world, "a")
        reconciler = Reconciler(
            lambda request: Result(requeue_after=20) if len(reconciler.seen) == 1 else None
        )
        async with run_controller(world, reconciler) as controller:
            await asyncio.sleep(5)
            change(world, "a", data={"k": "1"})
            await quiet(controller, 100)
            assert len(reconciler.seen) == 2

    @staticmethod
    @simulate_scenario
    async def test_requeue_backs_off(world: Simulation) -> None:
        create(world, "a")
        times: list[float] = []

        def act(request: Request[KubeObject]) -> Result | None:
            times.append(world.now)
            return Result(requeue=True) if len(times) < 6 else Result()

        async with run_controller(world, Reconciler(act)) as controller:
            await quiet(controller, 10)
            assert len(times) == 6
            assert_backed_off(times)
            assert controller.state.failed == 0

    @staticmethod
    @simulate_scenario
    async def test_endless_requeue_is_bounded_and_does_not_delay_others(world: Simulation) -> None:
        create(world, "a")
        reconciler = Reconciler(lambda request: Result(requeue_after=0) if request.name == "a" else None)
        async with run_controller(world, reconciler) as controller:
            await asyncio.sleep(3600)
            assert len(reconciler.seen) < 30
            create(world, "b")
            await asyncio.sleep(0.5)
            assert reconciler.keys[-1] == "default/b"
            samples = {
                sample.labels.get("result"): sample.value
                for sample in controller.samples()
                if sample.name == "controller_runtime_reconcile_total"
            }
            assert samples["requeue"] == len(reconciler.seen) - 1

    @pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), "1", True])
    def test_requeue_after_must_be_a_duration(self, after: Any) -> None:
        with pytest.raises(ConfigError, match="requeue_after"):
            Result(requeue_after=after)

    def test_requeue_must_be_a_bool(self) -> None:
        with pytest.raises(
            ConfigError, match=r"True or False, not 60; for seconds use Result\(requeue_after="
        ):
            Result(60)  # type: ignore[arg-type]


class TestFailures:
    @staticmethod
    @simulate_scenario
    async def test_failed_reconcile_is_retried_with_backoff(world: Simulation) -> None:
        create(world, "a")
        times: list[float] = []

        def act(request: Request[KubeObject]) -> None:
            times.append(world.now)
            if len(times) < 8:
                raise ValueError("not yet")

        async with run_controller(world, Reconciler(act)) as controller:
            await quiet(controller, 10)
            assert len(times) == 8
            assert_backed_off(times)
            state = controller.state
            assert (state.reconciles, state.failed, state.failing) == (8, 7, 0)
            assert (str(state.last_error), state.last_error_key) == ("not yet", "default/a")
            times.clear()
            change(world, "a", data={"k": "1"})
            await quiet(controller, 10)
            assert_backed_off(times[:2])  # the back-off was reset

    @staticmethod
    @simulate_scenario
    async def test_reconcile_with_a_stale_cache_does_not_back_off(world: Simulation) -> None:
        create(world, "a")
        times: list[float] = []

        async def act(request: Request[KubeObject]) -> None:
            times.append(asyncio.get_running_loop().time())
            if len(times) < 20:
                raise VersionTimeout("configmaps", "9", "7", request.key, 10.0, "watching")

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler) as controller:
            await asyncio.sleep(30)
            assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx(
                [1.0] * 19, abs=0.01
            )
            assert (controller.state.failed, controller.state.failing) == (19, 0)

    @staticmethod
    @simulate_scenario
    async def test_log_has_the_type_of_the_error(world: Simulation) -> None:
        create(world, "a")
        async with run_controller(world, Reconciler(lambda request: dict[str, str]()["data"])):
            await asyncio.sleep(0.1)
        errors = [str(entry) for entry in world.history if " ERROR " in str(entry)]
        assert errors
        assert "default/a failed; retrying in 0.005 s: KeyError: 'data'" in errors[0]

    @staticmethod
    @simulate_scenario
    async def test_failing_object_does_not_delay_others(world: Simulation) -> None:
        for name in "abc":
            create(world, name)

        def act(request: Request[KubeObject]) -> None:
            if request.name == "b":
                raise ValueError

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler) as controller:
            await asyncio.sleep(1)
            assert {"default/a", "default/c"} <= set(reconciler.keys)
            assert (controller.state.failing, controller.state.workers) == (1, 1)
            assert "1 keys still do" in str(controller.state)

    @staticmethod
    @simulate_scenario
    async def test_terminal_error_is_not_retried_before_a_change(world: Simulation) -> None:
        create(world, "a")

        def act(request: Request[KubeObject]) -> None:
            raise TerminalError("spec.size must be a number")

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler) as controller:
            await quiet(controller, 3600)
            assert len(reconciler.seen) == 1
            change(world, "a", data={"k": "1"})
            await quiet(controller, 3600)
            assert len(reconciler.seen) == 2
            assert (controller.state.failed, controller.state.terminal) == (2, 2)

    @staticmethod
    @simulate_scenario
    async def test_terminal_failure_of_a_deleted_object_is_forgotten(world: Simulation) -> None:
        create(world, "a")
        limiter = ItemExponentialFailureRateLimiter[str]()

        def act(request: Request[KubeObject]) -> None:
            raise ValueError if request.object else TerminalError("it had no site")

        async with run_controller(world, Reconciler(act), rate_limiter=limiter) as controller:
            await asyncio.sleep(60)
            assert (controller.state.failing, limiter.num_requeues("default/a") > 0) == (1, True)
            world.server.delete("v1", "configmaps", "a")
            await asyncio.sleep(3600)
            assert (controller.state.failing, controller.state.terminal) == (0, 1)
            assert limiter.num_requeues("default/a") == 0

    @staticmethod
    @simulate_scenario
    async def test_invalid_return_value_is_a_failure(world: Simulation) -> None:
        create(world, "a")
        answers = iter([20, "later", {"requeue": True}])

        async with run_controller(world, Reconciler(lambda request: next(answers, None))) as controller:
            await quiet(controller, 10)
            state = controller.state
            assert (state.failed, state.reconciles) == (3, 4)
            assert isinstance(state.last_error, InvalidResultError)
            assert re.search("default/a returned .* neither a Result nor None", str(state.last_error))

    @staticmethod
    @simulate_scenario
    async def test_rate_limiter_that_raises_does_not_stop_the_controller(world: Simulation) -> None:
        class Limiter:
            def when(self, item: str) -> float:
                raise RuntimeError("broken")

            def forget(self, item: str) -> None:
                if world.now < 60:
                    raise RuntimeError("broken")

            def num_requeues(self, item: str) -> int:
                return 0

        create(world, "a")
        reconciler = Reconciler()
        async with run_controller(world, reconciler, rate_limiter=Limiter()) as controller:
            await quiet(controller, 100)
            state = controller.state
            assert (len(reconciler.seen), state.workers, state.failing) == (7, 1, 0)
            assert str(state.last_error) == "broken"

    @staticmethod
    @simulate_scenario
    async def test_cancelled_error_raised_by_a_reconciler_is_a_failure(world: Simulation) -> None:
        create(world, "a")

        def act(request: Request[KubeObject]) -> None:
            if len(reconciler.seen) == 1:
                raise asyncio.CancelledError

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler) as controller:
            await quiet(controller, 10)
            assert (controller.state.failed, controller.state.reconciles, controller.state.workers) == (
                1,
                2,
                1,
            )

    @staticmethod
    @simulate_scenario
    async def test_reconciler_that_cancels_its_task_does_not_end_the_worker(
        world: Simulation,
    ) -> None:
        create(world, "a")

        async def act(request: Request[KubeObject]) -> None:
            task = asyncio.current_task()
            assert task is not None
            if len(reconciler.seen) < 3:
                task.cancel()
                await asyncio.sleep(1)
            elif len(reconciler.seen) == 3:
                task.cancel()

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler, timeout=60) as controller:
            await quiet(controller, 10)
            state = controller.state
            assert (state.failed, state.reconciles, state.workers) == (2, 3, 1)
            change(world, "a", data={"k": "1"})
            await quiet(controller, 10)
            assert (controller.state.failed, controller.state.reconciles) == (2, 4)


class TestStopping:
    @staticmethod
    @simulate_scenario
    async def test_stop_lets_running_reconciles_end_and_starts_no_more(world: Simulation) -> None:
        for name in "abc":
            create(world, name)
        ended: list[str] = []

        async def act(request: Request[KubeObject]) -> None:
            await asyncio.sleep(10)
            ended.append(request.name)

        reconciler = Reconciler(act)
        async with run_controller(world, reconciler, concurrency=2):
            await asyncio.sleep(5)
            began = world.now
        assert len(ended) == len(reconciler.seen) == 2
        assert world.now - began == pytest.approx(5, abs=0.1)

    @staticmethod
    @simulate_scenario
    async def test_stop_cancels_reconciles_after_the_grace_period(world: Simulation) -> None:
        create(world, "a")
        cancelled: list[float] = []

        async def act(request: Request[KubeObject]) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.append(world.now)

        async with run_controller(world, Reconciler(act), grace_period=20.0):
            await asyncio.sleep(5)
            began = world.now
        assert [time - began for time in cancelled] == [20]

    @staticmethod
    @simulate_scenario
    async def test_stop_without_running_reconciles_returns_at_once(world: Simulation) -> None:
        async with run_controller(world, Reconciler(), concurrency=5):
            await asyncio.sleep(5)
            began = world.now
        assert world.now == began

    @staticmethod
    @simulate_scenario
    async def test_reconcile_that_ignores_cancellation_does_not_block_stopping(world: Simulation) -> None:
        create(world, "a")
        stubborn = StubbornReconcile()
        async with run_controller(world, Reconciler(stubborn), grace_period=20.0) as controller:
            await asyncio.sleep(5)
            began = world.now
        assert world.now - began == pytest.approx(20 + 10, abs=1)
        stubborn.gives_in = True
        await asyncio.sleep(2)
        assert controller.state.running == ()


def informer() -> SharedIndexInformer[KubeObject]:
    async def nothing(options: object) -> Any:
        raise AssertionError

    return SharedIndexInformer(ListWatch(nothing, nothing), KubeObject)


async def reconcile(request: Request[KubeObject]) -> None:
    return None


async def generator(request: Request[KubeObject]) -> Any:
    yield request


class NoReconciler(ReconcilerClass[KubeObject]):
    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        return None


class Misspelt(NoReconciler):
    finalizer = "a/b"

    async def clean_up(self, request: Request[KubeObject]) -> Result | None:
        return None


class CleansUp(NoReconciler):
    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        return None


async def later() -> list[Request[Any]]:
    return []


class Ticks:
    def __call__(self) -> Iterator[Request[Any]]:
        yield Request("", "a")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("", reconcile), {}, "name must not be empty"),
        ((["a"], reconcile), {}, "the name of a controller must be a string, like 'websites'"),
        (("x", None), {}, r"x: reconcile must be a function of \(request\), not None"),
        (("x", generator), {}, "contains a yield"),
        (("x", lambda: None), {}, "is called with"),
        (("x", NoReconciler), {}, "create one: NoReconciler"),
        (("x", lambda request, context: None), {}, "Only an Operator passes a context"),
        (("x", reconcile), {"concurrency": 1.5}, "concurrency must be a whole number"),
        (("x", reconcile), {"owns": ["pods"]}, "expected an informer or a CachedResource"),
        (("x", reconcile), {"sources": ["pods"]}, "a source must be an async iterable"),
        (("x", reconcile), {"cleanup": reconcile}, "cleanup needs a finalizer"),
        (("x", reconcile), {"finalizer": "a/b"}, "needs a cleanup"),
        (("x", reconcile), {"finalizer": "ab", "cleanup": reconcile}, "x: finalizer must be a name like"),
        *(
            (("x", reconcile), {"finalizer": finalizer, "cleanup": reconcile}, "x: finalizer must be a name")
            for finalizer in ("foo bar/x", "/", "example.com/", "/x", "a/b/c")
        ),
        (("x", reconcile), {"finalizer": "a/b", "cleanup": reconcile}, "pass a CachedResource"),
        (("x", CleansUp()), {}, "x: cleanup needs a finalizer"),
        (("x", Misspelt()), {}, "x: the finalizer a/b needs a cleanup"),
        (("x", NoReconciler()), {"finalizer": "a/b"}, "x: the finalizer a/b needs a cleanup"),
        (("x", reconcile), {"sources": [reconcile]}, r"a source is called with \(\)"),
        (("x", reconcile), {"sources": [later]}, "a source is read with `async for`: later must be"),
        (("x", reconcile), {"sources": [Ticks()]}, "a source is read with `async for`"),
    ],
)
def test_invalid_arguments_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Controller(arguments[0], arguments[1], informer(), **options)


def test_callable_without_a_signature_is_accepted() -> None:
    unsaid: Any = getattr
    Controller("x", unsaid, informer())


@simulate_scenario
async def test_controller_runs_in_one_manager_once(world: Simulation) -> None:
    async with run_controller(world, Reconciler()) as controller:
        await asyncio.sleep(1)
        with pytest.raises(AlreadyStartedError):
            async with feed_queue(controller):
                pass
    with pytest.raises(AlreadyStartedError):
        async with feed_queue(controller):
            pass


def test_invalid_primary_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected an informer or a CachedResource, not 'pods'"):
        Controller("x", reconcile, "pods")  # type: ignore[arg-type]


async def test_controller_on_real_event_loops() -> None:
    """Workers, deadlines and stopping in real time."""
    done = asyncio.Event()
    seen: list[str] = []

    async def act(request: Request[KubeObject]) -> Result | None:
        seen.append(request.name)
        if request.name == "hangs" and seen.count("hangs") == 1:
            await asyncio.sleep(3600)
        if len(set(seen)) == 3 and seen.count("hangs") == 2:
            done.set()
        return None

    controller = Controller("tests", act, informer(), timeout=0.01, concurrency=2)
    async with feed_queue(controller):
        for name in ("a", "hangs", "b"):
            controller.queue.add(f"default/{name}")
        working = asyncio.create_task(controller.work())
        await done.wait()
        await settle()
        await controller.stop(1.0)
        await working
    assert (controller.state.timed_out, controller.state.reconciles) == (1, 4)
