"""An informer runs once, can be stopped at any time, and then ends all waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import (
    Client,
    ConfigError,
    DeletedFinalStateUnknown,
    KubeObject,
    ListWatch,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    SharedInformerFactory,
    StoppedError,
    SyncTimeout,
    new_informer,
    wait_for_cache_sync,
)
from aioinformer.cache import CacheMutationDetector
from aioinformer.errors import AlreadyStartedError, CacheMutatedError

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    FOREVER,
    GONE,
    Scripted,
    added,
    deleted,
    expired_error,
    page,
    raw_pod,
)
from ..virtual_time import cancel_after, run, settle, virtual_time
from .handlers import Follower
from .subject import informer
from .test_factory import FakeTransport, factory


def ignoring_cancellation_until(release: asyncio.Event) -> ResourceEventHandlerFuncs[KubeObject]:
    """Return a handler whose call ignores cancellation until ``release`` is set."""

    async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    return ResourceEventHandlerFuncs(on_add=on_add)


class TestLifecycle:
    @virtual_time
    async def test_second_run_raises(self) -> None:
        """W18."""
        subject = informer(Scripted([page(version=1)]))
        async with subject:
            with pytest.raises(
                AlreadyStartedError, match="scripted pods> was started before: make another one"
            ):
                await subject.run()
            with pytest.raises(AlreadyStartedError):
                async with subject:
                    pass
        with pytest.raises(AlreadyStartedError):
            await subject.run()
        with pytest.raises(AlreadyStartedError):
            async with subject:
                pass

    @pytest.mark.parametrize("steps", [0, 1, 2])
    @virtual_time
    async def test_exit_right_after_enter_stops_it(self, steps: int) -> None:
        subject = informer(Scripted([page(version=1)]))
        assert subject.state.phase == "new"
        assert "not started" in str(subject.state)
        async with subject:
            for _ in range(steps):
                await asyncio.sleep(0)
        state = subject.state
        assert state.stopped
        assert state.phase == "stopped"
        assert "not started" not in str(state)

    @pytest.mark.parametrize("what", ["its cache", "a handler", "a version", "with others"])
    @virtual_time
    async def test_long_wait_for_an_unstarted_informer_logs_a_warning(
        self, what: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        subject = informer(Scripted([page(version=1)]))
        registration = subject.add_event_handler(Follower())
        begin: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "its cache": subject.wait_synced,
            "a handler": registration.wait_synced,
            "a version": lambda: subject.wait_for("1"),
            "with others": lambda: wait_for_cache_sync(subject),
        }
        waiting = asyncio.create_task(begin[what]())
        await asyncio.sleep(9)
        assert caplog.messages == []
        await asyncio.sleep(60)
        (message,) = caplog.messages
        assert message.startswith(f"{subject.name} is not started, and a task waits for it: enter it")
        async with subject:
            await waiting

    @virtual_time
    async def test_short_wait_for_an_unstarted_informer_logs_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        subject = informer(Scripted([page(version=1)]))
        with pytest.raises(SyncTimeout):
            await subject.wait_synced(timeout=5)
        waiting = asyncio.create_task(subject.wait_synced())
        await asyncio.sleep(9)
        async with subject:
            await asyncio.sleep(60)
        assert await waiting
        assert caplog.messages == []

    @virtual_time
    async def test_enter_while_run_is_awaited_raises(self) -> None:
        subject = informer(Scripted([page(version=1)]))
        task = asyncio.create_task(subject.run())
        await subject.wait_synced()
        with pytest.raises(AlreadyStartedError):
            async with subject:
                pass
        task.cancel()
        await asyncio.wait({task})
        assert subject.is_stopped

    @pytest.mark.parametrize("started", [False, True])
    @virtual_time
    async def test_setters_raise_after_the_start(self, started: bool) -> None:
        subject = informer(Scripted([page(version=1)]))
        async with subject:
            if started:
                await settle()
            with pytest.raises(AlreadyStartedError, match="started before: call set_transform before"):
                subject.set_transform(lambda obj: obj)
            with pytest.raises(
                AlreadyStartedError, match="started before: call set_watch_error_handler before"
            ):
                subject.set_watch_error_handler(lambda reflector, error: None)

    @virtual_time
    async def test_watch_error_handler_gets_list_and_stream_errors(self) -> None:
        """The last handler set is used; it also gets errors of the stream (C72: difference from upstream)."""
        errors: list[str] = []
        server = Scripted([OSError("no"), page(version=10)], [[GONE]])
        subject = informer(server, watch_error_handler=lambda reflector, error: errors.append("unused"))
        subject.set_watch_error_handler(lambda reflector, error: errors.append(f"{reflector.name}: {error}"))
        async with subject:
            await asyncio.sleep(10)
        assert errors == ["scripted pods: no", "scripted pods: 410 Gone: no message"]

    @virtual_time
    async def test_enter_and_exit_in_different_tasks(self) -> None:
        subject = informer(server := Scripted([page(version=1)]))
        await asyncio.create_task(subject.__aenter__())
        await subject.wait_synced()
        await asyncio.create_task(subject.__aexit__(None, None, None))
        assert subject.is_stopped
        server.assert_closed()

    @virtual_time
    async def test_exit_before_it_ran_ends_waits(self) -> None:
        """Waiters get a StoppedError."""
        subject = informer(server := Scripted([page(version=1)]))
        registration = subject.add_event_handler(Follower())
        waiting = [asyncio.create_task(waited_for.wait_synced()) for waited_for in (subject, registration)]
        await settle()
        async with subject:
            pass
        for task in waiting:
            with pytest.raises(StoppedError):
                await task
        assert subject.is_stopped
        assert not server.calls
        with pytest.raises(StoppedError):
            subject.add_event_handler(Follower())

    @virtual_time
    async def test_error_of_run_is_raised_on_exit(self) -> None:
        class Mutating:
            def on_add(self, obj: dict[str, Any], is_in_initial_list: bool) -> None:
                obj["metadata"]["labels"] = {"seen": "yes"}

            def on_update(self, old: dict[str, Any], new: dict[str, Any]) -> None: ...

            def on_delete(self, obj: dict[str, Any] | DeletedFinalStateUnknown[Any]) -> None: ...

        subject = SharedIndexInformer(
            Scripted([page(raw_pod("a", 1), version=10)]),
            dict[str, Any],
            mutation_detector=CacheMutationDetector(1.0),
        )
        subject.add_event_handler(Mutating())
        with pytest.raises(CacheMutatedError, match="scripted pods: cached object default/a"):
            async with subject:
                await asyncio.sleep(5)
                assert subject.is_stopped
        with pytest.raises(StoppedError):
            subject.add_event_handler(Mutating())

    @virtual_time
    async def test_handlers_end_after_the_watch(self) -> None:
        """C57: first the controller, then the processor. Pending notifications are dropped, running calls cancelled."""
        order: list[str] = []

        class Server(Scripted):
            async def watch(self, options: Any) -> Any:
                return Watched()

        class Watched:
            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> Any:
                await asyncio.get_running_loop().create_future()

            async def aclose(self) -> None:
                await asyncio.sleep(1)
                order.append("watch closed")

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                order.append(f"handler of {obj.name} ended")

        subject = informer(Server([page(raw_pod("a", 1), raw_pod("b", 2), version=10)]))
        registration = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(1)
        assert order == ["watch closed", "handler of a ended"]
        assert registration.state.depth == 0

    @virtual_time
    async def test_handlers_that_ignore_cancellation_delay_exit_and_are_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        release = asyncio.Event()
        stubborn = ignoring_cancellation_until(release)
        subject = informer(Scripted([page(raw_pod("a", 1), version=10)]))
        for name in ("stubborn", "removed"):
            registration = subject.add_event_handler(stubborn, name=name)
        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=lambda *_: asyncio.sleep(3600)))
        await subject.__aenter__()
        await subject.wait_synced()
        await settle()
        subject.remove_event_handler(registration)
        leaving = asyncio.create_task(subject.__aexit__(None, None, None))
        await asyncio.sleep(9)
        assert not caplog.messages
        await asyncio.sleep(16)
        names = "removed at default/a, stubborn at default/a"
        assert (
            caplog.messages
            == [f"scripted pods: waiting for handlers that ignore being cancelled: {names}"] * 2
        )
        release.set()
        await leaving

    @virtual_time
    async def test_shutdown_abandons_stubborn_informers_after_the_grace(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        release = asyncio.Event()
        stubborn = ignoring_cancellation_until(release)
        subject = factory(FakeTransport())
        with pytest.raises(ConfigError, match="grace must be"):
            await subject.shutdown(grace=-1)
        with pytest.raises(ConfigError, match="grace must be above 0"):
            await subject.shutdown(grace=0)
        pods, secrets = (
            subject.for_resource("v1", plural, namespace="red") for plural in ("pods", "secrets")
        )
        pods.add_event_handler(stubborn)
        subject.start()
        await asyncio.sleep(1)
        ending = asyncio.create_task(subject.shutdown(grace=5))
        await asyncio.sleep(4)
        assert secrets.is_stopped
        assert not ending.done()
        await asyncio.wait({ending}, timeout=1.5)
        assert ending.done()
        assert caplog.messages == [f"{subject!r}: left behind because they did not end in time: pods in red"]
        waiting = asyncio.create_task(subject.shutdown())  # without a grace it waits for them
        await settle()
        assert not waiting.done()
        release.set()
        await waiting

    @virtual_time
    async def test_reflector_of_one_namespace_has_the_informers_name(self) -> None:
        red = ListWatch.for_resource(Client(FakeTransport()), "v1", "pods", "red")
        async with SharedIndexInformer(red, KubeObject, name="mine") as subject:
            await settle()
            assert [reflector.name for reflector in subject.state.reflectors] == ["mine"]

    @virtual_time
    async def test_exit_and_run_do_not_wait_for_abandoned_informers(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        release = asyncio.Event()
        for is_entered in (True, False):
            subject = factory(FakeTransport())
            subject.for_resource("v1", "pods", namespace="red").add_event_handler(
                ignoring_cancellation_until(release)
            )
            if is_entered:
                async with asyncio.timeout(3), subject:
                    await asyncio.sleep(1)
                    await subject.shutdown(grace=1)
            else:
                running = asyncio.create_task(subject.run())
                await asyncio.sleep(1)
                async with asyncio.timeout(2):
                    await subject.shutdown(grace=1)
                    await running
            assert caplog.messages == [
                f"{subject!r}: left behind because they did not end in time: pods in red"
            ]
            caplog.clear()
        release.set()
        await settle()

    @virtual_time
    async def test_has_synced_keeps_its_value_after_stop(self) -> None:
        """C58."""
        subject = informer(Scripted([page(version=1)]))
        assert not subject.has_synced()
        async with subject:
            await subject.wait_synced()
        assert subject.has_synced()
        await subject.wait_synced()
        subject = informer(Scripted())
        async with subject:
            await settle()
        assert not subject.has_synced()
        with pytest.raises(StoppedError, match="scripted pods stopped before it had synced"):
            await subject.wait_synced()

    @pytest.mark.parametrize(
        "server",
        [
            lambda: Scripted(
                [page(raw_pod("a", 1), version=10)], [[added("b", 11), deleted("a", 12), FOREVER]]
            ),
            lambda: Scripted(
                [page(raw_pod("a", 1), version=10), expired_error(), page(version=12)], [[GONE]]
            ),
            lambda: Scripted([OSError("x")], [OSError("x")], watch_list_semantics=True),
        ],
    )
    def test_cancel_at_any_step_closes_streams_and_ends_waits(self, server: Callable[[], Scripted]) -> None:
        """C75; the calls of each handler fit each other."""
        for steps in range(60):

            async def main(steps: int = steps) -> None:
                source = server()
                subject = SharedIndexInformer(source, KubeObject, 0.5, random=NoJitter())
                follower = Follower(seconds=0.01)
                waiting = [
                    asyncio.create_task(waited_for.wait_synced())
                    for waited_for in (subject, subject.add_event_handler(follower))
                ]
                task = asyncio.create_task(subject.run())
                assert await cancel_after(steps, task)
                source.assert_closed()
                if steps == 0:
                    for wait in waiting:  # it has not started, and still may
                        wait.cancel()
                await asyncio.wait(waiting)
                assert steps == 0 or subject.is_stopped
                for wait in waiting:
                    if not wait.cancelled() and wait.exception() is not None:
                        assert isinstance(wait.exception(), StoppedError)
                assert not follower.wrong

            run(main())

    @virtual_time
    async def test_cancelled_exit_still_waits_for_the_end(self) -> None:
        for steps in range(12):
            subject = informer(server := Scripted([page(raw_pod("a", 1), version=1)]))
            await subject.__aenter__()
            await subject.wait_synced()
            await cancel_after(steps, asyncio.create_task(subject.__aexit__(None, None, None)))
            if steps:
                assert subject.is_stopped
                server.assert_closed()
            else:
                await subject.__aexit__(None, None, None)

    def test_unknown_queue_and_object_type_are_refused(self) -> None:
        wrong: Any
        for wrong in ("ring", None, ["real"]):
            with pytest.raises(ConfigError, match=r"no queue named .*; there are: 'delta', 'real'"):
                SharedIndexInformer(Scripted(), KubeObject, queue=wrong)
            with pytest.raises(ConfigError, match="no queue named"):
                SharedInformerFactory(None, queue=wrong)
            with pytest.raises(ConfigError, match="no queue named"):
                new_informer(Scripted(), KubeObject, 0.0, Follower(), queue=wrong)
        with pytest.raises(ConfigError):
            SharedIndexInformer(Scripted(), int)
