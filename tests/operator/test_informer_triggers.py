"""operator/informer_triggers.py: changes that trigger reconciles, and errors on the way. Owners are in test_owns.py."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from aioinformer import ConfigError, DeletedFinalStateUnknown, KubeObject, SharedInformerFactory
from aioinformer.cache import Delta, DeltaType
from aioinformer.errors import CacheMutatedError
from aioinformer.operator import (
    LOW_PRIORITY,
    Change,
    Controller,
    FieldsChanged,
    GenerationChanged,
    LabelsMatch,
    Manager,
    Owns,
    Request,
    Watch,
)
from aioinformer.testing import Simulation, simulate
from tests.virtual_time import simulate_scenario

from .worlds import (
    CONTAINERS,
    Reconciler,
    StubbornReconcile,
    change,
    create,
    quiet,
    run_controller,
    trigger,
)


class TestPrimary:
    @staticmethod
    @simulate_scenario
    async def test_predicate_filters_changes(world: Simulation) -> None:
        create(world, "a", metadata={"labels": {"app": "web"}})
        create(world, "b")
        reconciler = Reconciler()
        async with run_controller(world, reconciler, predicate=LabelsMatch("app=web")) as controller:
            await quiet(controller)
            change(world, "b", data={"k": "1"})
            change(world, "a", data={"k": "1"})
            await quiet(controller)
            assert reconciler.keys == ["default/a"] * 2
            state = trigger(controller, 0)
            assert (state.seen, state.passed, state.failed, state.running) == (4, 2, 0, True)

    @staticmethod
    @simulate_scenario
    async def test_change_passes_if_the_predicate_raises(world: Simulation) -> None:
        create(world, "a")

        def predicate(change: Change[KubeObject]) -> bool:
            raise KeyError("labels")

        reconciler = Reconciler()
        async with run_controller(world, reconciler, predicate=predicate) as controller:
            await quiet(controller)
            assert reconciler.keys == ["default/a"]
            state = trigger(controller, 0)
            assert (state.failed, repr(state.last_error)) == (1, "KeyError('labels')")
            assert "1 failed, last: KeyError('labels')" in str(state)

    @staticmethod
    @simulate_scenario
    async def test_change_passes_if_the_predicate_raises_a_cancelled_error(world: Simulation) -> None:
        create(world, "a")

        def predicate(change: Change[KubeObject]) -> bool:
            raise asyncio.CancelledError

        reconciler = Reconciler()
        async with run_controller(world, reconciler, predicate=predicate) as controller:
            await quiet(controller)
            assert reconciler.keys == ["default/a"]
            assert trigger(controller, 0).failed == 1

    @staticmethod
    @simulate_scenario
    async def test_fresh_changes_go_before_the_initial_list(world: Simulation) -> None:
        for number in range(30):
            create(world, f"initial-{number}")
        reconciler = Reconciler(lambda request: asyncio.sleep(1))
        async with run_controller(world, reconciler) as controller:
            await asyncio.sleep(5)
            assert controller.queue.state.depths.keys() == {LOW_PRIORITY}
            create(world, "fresh")
            await asyncio.sleep(2.5)
            assert "default/fresh" in reconciler.keys
            assert len(controller.queue) > 20
            await quiet(controller, 60)
            assert len(reconciler.seen) == 31

    @staticmethod
    @simulate_scenario
    async def test_missed_deletion_triggers_a_reconcile(world: Simulation) -> None:
        create(world, "a")
        reconciler = Reconciler()
        async with run_controller(world, reconciler) as controller:
            await quiet(controller)
            world.network.silence()
            world.server.delete("v1", "configmaps", "a")
            world.server.faults.expire_history()
            world.network.cut()
            await world.eventually(lambda: reconciler.seen[-1] == ("default/a", None))
            assert controller.state.failed == 0

    @staticmethod
    @simulate_scenario
    async def test_object_recreated_during_a_gap_is_reconciled(world: Simulation) -> None:
        create(world, "a", data={"k": "1"})
        reconciler = Reconciler()
        async with run_controller(world, reconciler, predicate=FieldsChanged("data.k")) as controller:
            await quiet(controller)
            world.network.silence()
            world.server.delete("v1", "configmaps", "a")
            version = create(world, "a", data={"k": "1"})["metadata"]["resourceVersion"]
            world.server.faults.expire_history()
            world.network.cut()
            await world.eventually(lambda: reconciler.seen[-1] == ("default/a", version))

    @staticmethod
    @simulate_scenario
    async def test_deletion_of_an_object_with_unknown_state_triggers_a_reconcile(world: Simulation) -> None:
        reconciler = Reconciler()
        manager = Manager(world.client)
        maps, pods = (manager.for_resource("v1", plural) for plural in ("configmaps", "pods"))
        controller = manager.add(Controller("tests", reconciler, maps, owns=[pods]))
        async with manager:
            await quiet(controller)
            for informer in (maps, pods):
                informer.handle_deltas(
                    [Delta(DeltaType.DELETED, DeletedFinalStateUnknown("default/a", None))]
                )
            await quiet(controller)
            assert reconciler.seen == [("default/a", None)]
            assert [(state.seen, state.passed) for state in controller.state.triggers] == [(1, 1), (0, 0)]


def by_label(obj: KubeObject) -> list[Request[Any]]:
    return [Request("default", obj.metadata.labels["map"])] if "map" in obj.metadata.labels else []


async def by_label_later(obj: KubeObject) -> list[Request[Any]]:
    await asyncio.sleep(0.1)
    return by_label(obj)


class Endless:
    """A map function that waits until it is cancelled."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def __call__(self, obj: KubeObject) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            self.ended.append(obj.name)


