"""SharedInformerFactory: one informer for each collection."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

import msgspec
import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import (
    ApiError,
    Client,
    ConfigError,
    KubeObject,
    ResourceEventHandlerFuncs,
    SharedInformerFactory,
    StoppedError,
    SyncTimeout,
)
from aioinformer.errors import AlreadyStartedError, CacheMutatedError, InformerError, WrongEventLoopError
from aioinformer.fifo import RealFIFO
from aioinformer.metrics import Sample, exposition, labelled
from aioinformer.testing import APIServer
from aioinformer.tracing import Trace

from ..steps import until
from ..virtual_time import settle, virtual_time
from .handlers import Follower
from .subject import BY, By

Query = Any


class Body:
    """A response body: these bytes, then its end or silence."""

    def __init__(self, transport: FakeTransport, data: bytes, ends: bool) -> None:
        self._transport = transport
        self._chunks = [data] if data else []
        self._ends = ends
        transport.bodies.add(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        if self._chunks:
            return self._chunks.pop()
        if not self._ends:
            await asyncio.get_running_loop().create_future()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._transport.bodies.discard(self)


class FakeTransport:
    """An API server in which each collection has one object with the collection's name."""

    server = "http://fake"
    namespace = "default"

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.bodies: set[Body] = set()
        self.closed = 0

    async def open(self) -> None: ...

    async def close(self) -> None:
        self.closed += 1

    async def get(self, path: str, query: Query = (), *, timeout: float = 60) -> bytes:
        raise AssertionError

    async def send(self, change: Any, path: str, query: Query = (), *, timeout: float = 60) -> bytes:
        raise AssertionError

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = ""
    ) -> Body:
        asked = dict(query)
        self.asked.append((path, asked))
        await asyncio.sleep(0)
        if "missing" in path:
            raise ApiError(404, "NotFound")
        if "watch" in asked:
            return Body(self, b"", ends=False)
        *_, namespace, plural = path.split("/")
        metadata = {"name": plural, "namespace": namespace, "resourceVersion": "7", "uid": path}
        items = {
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "10"},
            "items": [{"metadata": metadata}],
        }
        return Body(self, json.dumps(items).encode(), ends=True)

    def paths(self) -> list[str]:
        return [path for path, asked in self.asked if "watch" not in asked]


def factory(transport: FakeTransport, **options: Any) -> SharedInformerFactory:
    return SharedInformerFactory(Client(transport), use_watch_list=False, **options)


