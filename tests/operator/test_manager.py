"""operator/manager.py: from the first list to the last reconcile."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fastapi import FastAPI

from aioinformer import (
    Client,
    ConfigError,
    KubeObject,
    ListWatch,
    Resource,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    StoppedError,
)
from aioinformer._core.tasks import finish
from aioinformer.errors import AlreadyStartedError, ClientClosedError
from aioinformer.operator import Controller, Manager, Request, Result, Watch
from aioinformer.testing import APIServer, Simulation
from tests.virtual_time import simulate_scenario

from ..steps import until
from .worlds import Reconciler, create, elector, make_managed, run_until_a_worker_dies


def warnings_of(world: Simulation) -> list[str]:
    return [str(entry) for entry in world.history if " WARNING " in str(entry)]


class TestLifecycle:
    @staticmethod
    @simulate_scenario
    async def test_controllers_share_informers(world: Simulation) -> None:
        create(world, "a")
        manager = Manager(world.client)
        reconcilers = [Reconciler(), Reconciler()]
        for number, reconciler in enumerate(reconcilers):
            manager.add(Controller(f"tests-{number}", reconciler, manager.for_resource("v1", "configmaps")))
        assert len(manager.informers) == 1
        assert [controller.name for controller in manager.controllers] == ["tests-0", "tests-1"]
        async with manager:
            await asyncio.sleep(1)
        assert [reconciler.keys for reconciler in reconcilers] == [["default/a"]] * 2

    @staticmethod
    @simulate_scenario
    async def test_collection_that_cannot_be_listed_delays_only_its_controller(world: Simulation) -> None:
        """For example, its conversion webhook is unavailable."""
        create(world, "a")
        create(world, "s", "secrets")
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        healthy, broken = Reconciler(), Reconciler()
        manager.add(Controller("healthy", healthy, maps))
        manager.add(Controller("broken", broken, maps, owns=[secrets], cache_sync_timeout=60))
        away = world.server.faults.fail(500, times=None, resource="secrets")
        async with manager:
            await asyncio.sleep(59)
            assert (healthy.keys, broken.keys) == ([], [])
            assert str(manager.state).startswith("waiting for caches: secrets\n")
            assert manager.state.controllers[1].sync_error is None
            await asyncio.sleep(2)
            assert (healthy.keys, broken.keys) == (["default/a"], [])
            first, second = manager.state.controllers
            assert (first.sync_error, second.unsynced) == (None, ("secrets",))
            assert str(second.sync_error).startswith(
                "broken: its caches have not synced within 60 s: secrets: "
            )
            assert str(second).startswith("broken: waiting for caches: secrets")
            assert str(manager.state).startswith("waiting for the first list to go through secrets, owned\n")
            assert manager.healthy()
            assert "secrets has not synced" in str(manager.ready())
            (line,) = [str(entry) for entry in world.history if " ERROR " in str(entry)]
            assert "500 InternalError" in line
            assert "Other controllers start now; this controller starts when they have synced" in line
            away.remove()
            await asyncio.sleep(60)
            assert broken.keys == ["default/a"]
            assert manager.ready()
            assert manager.state.controllers[1].sync_error is None
            assert str(manager.state).startswith("INFORMER")

    @staticmethod
    @simulate_scenario
    async def test_caches_that_another_controller_needs_are_waited_for(world: Simulation) -> None:
        create(world, "a")
        manager = Manager(world.client, leader_election=elector(world.client))
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        reconcilers = [Reconciler() for _ in range(3)]
        manager.add(Controller("healthy", reconcilers[0], maps))
        for number, seconds in enumerate([10, 20], start=1):
            controller = Controller(
                f"broken-{number}", reconcilers[number], maps, owns=[secrets], cache_sync_timeout=seconds
            )
            manager.add(controller)
        world.server.faults.fail(503, times=None, resource="secrets")
        async with manager:
            await asyncio.sleep(19)
            assert [reconciler.keys for reconciler in reconcilers] == [[]] * 3
            errors = [state.sync_error is not None for state in manager.state.controllers]
            assert errors == [False, True, False]
            await asyncio.sleep(2)
            assert [reconciler.keys for reconciler in reconcilers] == [["default/a"], [], []]
            assert str(manager.state).startswith("leading; waiting for the first list to go through secrets")

    @staticmethod
    @simulate_scenario
    async def test_no_reconcile_starts_before_all_caches_have_synced(world: Simulation) -> None:
        """A reconciler that counts objects in another cache must not count zero."""
        create(world, "a")
        create(world, "s", "secrets")
        counted: list[int] = []
        manager = Manager(world.client)
        secrets = manager.for_resource("v1", "secrets")

        async def reconcile(request: Request[KubeObject]) -> None:
            counted.append(len(secrets.store.list()))

        manager.add(Controller("tests", reconcile, manager.for_resource("v1", "configmaps")))
        world.server.faults.fail(503, times=None, resource="secrets")
        async with manager:
            await asyncio.sleep(30)
            assert counted == []
            assert manager.healthy()
            assert not manager.ready()
            assert "secrets has not synced" in str(manager.ready())
            assert manager.state.controllers[0].queue.depth == 1
            world.server.faults.clear()
            await world.eventually(lambda: counted == [1])
            assert manager.ready()

    @staticmethod
    @simulate_scenario
    async def test_no_reconcile_starts_before_triggers_have_processed_the_first_lists(
        world: Simulation,
    ) -> None:
        """A reconciler may depend on the results of a map function. A hanging one is logged, and delays no other
        controller."""
        create(world, "a")
        others: list[str] = []
        for name in "xyz":
            create(world, name, "secrets")
        may_go_on = asyncio.Event()
        mapped: list[str] = []
        at_reconcile: list[int] = []

        async def map_func(obj: KubeObject) -> None:
            await may_go_on.wait()
            mapped.append(obj.name)

        async def reconcile(request: Request[KubeObject]) -> None:
            at_reconcile.append(len(mapped))

        manager = Manager(world.client, leader_election=elector(world.client))
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        controller = manager.add(Controller("tests", reconcile, maps, watches=[Watch(secrets, map_func)]))
        manager.add(Controller("others", lambda request: others.append(request.name), maps))
        async with manager:
            await asyncio.sleep(30)
            assert (at_reconcile, controller.state.working, manager.state.leading) == ([], False, True)
            assert others == ["a"]
            name = controller.state.triggers[1].name
            assert [trigger.synced for trigger in controller.state.triggers] == [True, False]
            assert str(manager.state).startswith(
                f"leading; waiting for the first list to go through {name}\n"
            )
            assert manager.healthy()
            assert str(manager.ready()) == f"tests: {name} has not processed its first list"
            may_go_on.set()
            await world.eventually(lambda: at_reconcile == [3], every=0.1)
            assert manager.ready()
            assert str(manager.state).startswith("leading\n")

    @staticmethod
    @simulate_scenario
    async def test_cluster_scoped_kinds_beside_a_manager_with_a_namespace(world: Simulation) -> None:
        create(world, "a")
        world.server.create("v1", "namespaces", {"metadata": {"name": "red"}})
        world.server.create("v1", "configmaps", {"metadata": {"name": "b", "namespace": "red"}})
        manager = Manager(world.client, namespace="default")
        namespaces = manager.resource("v1", "namespaces")
        maps, everywhere = (
            manager.resource("v1", "configmaps", namespace=namespace) for namespace in (None, "")
        )
        async with manager:
            assert "red" in [namespace.key for namespace in await namespaces.list()]
            assert (await namespaces.patch("red", {"metadata": {"labels": {"a": "b"}}})).name == "red"
            assert (await namespaces.get("red"))["metadata"]["labels"]["a"] == "b"
            assert [config_map.key for config_map in await maps.list()] == ["default/a"]
            assert sorted(obj.key for obj in await everywhere.list()) == ["default/a", "red/b"]
        with pytest.raises(ConfigError, match="are cluster-scoped"):
            manager.resource("v1", "namespaces", namespace="red")

    @staticmethod
    @simulate_scenario
    async def test_manager_runs_once(world: Simulation) -> None:
        manager, _ = make_managed(world.client, Reconciler())
        async with manager:
            with pytest.raises(AlreadyStartedError):
                await manager.run()
            with pytest.raises(AlreadyStartedError, match="was not added"):
                manager.add(Controller("late", Reconciler(), manager.for_resource("v1", "secrets")))
        with pytest.raises(AlreadyStartedError):
            manager.begin()

    @staticmethod
    @simulate_scenario
    async def test_second_start_does_not_affect_the_first(world: Simulation) -> None:
        manager, _ = make_managed(world.client, reconciler := Reconciler())
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(5)
        with pytest.raises(AlreadyStartedError):
            async with manager:
                pass
        create(world, "a")
        await asyncio.sleep(5)
        assert reconciler.keys == ["default/a"]
        assert (bool(manager.healthy()), manager.state.ended) == (True, False)
        await finish(running)

    @staticmethod
    @simulate_scenario
    async def test_manager_without_controllers_keeps_its_caches(world: Simulation) -> None:
        create(world, "a")
        manager = Manager(world.client)
        maps = manager.for_resource("v1", "configmaps")
        async with manager:
            await maps.wait_synced(30)
            await asyncio.sleep(3600)
            assert manager.ready()
            assert maps.store.list_keys() == ["default/a"]

    @staticmethod
    @simulate_scenario
    async def test_second_cancellation_does_not_wait_for_reconciles(world: Simulation) -> None:
        create(world, "a")
        manager, _ = make_managed(world.client, Reconciler(lambda request: asyncio.sleep(3600)))
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(5)
        began = world.now
        running.cancel()
        await asyncio.sleep(3)
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})
        assert (running.cancelled(), world.now - began) == (True, 3)

    @staticmethod
    @simulate_scenario
    async def test_failed_informer_ends_the_manager(world: Simulation) -> None:
        manager, _ = make_managed(client := world.new_client(), Reconciler())
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(1)
        await client.close()
        with pytest.raises(ClientClosedError):
            await running
        assert "has ended: ClientClosedError" in str(manager.healthy())

    @staticmethod
    @simulate_scenario
    async def test_informer_that_fails_before_it_has_synced_ends_the_manager_with_its_error(
        world: Simulation,
    ) -> None:
        manager, _ = make_managed(client := world.new_client(), Reconciler())
        world.server.faults.fail(503, times=None, resource="configmaps")
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(5)
        await client.close()
        with pytest.raises(ClientClosedError):
            await running

    @staticmethod
    @simulate_scenario
    async def test_except_star_handles_all_of_several_failures(world: Simulation) -> None:
        """The example of docs/operators.md."""
        manager, _ = make_managed(client := world.new_client(), Reconciler())
        manager.for_resource("v1", "secrets")
        world.server.faults.fail(503, times=None)
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(5)
        await client.close()
        caught: list[BaseException] = []
        try:
            await running
        except* ClientClosedError as group:
            caught.append(group)
        assert len(caught) == 1

    @staticmethod
    @simulate_scenario
    async def test_manager_cancelled_after_a_failure_raises_the_failure(world: Simulation) -> None:
        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(10)

        create(world, "a")
        manager = Manager(world.client)
        maps, secrets = (manager.for_resource("v1", plural) for plural in ("configmaps", "secrets"))
        maps.add_event_handler(ResourceEventHandlerFuncs(on_add))
        controller = manager.add(Controller("tests", Reconciler(), secrets))
        running = await run_until_a_worker_dies(manager, controller)
        assert not running.done(), "the handler takes its time to end"
        running.cancel()
        with pytest.raises(StoppedError, match="cancelled from outside"):
            await running

    @staticmethod
    @simulate_scenario
    async def test_several_failures_are_raised_as_a_group(world: Simulation) -> None:
        manager, _ = make_managed(client := world.new_client(), Reconciler())
        manager.for_resource("v1", "secrets")
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(1)
        await client.close()
        with pytest.raises(BaseExceptionGroup, match="informers failed") as caught:
            await running
        assert [type(error) for error in caught.value.exceptions] == [ClientClosedError] * 2

    @staticmethod
    @simulate_scenario
    async def test_informer_stopped_before_it_has_synced_ends_the_manager(world: Simulation) -> None:
        client = world.new_client()
        theirs = SharedIndexInformer(ListWatch.for_resource(client, "v1", "secrets"), KubeObject)
        manager = Manager(world.client)
        manager.add(Controller("tests", Reconciler(), theirs))
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(1)
        stopped = theirs.begin()
        stopped.cancel()
        with pytest.raises(StoppedError, match="stopped before it had synced"):
            await running

    @staticmethod
    @simulate_scenario
    async def test_informer_that_is_never_started_is_logged_once(world: Simulation) -> None:
        create(world, "a")
        manager = Manager(world.client)
        theirs = SharedIndexInformer(ListWatch.for_resource(world.client, "v1", "configmaps"), KubeObject)
        reconciler = Reconciler()
        manager.add(Controller("tests", reconciler, theirs, owns=[manager.for_resource("v1", "secrets")]))
        async with manager:
            await asyncio.sleep(9)
            assert warnings_of(world) == []
            await asyncio.sleep(3600)
            (warning,) = warnings_of(world)
            assert "configmaps is not started, and a task waits for it: enter it" in warning
            async with theirs:
                await world.eventually(lambda: reconciler.keys == ["default/a"])

    @staticmethod
    @simulate_scenario
    async def test_slow_informer_is_not_reported_as_not_started(world: Simulation) -> None:
        manager, _ = make_managed(world.client, Reconciler())
        world.server.faults.fail(503, times=None, resource="configmaps")
        async with manager:
            await asyncio.sleep(60)
            assert not [warning for warning in warnings_of(world) if "never started" in warning]

    def test_invalid_arguments_are_refused(self) -> None:
        client = Client.from_url("http://127.0.0.1:1")
        with pytest.raises(ConfigError, match="grace_period"):
            Manager(client, grace_period=-1)
        with pytest.raises(ConfigError, match="on_trace must be"):
            Manager(client, on_trace=7)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="stalled_after"):
            Manager(client, stalled_after=float("nan"))
        manager, controller = make_managed(client, Reconciler())
        with pytest.raises(ConfigError, match="named tests exists already"):
            manager.add(Controller("tests", Reconciler(), controller.informer))


class TestState:
    @staticmethod
    @simulate_scenario
    async def test_tables_json_and_metrics(world: Simulation) -> None:
        create(world, "a")
        manager, _ = make_managed(world.client, Reconciler(lambda request: Result(requeue_after=60)))
        async with manager:
            await asyncio.sleep(1)
            state = manager.state
            lines = str(state).splitlines()
            assert lines[0].split() == ["INFORMER", "SYNCED", "OBJECTS", "PHASE", "IDLE", "LAST", "ERROR"]
            assert lines[1].split()[:4] == ["configmaps", "yes", "1", "watching"]
            (informer,) = state.informers
            dropping = replace(
                informer,
                reflectors=tuple(replace(reflector, rejected=3) for reflector in informer.reflectors),
            )
            assert "  1, 3 dropped  watching" in str(replace(state, informers=(dropping,)))
            assert lines[-1].split()[:8] == ["tests", "1/1", "0", "1", "0", "1", "0", "0"]
            assert (
                msgspec.json.decode(msgspec.json.encode(state.to_dict()))["controllers"][0]["name"] == "tests"
            )
            metrics = manager.metrics().splitlines()
            for line in (
                'controller_runtime_reconcile_total{controller="tests",result="requeue_after"} 1.0',
                'controller_runtime_max_concurrent_reconciles{controller="tests"} 1.0',
                "# TYPE controller_runtime_reconcile_time_seconds histogram",
                'controller_runtime_reconcile_time_seconds_count{controller="tests"} 1.0',
                'workqueue_adds_total{controller="tests",name="tests"} 1.0',
                'workqueue_depth{controller="tests",name="tests"} 0.0',
                'workqueue_retries_total{controller="tests",name="tests"} 1.0',
                'aioinformer_synced{informer="configmaps"} 1.0',
                'aioinformer_objects{informer="configmaps"} 1.0',
            ):
                assert line in metrics
            assert all(line.count("# TYPE") == 0 or metrics.count(line) == 1 for line in metrics)
            typed = [line.split()[2] for line in metrics if line.startswith("# TYPE")]
            assert typed == [line.split()[2] for line in metrics if line.startswith("# HELP")]

    @staticmethod
    @simulate_scenario
    async def test_informers_of_the_same_name_get_distinct_names(world: Simulation) -> None:
        manager, controller = make_managed(world.client, Reconciler())
        other = SharedIndexInformer(ListWatch.for_resource(world.client, "v1", "configmaps"), KubeObject)
        assert other.name == controller.informer.name
        manager.add(Controller("others", Reconciler(), other))
        names = ["configmaps", "configmaps (2)"]
        assert [state.name for state in manager.state.informers] == names
        assert [name for name in names if f'synced{{informer="{name}"}}' in manager.metrics()] == names

    @staticmethod
    @simulate_scenario
    async def test_names_of_controllers_informers_stay_stable(
        world: Simulation,
    ) -> None:
        manager = Manager(world.client)
        theirs = SharedIndexInformer(ListWatch.for_resource(world.client, "v1", "configmaps"), KubeObject)
        manager.add(Controller("tests", Reconciler(), theirs))
        later = manager.for_resource("v1", "configmaps")
        for _ in range(2):
            assert [state.name for state in manager.state.informers] == ["configmaps", "configmaps (2)"]
            await manager.remove(later)
            assert [state.name for state in manager.state.informers] == ["configmaps"]
            later = manager.for_resource("v1", "configmaps")

    @staticmethod
    @simulate_scenario
    async def test_informer_removed_while_metrics_are_read_is_released(
        world: Simulation,
    ) -> None:
        """For example, by a thread that answers Prometheus."""
        manager, controller = make_managed(world.client, Reconciler())
        gone = weakref.ref(manager.for_resource("v1", "secrets"))
        names = (sample.labels.get("informer") for sample in manager.samples())
        assert controller.informer.name in names
        await manager.remove(gone())  # type: ignore[arg-type]
        assert "secrets" in list(names)
        gc.collect()
        assert gone() is None

    @staticmethod
    @simulate_scenario
    async def test_table_shows_failures(world: Simulation) -> None:
        create(world, "a")

        def act(request: Request[KubeObject]) -> None:
            raise ValueError("no such\nthing " * 20)

        manager, _ = make_managed(world.client, Reconciler(act))
        async with manager:
            await asyncio.sleep(1)
            last = str(manager.state).splitlines()[-1]
            assert "default/a: ValueError: no such" in last
            assert last.endswith(" s ago)")
            assert manager.state.to_dict()["controllers"][0]["last_error_key"] == "default/a"


# -- on real loops, over sockets ---------------------------------------------------------------------------


def app_of(manager: Manager) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with manager:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/healthz")
    async def healthz() -> list[str]:
        return list(manager.healthy().reasons)

    return app


async def test_manager_in_a_fastapi_lifespan(server: APIServer) -> None:
    reconciler = Reconciler()
    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, reconciler)
        app = app_of(manager)
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as http,
        ):
            await until(lambda: reconciler.keys == ["default/a"])
            assert (await http.get("/healthz")).json() == []
            assert manager.ready()
    assert not manager.healthy()


async def test_manager_in_an_aiohttp_app(server: APIServer) -> None:
    """aiohttp enters and leaves cleanup contexts in different tasks."""
    reconciler = Reconciler()
    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, reconciler)

        async def running(app: web.Application) -> AsyncIterator[None]:
            async with manager:
                yield

        app = web.Application()
        app.cleanup_ctx.append(running)
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with TestClient(TestServer(app)):
            await until(lambda: reconciler.keys == ["default/a"])
    assert not manager.healthy()


async def test_manager_is_entered_and_left_in_different_tasks(server: APIServer) -> None:
    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, Reconciler())
        await asyncio.create_task(manager.__aenter__())
        await until(manager.ready)
        await asyncio.create_task(manager.__aexit__(None, None, None))
    assert not manager.healthy()


async def test_api_client_is_accepted_and_left_open(server: APIServer) -> None:
    from kubernetes_asyncio.client import ApiClient, Configuration, CoreV1Api

    reconciler = Reconciler()
    async with ApiClient(Configuration(host=server.url)) as api_client:
        manager = Manager(api_client)
        manager.add(Controller("tests", reconciler, manager.for_resource("v1", "configmaps")))
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with manager:
            await until(lambda: reconciler.keys == ["default/a"])
        assert len((await CoreV1Api(api_client).list_config_map_for_all_namespaces()).items) == 1
        assert len(await Resource(manager.client, "v1", "configmaps").list()) == 1, (
            "so is what was made of it"
        )


async def test_signal_ends_the_manager_gracefully(server: APIServer) -> None:
    ended: list[str] = []

    async def act(request: Request[KubeObject]) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)
        ended.append(request.name)

    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, act)
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        await manager.run_until_signal()
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
    assert ended == ["a"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_second_signal_cancels_reconciles(server: APIServer) -> None:
    ended: list[str] = []

    async def act(request: Request[KubeObject]) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        try:
            await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.sleep(3600)
        finally:
            ended.append(request.name)

    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, act)
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        await manager.run_until_signal([signal.SIGUSR1])
    assert ended == ["a"]


async def test_previous_signal_handlers_are_restored(server: APIServer) -> None:
    """Handlers of the process, and of the event loop."""
    mine: list[int] = []
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGUSR1, lambda number, frame: mine.append(number))
    loop.add_signal_handler(signal.SIGUSR2, mine.append, signal.SIGUSR2)

    async def act(request: Request[KubeObject]) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    try:
        async with Client.from_url(server.url) as client:
            manager, _ = make_managed(client, act)
            server.create("v1", "configmaps", {"metadata": {"name": "a"}})
            await manager.run_until_signal([signal.SIGUSR1, signal.SIGUSR2])
        assert mine == []
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(os.getpid(), number)
        await until(lambda: len(mine) == 2)
    finally:
        loop.remove_signal_handler(signal.SIGUSR2)
        signal.signal(signal.SIGUSR1, before)


async def test_signals_need_the_main_thread(server: APIServer) -> None:
    async def work() -> None:
        async with Client.from_url(server.url) as client:
            manager, _ = make_managed(client, Reconciler())
            with pytest.raises(
                ConfigError, match=r"only the main thread can handle signals.*await run\(\) here"
            ):
                await manager.run_until_signal()
            async with manager:  # not started
                pass

    await asyncio.to_thread(asyncio.run, work())


async def test_invalid_signals_leave_no_handler(server: APIServer) -> None:
    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, Reconciler())
        with pytest.raises((RuntimeError, OSError, ValueError)):
            await manager.run_until_signal([signal.SIGTERM, signal.SIGKILL])
        assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def run_until_signal(server: APIServer) -> AsyncIterator[tuple[Manager, asyncio.Task[None]]]:
    """A manager that has reconciled something, and the task that runs it."""
    reconciler = Reconciler()
    async with Client.from_url(server.url) as client:
        manager, _ = make_managed(client, reconciler)
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        running = asyncio.create_task(manager.run_until_signal())
        await until(lambda: reconciler.keys)
        yield manager, running


async def test_cancellation_beside_a_signal_is_raised(server: APIServer) -> None:
    async with run_until_signal(server) as (_, running):
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_cancellation_without_a_signal_is_raised(server: APIServer) -> None:
    async with run_until_signal(server) as (manager, running):
        (reading,) = (task for task in asyncio.all_tasks() if task.get_name() == f"{manager!r} reading")
        reading.cancel()
        await asyncio.wait({running})
        assert running.cancelled()


async def test_state_may_be_read_in_any_thread(server: APIServer) -> None:
    """For example, in a thread that answers Prometheus."""
    async with Client.from_url(server.url) as client:
        manager, controller = make_managed(
            client,
            Reconciler(lambda request: asyncio.sleep(3600)),
            grace_period=0.0,
            leader_election=elector(client),
        )
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        async with manager:
            await until(lambda: controller.state.running)
            text, metrics, health, leading = await asyncio.to_thread(
                lambda: (
                    str(controller.state),
                    manager.metrics(),
                    manager.healthy(),
                    manager.state.leading,
                )
            )
            assert "; at default/a for" in text
            assert 'controller_runtime_active_workers{controller="tests"} 1' in metrics
            assert health
            assert leading