class TestWatch:
    @staticmethod
    @simulate_scenario
    async def test_update_maps_the_old_and_the_new_object(world: Simulation) -> None:
        for map_func in (by_label, by_label_later):
            reconciler = Reconciler()
            manager = Manager(world.client)
            maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
            controller = manager.add(
                Controller("tests", reconciler, maps, watches=[Watch(secrets, map_func)])
            )
            async with manager:
                create(world, "s", "secrets", metadata={"labels": {"map": "a"}})
                await quiet(controller)
                assert reconciler.keys == ["default/a"]
                change(world, "s", "secrets", metadata={"labels": {"map": "b"}})
                await quiet(controller)
                assert reconciler.keys == ["default/a", "default/a", "default/b"]
                world.server.delete("v1", "secrets", "s")
                await quiet(controller)
                assert reconciler.keys[3:] == ["default/b"]
                assert reconciler.seen[-1] == ("default/b", None)

    @staticmethod
    @simulate_scenario
    async def test_map_function_may_return_a_request_or_none_and_errors_are_counted(
        world: Simulation,
    ) -> None:
        answers: dict[str, Any] = {
            "one": Request("default", "x"),
            "none": None,
            "keys": ["default/y"],
            "number": 5,
            "key": "default/y",
            "raises": ...,
        }

        def map_func(obj: KubeObject) -> Any:
            if obj.name == "raises":
                raise KeyError(obj.name)
            return answers[obj.name]

        reconciler = Reconciler()
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        controller = manager.add(Controller("tests", reconciler, maps, watches=[Watch(secrets, map_func)]))
        async with manager:
            for name in answers:
                create(world, name, "secrets")
                await quiet(controller)
                if name in ("key", "number"):
                    error = trigger(controller, 1).last_error
                    assert str(error).startswith(
                        f"{answers[name]!r} is not a Request; create one from an object or key by Request.of("
                    )
            assert reconciler.keys == ["default/x"]
            state = trigger(controller, 1)
            assert (state.seen, state.failed, state.running) == (6, 4, True)
            assert "KeyError" in repr(state.last_error)

    @staticmethod
    @simulate_scenario
    async def test_map_function_that_raises_a_cancelled_error_for_the_old_object_maps_the_new(
        world: Simulation,
    ) -> None:
        def map_func(obj: KubeObject) -> Request[Any]:
            if not obj.metadata.labels:
                raise asyncio.CancelledError
            return Request("default", obj.metadata.labels["for"])

        create(world, "x", "secrets")
        reconciler = Reconciler()
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        controller = manager.add(Controller("tests", reconciler, maps, watches=[Watch(secrets, map_func)]))
        async with manager:
            await quiet(controller)
            assert trigger(controller, 1).failed == 1
            world.server.patch("v1", "secrets", "x", {"metadata": {"labels": {"for": "a"}}})
            await quiet(controller)
            assert reconciler.keys == ["default/a"]
            assert trigger(controller, 1).failed == 2

    @staticmethod
    @simulate_scenario
    async def test_async_map_function_that_raises_does_not_stop_the_controller(world: Simulation) -> None:
        async def map_func(obj: KubeObject) -> list[Request[Any]]:
            await asyncio.sleep(0.1)
            if obj.name == "cancels":
                raise asyncio.CancelledError
            if obj.name == "raises":
                raise ValueError
            return [Request.of(obj)]

        reconciler = Reconciler()
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        controller = manager.add(Controller("tests", reconciler, maps, watches=[Watch(secrets, map_func)]))
        async with manager:
            for name in ("raises", "cancels", "works"):
                create(world, name, "secrets")
            await quiet(controller, 2)
            assert reconciler.keys == ["default/works"]
            assert trigger(controller, 1).failed == 2

    @staticmethod
    @simulate_scenario
    async def test_async_map_function_ends_with_the_manager(world: Simulation) -> None:
        mapped = Endless()
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        controller = manager.add(Controller("tests", Reconciler(), maps, watches=[Watch(secrets, mapped)]))
        create(world, "a", "secrets")
        async with manager:
            await asyncio.sleep(5)
        assert mapped.ended == ["a"]
        assert trigger(controller, 1).failed == 0

    @staticmethod
    @simulate_scenario
    async def test_async_map_function_of_an_unmanaged_informer_ends_with_the_manager(
        world: Simulation,
    ) -> None:
        mapped = Endless()
        create(world, "a", "secrets")
        manager = Manager(world.client)
        async with SharedInformerFactory(world.client) as factory:
            watch = Watch(factory.for_resource("v1", "secrets"), mapped)
            manager.add(
                Controller("tests", Reconciler(), manager.for_resource("v1", "configmaps"), watches=[watch])
            )
            async with manager:
                await asyncio.sleep(5)
            assert mapped.ended == ["a"]

    @staticmethod
    @pytest.mark.parametrize("is_shared", [True, False])
    @pytest.mark.parametrize("awaits", ["it", "a task", "a group"])
    def test_map_function_that_ignores_cancellation_is_abandoned_after_ten_seconds(
        awaits: str, is_shared: bool
    ) -> None:
        """It may also await a task or a group that ignores its cancellation."""

        @simulate_scenario
        async def scenario(world: Simulation) -> None:
            stubborn = StubbornReconcile()

            def map_func(obj: KubeObject) -> Awaitable[None]:
                if awaits == "it":
                    return stubborn(obj)
                return asyncio.create_task(stubborn(obj)) if awaits == "a task" else both(obj)

            async def both(obj: KubeObject) -> None:
                await asyncio.gather(stubborn(obj), stubborn(obj))

            create(world, "a", "secrets")
            async with SharedInformerFactory(world.client) as factory:
                manager = Manager(world.client)
                secrets = (manager if is_shared else factory).for_resource("v1", "secrets")
                maps = manager.for_resource("v1", "configmaps")
                manager.add(Controller("tests", Reconciler(), maps, watches=[Watch(secrets, map_func)]))
                async with manager:
                    await asyncio.sleep(5)
                    began = world.now
                took = world.now - began
                stubborn.gives_in = True
                await asyncio.sleep(1)
            assert took == pytest.approx(10, abs=0.1)
            mine, *others = sorted(
                str(entry)
                for entry in world.history
                if "left behind because they did not end in time" in str(entry)
                or "still running 10 s after they were cancelled" in str(entry)
            )
            assert " ERROR <Controller tests>: " in mine
            assert mine.endswith("map_func at default/a")
            assert [other.endswith(": secrets") for other in others] == [True] * is_shared

        scenario()

    @staticmethod
    @pytest.mark.parametrize("whose", ["the manager's", "a factory's", "run by hand"])
    def test_map_function_that_cleans_up_is_cancelled_once(whose: str) -> None:
        @simulate_scenario
        async def scenario(world: Simulation) -> None:
            cleaned: list[str] = []

            async def map_func(obj: KubeObject) -> None:
                try:
                    await asyncio.sleep(3600)
                finally:
                    await asyncio.sleep(9)
                    cleaned.append(obj.name)

            create(world, "a", "secrets")
            async with SharedInformerFactory(world.client) as factory, AsyncExitStack() as stack:
                manager = Manager(world.client)
                secrets = (factory if whose == "a factory's" else manager).for_resource("v1", "secrets")
                if whose == "run by hand":
                    await stack.enter_async_context(secrets)
                maps = manager.for_resource("v1", "configmaps")
                manager.add(Controller("tests", Reconciler(), maps, watches=[Watch(secrets, map_func)]))
                async with manager:
                    await asyncio.sleep(5)
            assert cleaned == ["a"]
            assert not [entry for entry in world.history if " ERROR " in str(entry)]

        scenario()

    @staticmethod
    @simulate_scenario
    async def test_map_function_with_a_timeout_that_is_ignored_continues(world: Simulation) -> None:
        async def map_func(obj: KubeObject) -> Request[Any]:
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    try:
                        await asyncio.sleep(3600)
                    finally:
                        await asyncio.sleep(60)
            return Request.of(obj)

        reconciler = Reconciler()
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        manager.add(Controller("tests", reconciler, maps, watches=[Watch(secrets, map_func)]))
        create(world, "a", "secrets")
        async with manager:
            await asyncio.sleep(70)
            create(world, "b", "secrets")
            await asyncio.sleep(70)
        assert reconciler.keys == ["default/a", "default/b"]

    @staticmethod
    @simulate_scenario
    async def test_all_stubborn_functions_share_the_same_ten_seconds(world: Simulation) -> None:
        stubborn = StubbornReconcile()

        async def source() -> AsyncIterator[Request[Any]]:
            await stubborn(Request("default", "a"))
            yield Request("default", "a")

        create(world, "a", "secrets")
        async with SharedInformerFactory(world.client) as factory:
            manager = Manager(world.client)
            maps = manager.for_resource("v1", "configmaps")
            for number in range(3):
                secrets = (factory if number else manager).for_resource("v1", "secrets")
                manager.add(
                    Controller(
                        f"tests{number}",
                        Reconciler(),
                        maps,
                        watches=[Watch(secrets, stubborn)],
                        sources=[source],
                    )
                )
            async with manager:
                await asyncio.sleep(5)
                began = world.now
            took = world.now - began
            stubborn.gives_in = True
            await asyncio.sleep(1)
        assert took == pytest.approx(10, abs=0.1)
        logged = [str(entry) for entry in world.history if "not waiting for them any longer" in str(entry)]
        for number in range(3):
            (line,) = [entry for entry in logged if f"<Controller tests{number}>" in entry]
            assert "source, secrets, by " in line

    @staticmethod
    @simulate_scenario
    async def test_abandoned_map_function_hides_no_failure_of_another_informer(world: Simulation) -> None:
        stubborn = StubbornReconcile()

        async def change_it(obj: dict[str, Any]) -> None:
            obj["changed"] = True

        create(world, "a")
        create(world, "a", "secrets")
        manager = Manager(world.client, detect_mutations=True)
        maps, secrets = manager.for_resource("v1", "configmaps", dict), manager.for_resource("v1", "secrets")
        watches = [Watch(maps, change_it), Watch(secrets, stubborn)]
        manager.add(Controller("tests", Reconciler(), manager.for_resource("v1", "pods"), watches=watches))
        running = asyncio.create_task(manager.run())
        await asyncio.wait([running], timeout=15)  # both share ten seconds
        with pytest.raises(CacheMutatedError):
            running.result()
        stubborn.gives_in = True
        await asyncio.sleep(1)

    @staticmethod
    @simulate_scenario
    async def test_informer_that_fails_during_its_first_list_ends_the_manager_with_its_error(
        world: Simulation,
    ) -> None:
        async def map_func(obj: dict[str, Any]) -> None:
            obj["changed"] = True
            await asyncio.sleep(3600)

        create(world, "a", "secrets")
        manager = Manager(world.client, detect_mutations=True)
        maps, secrets = manager.for_resource("v1", "configmaps"), manager.for_resource("v1", "secrets", dict)
        manager.add(Controller("tests", Reconciler(), maps, watches=[Watch(secrets, map_func)]))
        with pytest.raises(CacheMutatedError):
            await manager.run()

    @staticmethod
    @pytest.mark.parametrize("swallows", [False, True])
    def test_map_function_cancelled_at_the_old_object_skips_the_new_one(swallows: bool) -> None:
        @simulate_scenario
        async def scenario(world: Simulation) -> None:
            asked: list[str | None] = []

            async def map_func(obj: KubeObject) -> None:
                asked.append(obj.get("data"))
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    if not swallows:
                        raise

            create(world, "a", "secrets")
            manager = Manager(world.client)
            maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
            of_updates = Watch(secrets, map_func, lambda change: change.is_update)
            manager.add(Controller("tests", Reconciler(), maps, watches=[of_updates]))
            async with manager:
                await asyncio.sleep(5)
                change(world, "a", "secrets", data={"k": "MQ=="})
                await asyncio.sleep(5)
            assert asked == [None]
            gc.collect()  # a coroutine that was never awaited causes a warning, which fails the test

        scenario()