class TestForResource:
    @virtual_time
    async def test_informers_use_the_factorys_queue(self) -> None:
        subject = factory(FakeTransport(), queue="real")
        pods = subject.for_resource("v1", "pods", namespace="red")
        async with subject:
            await subject.wait_for_cache_sync(timeout=10)
            assert [type(queue) for queue in pods._queues] == [RealFIFO]

    def test_same_arguments_return_the_same_informer(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods")
        assert subject.for_resource("v1", "pods") is pods
        assert subject.for_resource("v1", "pods", KubeObject) is pods
        assert subject.for_resource("v1", "pods", label_selector="", field_selector="") is pods
        both = subject.for_resource("v1", "pods", namespaces=["red", "blue"])
        assert subject.for_resource("v1", "pods", namespaces=["blue", "red"]) is both
        assert subject.informers == [pods, both]

    def test_other_arguments_return_another_informer(self) -> None:
        class Pod(msgspec.Struct):
            metadata: dict[str, Any]

        subject = factory(FakeTransport())
        informers = [
            subject.for_resource("v1", "pods"),
            subject.for_resource("v1", "pods", dict),
            subject.for_resource("v1", "pods", Pod),
            subject.for_resource("v1", "secrets"),
            subject.for_resource("v2", "pods"),
            subject.for_resource("v1", "pods", namespace="red"),
            subject.for_resource("v1", "pods", namespaces=["red", "blue"]),
            subject.for_resource("v1", "pods", label_selector="a=b"),
            subject.for_resource("v1", "pods", field_selector="a=b"),
            subject.for_resource("v1", "pods", metadata_only=True),
        ]
        assert len({id(informer) for informer in informers}) == len(informers)
        assert subject.informers == informers

    def test_default_namespace_equals_the_explicit_one(self) -> None:
        subject = factory(FakeTransport(), namespace="red")
        pods = subject.for_resource("v1", "pods")
        assert subject.for_resource("v1", "pods", namespace="red") is pods
        assert subject.for_resource("v1", "pods", namespaces=["red", "red"]) is pods

    @pytest.mark.parametrize(
        ("default", "asked", "path"),
        [
            ("red", {}, "/api/v1/namespaces/red/pods"),
            ("red", {"namespace": "blue"}, "/api/v1/namespaces/blue/pods"),
            ("red", {"namespace": ""}, "/api/v1/pods"),
            ("red", {"namespaced": False}, "/api/v1/pods"),
            ("red", {"namespace": "", "namespaced": False}, "/api/v1/pods"),
            ("", {}, "/api/v1/pods"),
            (None, {}, "/api/v1/pods"),
            (None, {"namespaced": False}, "/api/v1/pods"),
        ],
    )
    @virtual_time
    async def test_path_of_the_collection(self, default: str | None, asked: Any, path: str) -> None:
        transport = FakeTransport()
        async with factory(transport, namespace=default) as subject:
            await subject.for_resource("v1", "pods", **asked).wait_synced(10)
        assert transport.paths() == [path]

    @virtual_time
    async def test_built_in_scope_is_known(self) -> None:
        transport = FakeTransport()
        async with factory(transport, namespace="default") as subject:
            nodes = subject.for_resource("v1", "nodes")
            assert subject.for_resource("nodes") is nodes
            assert subject.for_resource("v1", "nodes", namespaced=False) is nodes
            await nodes.wait_synced(10)
        assert transport.paths() == ["/api/v1/nodes"]

    @pytest.mark.parametrize("asked", [{"namespace": "red"}, {"namespaces": ["red"]}])
    @pytest.mark.parametrize("plural", ["nodes", "caves"])
    def test_cluster_scoped_excludes_a_namespace(self, plural: str, asked: Any) -> None:
        with pytest.raises(ConfigError, match="are cluster-scoped: leave out namespace and namespaces"):
            factory(FakeTransport()).for_resource("v1", plural, namespaced=plural == "nodes", **asked)

    @pytest.mark.parametrize("namespace", [7, 0, False, ["red"], "Red"])
    def test_invalid_namespace_is_refused(self, namespace: Any) -> None:
        with pytest.raises(ConfigError, match="namespace must be"):
            factory(FakeTransport()).for_resource("v1", "pods", namespace=namespace)

    @pytest.mark.parametrize("namespaces", [[], [""], ["red", ""], ["red", None], ["red", 7], ["Red"]])
    def test_invalid_namespaces_are_refused(self, namespaces: Any) -> None:
        with pytest.raises(ConfigError, match="namespace"):
            factory(FakeTransport()).for_resource("v1", "pods", namespaces=namespaces)


class TestLifecycle:
    @virtual_time
    async def test_async_with_starts_and_stops_informers(self) -> None:
        transport = FakeTransport()
        subject = factory(transport, namespace="red")
        pods, secrets = subject.for_resource("v1", "pods"), subject.for_resource("v1", "secrets", dict)
        follower = Follower()
        pods.add_event_handler(follower)
        async with subject:
            await subject.wait_for_cache_sync(timeout=10)
            assert pods.store.list_keys() == ["red/pods"]
            assert pods.indexer.index_keys("namespace", "red") == ["red/pods"]
            assert secrets.store.list()[0]["metadata"]["name"] == "secrets"
            await settle()
            assert len(transport.bodies) == 2
        assert follower.calls == ["add pods 7"]
        assert pods.is_stopped
        assert secrets.is_stopped
        assert not transport.bodies
        assert transport.closed == 0, "the caller closes the client"
        assert transport.paths() == ["/api/v1/namespaces/red/pods", "/api/v1/namespaces/red/secrets"]

    async def test_with_an_api_client_no_watch_stays_open(self) -> None:
        async with APIServer() as server, ApiClient(Configuration(host=server.url)) as api:
            async with SharedInformerFactory(api) as subject:
                subject.for_resource("v1", "configmaps")
                await subject.wait_for_cache_sync(timeout=30)
                assert server.open_watches == 1
            await until(lambda: not server.open_watches)

    @virtual_time
    async def test_metrics_for_prometheus(self) -> None:
        subject = factory(FakeTransport())
        pods, secrets = (subject.for_resource("v1", plural) for plural in ("pods", "secrets"))
        pods.add_event_handler(Follower())
        async with subject:
            await subject.wait_for_cache_sync(timeout=10)
            lines = subject.metrics().splitlines()
        assert secrets.has_synced()
        for line in (
            "# TYPE aioinformer_objects gauge",
            'aioinformer_objects{informer="pods"} 1.0',
            'aioinformer_synced{informer="secrets"} 1.0',
            'aioinformer_lists_total{informer="pods",reflector="pods"} 1.0',
            "# TYPE aioinformer_handler_depth gauge",
        ):
            assert lines.count(line) == 1, lines

    @virtual_time
    async def test_metrics_of_several_clusters_are_labelled(self) -> None:
        clusters = {name: factory(FakeTransport()) for name in ("east", "west")}
        samples: list[Sample] = []
        for name, subject in clusters.items():
            subject.for_resource("v1", "pods")
            async with subject:
                await subject.wait_for_cache_sync(timeout=10)
                samples += labelled(subject.samples(), cluster=name)
        lines = exposition(samples).splitlines()
        assert len(set(lines)) == len(lines)
        assert [line for line in lines if "aioinformer_objects" in line] == [
            "# HELP aioinformer_objects Objects in the cache.",
            "# TYPE aioinformer_objects gauge",
            'aioinformer_objects{cluster="east",informer="pods"} 1.0',
            'aioinformer_objects{cluster="west",informer="pods"} 1.0',
        ]

    @virtual_time
    async def test_factory_name_prefixes_informer_names(self) -> None:
        subject = factory(FakeTransport(), name="east")
        subject.for_resource("v1", "pods")
        subject.for_resource("v1", "pods", dict)
        subject.for_resource("v1", "pods", namespaces=["red", "blue"])
        assert [informer.name for informer in subject.informers] == [
            "east pods", "east pods (2)", "east pods in red, east pods in blue"
        ]  # fmt: skip
        async with subject:
            await subject.wait_for_cache_sync(timeout=10)
            names = [
                reflector.name for informer in subject.informers for reflector in informer.state.reflectors
            ]
        assert names == ["east pods", "east pods (2)", "east pods in red", "east pods in blue"]

    async def test_on_trace_gets_traces_of_all_informers(self) -> None:
        traces: asyncio.Queue[Trace] = asyncio.Queue()
        async with (
            APIServer() as server,
            Client.from_url(server.url) as client,
            SharedInformerFactory(client, on_trace=traces.put_nowait) as subject,
        ):
            for plural in ("configmaps", "secrets"):
                subject.for_resource("v1", plural).add_event_handler(Follower())
            await subject.wait_for_cache_sync(timeout=30)
            for plural in ("configmaps", "secrets"):
                server.create("v1", plural, {"metadata": {"name": "a"}})
                trace = await traces.get()
                assert (trace.informer, trace.handler, trace.key) == (plural, "a follower", "default/a")

    @virtual_time
    async def test_informers_and_handlers_have_unique_names(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods")
        subject.for_resource("v1", "pods", label_selector="app=web", field_selector="spec.nodeName=n")
        subject.for_resource("v1", "pods", dict)
        subject.for_resource("v1", "pods", namespaces=["red", "blue"], label_selector="a=b")
        gone, *_ = [pods.add_event_handler(Follower()) for _ in range(3)]
        pods.remove_event_handler(gone)
        async with subject:
            await subject.wait_for_cache_sync(timeout=10)
            lines = [line.rpartition(" ")[0] for line in subject.metrics().splitlines() if line[0] != "#"]
        assert len(set(lines)) == len(lines)
        assert [
            line for line in lines if line.startswith(("aioinformer_synced", "aioinformer_watching"))
        ] == [
            'aioinformer_synced{informer="pods"}',
            'aioinformer_synced{informer="pods with app=web,spec.nodeName=n"}',
            'aioinformer_synced{informer="pods (2)"}',
            'aioinformer_synced{informer="pods in red with a=b, pods in blue with a=b"}',
            'aioinformer_watching{informer="pods",reflector="pods"}',
            'aioinformer_watching{informer="pods with app=web,spec.nodeName=n",'
            'reflector="pods with app=web,spec.nodeName=n"}',
            'aioinformer_watching{informer="pods (2)",reflector="pods (2)"}',
            'aioinformer_watching{informer="pods in red with a=b, pods in blue with a=b",'
            'reflector="pods in red with a=b"}',
            'aioinformer_watching{informer="pods in red with a=b, pods in blue with a=b",'
            'reflector="pods in blue with a=b"}',
        ]
        assert [line for line in lines if "handler_depth" in line] == [
            'aioinformer_handler_depth{handler="a follower (2)",informer="pods"}',
            'aioinformer_handler_depth{handler="a follower (3)",informer="pods"}',
        ]

    @virtual_time
    async def test_name_of_many_namespaces_is_short(self) -> None:
        subject = factory(FakeTransport())
        names = [f"team-{number}" for number in range(100)]
        for chosen in (names, names[:4], names[:3]):
            subject.for_resource("v1", "pods", namespaces=chosen)
        subject.for_resource("v1", "pods", dict, namespaces=names[:4])
        assert [informer.name for informer in subject.informers] == [
            "pods in team-0 and 99 other namespaces",
            "pods in team-0 and 3 other namespaces",
            "pods in team-0, pods in team-1, pods in team-2",
            "pods in team-0 and 3 other namespaces (2)",
        ]

    @virtual_time
    async def test_informer_of_several_namespaces(self) -> None:
        transport = FakeTransport()
        subject = factory(transport)
        pods = subject.for_resource("v1", "pods", namespaces=["red", "blue"], label_selector="a=b")
        async with subject:
            await subject.wait_for_cache_sync()
            assert sorted(pods.store.list_keys()) == ["blue/pods", "red/pods"]
        assert transport.paths() == ["/api/v1/namespaces/red/pods", "/api/v1/namespaces/blue/pods"]
        assert {asked["labelSelector"] for _, asked in transport.asked} == {"a=b"}

    @virtual_time
    async def test_informer_created_after_start_starts_by_itself(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods", namespace="red")
        async with subject:
            await subject.wait_for_cache_sync()
            secrets = subject.for_resource("v1", "secrets", namespace="red")
            secrets.set_transform(lambda obj: obj)  # allowed until the next event loop iteration
            await secrets.wait_synced(timeout=10)
            assert subject.for_resource("v1", "secrets", namespace="red") is secrets
            with pytest.raises(AlreadyStartedError):
                secrets.set_transform(lambda obj: obj)
        assert pods.is_stopped
        assert secrets.is_stopped

    @virtual_time
    async def test_wait_includes_an_informer_created_just_before(self) -> None:
        async with factory(FakeTransport()) as subject:
            secrets = subject.for_resource("v1", "secrets", namespace="red")
            await subject.wait_for_cache_sync(timeout=10)
            assert secrets.has_synced()

    @virtual_time
    async def test_informers_do_not_start_before_the_factory(self) -> None:
        subject = factory(transport := FakeTransport())
        subject.for_resource("v1", "secrets", namespace="red")
        await asyncio.sleep(10)
        assert not transport.asked

    @virtual_time
    async def test_exit_in_the_same_iteration_stops_a_new_informer(self) -> None:
        async with factory(transport := FakeTransport()) as subject:
            secrets = subject.for_resource("v1", "secrets", namespace="red")
        await settle()
        assert not transport.asked
        with pytest.raises(StoppedError):  # it does not wait for ever
            await secrets.wait_synced(10)

    @virtual_time
    async def test_for_resource_after_shutdown_raises(self) -> None:
        async with factory(FakeTransport()) as subject:
            pods = subject.for_resource("v1", "pods")
        assert subject.for_resource("v1", "pods") is pods
        with pytest.raises(StoppedError, match=r"has no informer of secrets of v1"):
            subject.for_resource("v1", "secrets")

    @virtual_time
    async def test_start_after_shutdown_only_warns(self, caplog: pytest.LogCaptureFixture) -> None:
        transport = FakeTransport()
        subject = factory(transport)
        pods = subject.for_resource("v1", "pods")
        await subject.shutdown()
        subject.start()
        await settle()
        assert not transport.asked
        assert not pods.is_stopped
        await subject.shutdown()
        (message,) = caplog.messages
        assert message.endswith("pods> was shut down and starts no informers: create another factory")

    @virtual_time
    async def test_run_after_exit_raises(self) -> None:
        subject = factory(FakeTransport())
        subject.for_resource("v1", "pods")
        async with subject:
            await subject.wait_for_cache_sync()
        with pytest.raises(AlreadyStartedError, match="was shut down"):
            await subject.run()

    @virtual_time
    async def test_run_while_running_raises(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods")
        async with subject:
            with pytest.raises(AlreadyStartedError, match="runs already"):
                await subject.run()
            assert not pods.is_stopped

    @virtual_time
    async def test_shutdown_ends_run(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods", namespace="red")
        running = asyncio.create_task(subject.run())
        await pods.wait_synced()
        await subject.shutdown()
        await running

    @virtual_time
    async def test_shutdown_right_after_start_ends_waits(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods")
        waiting = asyncio.create_task(pods.wait_synced())
        subject.start()
        await subject.shutdown()
        with pytest.raises(StoppedError):
            await waiting

    @virtual_time
    async def test_run_of_a_started_informer_raises(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods")
        async with subject:
            with pytest.raises(AlreadyStartedError):
                await pods.run()

    @virtual_time
    async def test_factory_does_not_stop_an_informer_it_did_not_start(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods", namespace="red")
        secrets = subject.for_resource("v1", "secrets", namespace="red")
        async with pods:
            async with subject:
                await subject.wait_for_cache_sync()
                assert secrets.has_synced()
            assert secrets.is_stopped
            assert not pods.is_stopped

    @virtual_time
    async def test_timeout_names_the_resource_and_the_error(self, caplog: pytest.LogCaptureFixture) -> None:
        subject = factory(FakeTransport())
        subject.for_resource("v1", "missing", namespace="red")
        async with subject:
            with pytest.raises(SyncTimeout, match=r"missing.*404 NotFound"):
                await subject.wait_for_cache_sync(timeout=10)

    @virtual_time
    async def test_cancelled_run_stops_informers(self) -> None:
        transport = FakeTransport()
        subject = factory(transport)
        pods = subject.for_resource("v1", "pods", namespace="red")
        task = asyncio.create_task(subject.run())
        await pods.wait_synced()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert pods.is_stopped
        assert not transport.bodies

    @virtual_time
    async def test_informer_errors_are_raised_on_exit(self, caplog: pytest.LogCaptureFixture) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods", namespace="red")

        async def fail() -> None:
            raise ZeroDivisionError

        pods.run = fail  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            async with subject:
                await settle()
        assert "failed" in caplog.text

    @virtual_time
    async def test_detect_mutations_finds_handlers_that_change_objects(self) -> None:
        def change(obj: dict[str, Any], is_in_initial_list: bool) -> None:
            obj["metadata"]["labels"] = {"seen": "yes"}

        subject = factory(FakeTransport(), detect_mutations=True)
        for plural in ("pods", "nodes"):
            informer = subject.for_resource("v1", plural, dict[str, Any])
        informer.add_event_handler(ResourceEventHandlerFuncs(on_add=change))
        errors: list[str] = []
        try:
            await subject.run()
        except* CacheMutatedError as error:
            errors = [str(inner) for inner in error.exceptions]
        assert len(errors) == 1
        assert errors[0].startswith("nodes: cached object")

    @virtual_time
    async def test_leaving_raises_a_change_that_was_not_found_before(self) -> None:
        subject = factory(FakeTransport(), detect_mutations=True)
        pods = subject.for_resource("v1", "pods", dict[str, Any])
        with pytest.raises(CacheMutatedError, match="pods: cached object"):
            async with subject:
                await pods.wait_synced(timeout=5)
                pods.store.list()[0]["changed"] = True


class TestMistakes:
    @virtual_time
    async def test_namespaces_refuses_a_string(self) -> None:
        subject = factory(FakeTransport())
        with pytest.raises(ConfigError, match="list of names"):
            subject.for_resource("v1", "pods", namespaces="dev")
        with pytest.raises(ConfigError, match="exclude each other"):
            subject.for_resource("v1", "pods", namespace="a", namespaces=["b"])

    @pytest.mark.parametrize("selector", ["label_selector", "field_selector"])
    def test_selector_must_be_a_string(self, selector: Any) -> None:
        wrong: Any = {selector: {"app": "web"}}
        with pytest.raises(ConfigError, match=rf"{selector} must be a string, like '.+=.+', not {{'app"):
            factory(FakeTransport()).for_resource("v1", "pods", **wrong)

    @virtual_time
    async def test_wait_skips_and_logs_informers_that_were_never_started(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        subject = factory(FakeTransport())
        await subject.wait_for_cache_sync(timeout=1)
        pods, _ = (subject.for_resource("v1", plural) for plural in ("pods", "secrets"))
        async with pods:
            await settle()
            await subject.wait_for_cache_sync(timeout=1)
        assert caplog.messages == [
            "<SharedInformerFactory of pods, secrets> was never started, so this does not wait for secrets: "
            "enter it (async with), or call start()"
        ]

    @virtual_time
    async def test_for_resource_in_another_thread_raises(self) -> None:
        subject = factory(FakeTransport())
        pods = subject.for_resource("v1", "pods")
        async with subject:
            assert await asyncio.to_thread(subject.for_resource, "v1", "pods") is pods
            with pytest.raises(
                WrongEventLoopError,
                match="<SharedInformerFactory of pods> runs in an event loop, and none is running here",
            ):
                await asyncio.to_thread(subject.for_resource, "v1", "secrets")
            assert subject.informers == [pods]

    def test_start_without_event_loop_raises(self) -> None:
        subject = factory(FakeTransport())
        with pytest.raises(WrongEventLoopError, match="of nothing"):
            subject.start()

    @pytest.mark.parametrize("on_trace", [7, "pods"])
    def test_invalid_on_trace_is_refused(self, on_trace: Any) -> None:
        with pytest.raises(ConfigError, match="on_trace"):
            factory(FakeTransport(), on_trace=on_trace)

    @pytest.mark.parametrize("by", BY)
    @virtual_time
    async def test_shutdown_from_inside_a_handler_is_refused(self, by: By) -> None:
        subject = factory(FakeTransport())
        refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def stop(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await by(subject.shutdown())
            except InformerError as error:
                refused.set_result(str(error))

        subject.for_resource("v1", "pods").add_event_handler(ResourceEventHandlerFuncs(on_add=stop))
        async with subject:
            assert "inside its own handler" in await refused

    @virtual_time
    async def test_task_started_by_a_handler_may_shut_down_after_the_call(self) -> None:
        subject = factory(FakeTransport())
        stopping: list[asyncio.Task[None]] = []

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            stopping.append(asyncio.create_task(stop()))

        async def stop() -> None:
            await asyncio.sleep(1)
            await subject.shutdown()

        pods = subject.for_resource("v1", "pods")
        pods.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await pods.wait_stopped()
            await stopping[0]