@pytest.mark.parametrize("is_written", [False, True], ids=["informer", "resource"])
def test_a_request_for_a_namespace_that_is_not_read_is_refused_once(
    is_written: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: Simulation) -> None:
        caplog.clear()
        reconcile = Reconciler()
        manager = Manager(world.client, namespace="default")
        maps: Any = (manager.resource if is_written else manager.for_resource)("v1", "configmaps")
        secrets = manager.for_resource("v1", "secrets")
        watch = Watch(secrets, lambda obj: [Request("other", "a"), Request("default", "b")])
        controller = manager.add(Controller("tests", reconcile, maps, watches=[watch]))
        world.server.create("v1", "configmaps", {"metadata": {"name": "a"}}, "other")
        async with manager:
            create(world, "s", "secrets")
            await quiet(controller, 60)
        assert reconcile.keys == ["default/b"]
        assert (controller.state.terminal, controller.state.failing) == (1, 0)
        (line,) = [record.message for record in caplog.records if "other/a" in record.message]
        assert "configmaps in default does not read the namespace 'other'" in line

    simulate(scenario, seed=1)


@simulate_scenario
async def test_a_request_of_the_wrong_scope_is_refused_once(world: Simulation) -> None:
    reconcile = Reconciler()
    manager = Manager(world.client)
    maps, nodes = manager.resource("configmaps"), manager.for_resource("nodes")
    controller = manager.add(Controller("tests", reconcile, maps, watches=[Watch(nodes, Request.of)]))
    world.server.create("v1", "nodes", {"metadata": {"name": "a"}})
    async with manager:
        await quiet(controller, 60)
    assert (reconcile.keys, controller.state.terminal, controller.state.failing) == ([], 1, 0)
    assert "configmaps are namespaced" in str(controller.state.last_error)


@simulate_scenario
async def test_trigger_belongs_to_one_controller(world: Simulation) -> None:
    manager = Manager(world.client)
    maps = manager.for_resource("v1", "configmaps")
    owns = Owns(maps)
    Controller("one", Reconciler(), maps, owns=[owns])
    with pytest.raises(ConfigError, match="belongs to another controller"):
        Controller("two", Reconciler(), maps, owns=[owns])


@simulate_scenario
async def test_generation_changed_ignores_status_updates(world: Simulation) -> None:
    """A controller's writes to the status trigger no reconcile."""
    world.server.create("apps/v1", "deployments", {
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS["spec"]}},
    })  # fmt: skip
    reconciler = Reconciler()
    manager = Manager(world.client)
    controller = manager.add(
        Controller(
            "tests", reconciler, manager.for_resource("apps/v1", "deployments"), predicate=GenerationChanged()
        )
    )
    async with manager:
        await quiet(controller)
        world.server.patch("apps/v1", "deployments", "web", {"status": {"replicas": 1}})
        await quiet(controller)
        assert len(reconciler.seen) == 1
        world.server.patch("apps/v1", "deployments", "web", {"spec": {"replicas": 2}})
        await quiet(controller)
        assert len(reconciler.seen) == 2


@pytest.mark.parametrize("map_func", [None, "x", lambda: [], lambda obj, more: []])
def test_invalid_map_function_is_refused(map_func: Any) -> None:
    from .test_controller import informer

    with pytest.raises(ConfigError, match=r"map_func (must be a function|is called with)"):
        Watch(informer(), map_func)


def test_async_generator_as_map_function_is_refused() -> None:
    from .test_controller import informer

    async def map_func(obj: Any) -> Any:
        yield obj

    with pytest.raises(ConfigError, match="is an async generator"):
        Watch(informer(), map_func)
