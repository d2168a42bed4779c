"""new_informer: a store, a controller and one handler, called inside the process loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    KubeObject,
    ResourceEventHandlerFuncs,
    StoppedError,
    SyncTimeout,
    new_informer,
    wait_for_cache_sync,
)
from aioinformer.controller import QueueName
from aioinformer.errors import AlreadyStartedError, ClientClosedError
from aioinformer.objects.meta import WatchEvent

from ..queues import QUEUES, use_queue
from ..reflector.scripted import FOREVER, Scripted, added, deleted, error_event, modified, page, raw_pod
from ..virtual_time import virtual_time


@pytest.fixture(params=QUEUES, autouse=True)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueName:
    """Select the queue of all informers in this file."""
    name: QueueName = request.param
    use_queue(name, monkeypatch)
    return name


class Recorder:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self.calls.append(("add", obj.name, is_in_initial_list))

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self.calls.append(("update", new.name, old.resource_version, new.resource_version))

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        name = obj.key if isinstance(obj, DeletedFinalStateUnknown) else obj.name
        self.calls.append(("delete", name, type(obj).__name__))


@virtual_time
async def test_store_follows_server_and_handler_is_called(queue: QueueName) -> None:
    recorder = Recorder()
    server = Scripted(
        [page(raw_pod("a", 1), raw_pod("b", 2), version=10), page(raw_pod("c", 11), version=20)],
        [[1.0, added("c", 11), modified("a", 12), deleted("b", 13), 6.0, error_event(410, "Gone")]],
    )
    store, controller = new_informer(server, KubeObject, 0.0, recorder)
    async with controller:
        await controller.wait_synced()
        assert store.list_keys() == ["default/a", "default/b"]
        await asyncio.sleep(60)
        assert store.list_keys() == ["default/c"]
    relisted = [("update", "c", "11", "11"), ("delete", "default/a", "DeletedFinalStateUnknown")]
    assert recorder.calls == [
        ("add", "a", True), ("add", "b", True), ("add", "c", False), ("update", "a", "1", "12"),
        ("delete", "b", "KubeObject"), *(relisted if queue == "delta" else reversed(relisted)),
    ]  # fmt: skip


@virtual_time
async def test_wait_for_cache_sync_accepts_the_controller() -> None:
    _, controller = new_informer(Scripted([5.0, page(version=10)]), KubeObject, 0.0, Recorder())
    async with controller:
        with pytest.raises(SyncTimeout, match=r"not synced after 2 s: scripted pods: .*listing"):
            await wait_for_cache_sync(controller, timeout=2.0)
        with pytest.raises(SyncTimeout, match=r"scripted pods: not synced after 1 s: .*listing"):
            await controller.wait_synced(timeout=1.0)
        await wait_for_cache_sync(controller)
        assert controller.has_synced()


@virtual_time
async def test_resync_repeats_all_objects() -> None:
    recorder = Recorder()
    _, controller = new_informer(Scripted([page(raw_pod("a", 1), version=10)]), KubeObject, 10.0, recorder)
    async with controller:
        await asyncio.sleep(25)
    assert recorder.calls == [("add", "a", True), ("update", "a", "1", "1"), ("update", "a", "1", "1")]


@virtual_time
async def test_handler_error_is_logged_with_key_and_version(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        await asyncio.sleep(0)
        seen.append(obj.name)
        raise asyncio.CancelledError if obj.name == "a" else ValueError("no")

    handler = ResourceEventHandlerFuncs[KubeObject](on_add=on_add)
    store, controller = new_informer(
        Scripted([page(raw_pod("a", 1), raw_pod("b", 2), version=10)]), KubeObject, 0.0, handler
    )
    async with controller:
        await controller.wait_synced()
    assert seen == ["a", "b"]
    assert len(store) == 2
    assert "failed on default/a at 1" in caplog.text
    assert controller.failed == 0


@virtual_time
async def test_store_changes_before_the_handler_call() -> None:
    """C32."""
    sizes: list[int] = []

    def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        sizes.append(len(store))

    handler = ResourceEventHandlerFuncs[KubeObject](
        on_add=on_add, on_delete=lambda obj: sizes.append(len(store))
    )
    server = Scripted([page(raw_pod("a", 1), version=10)], [[deleted("a", 11), FOREVER]])
    store, controller = new_informer(server, KubeObject, 0.0, handler)
    async with controller:
        await asyncio.sleep(5)
    assert sizes == [1, 0]


@pytest.mark.parametrize(
    ("handler", "said"),
    [(Recorder, "is a class"), (object(), "is not an event handler"), (print, "is not an event handler")],
)
def test_invalid_handler_is_refused(handler: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        new_informer(Scripted(), KubeObject, 0.0, handler)


@virtual_time
async def test_options_reach_the_reflector() -> None:
    errors: list[str] = []

    def handler(reflector: Any, error: Exception) -> None:
        errors.append(str(error))

    server = Scripted([OSError("no")])
    _, controller = new_informer(
        server, KubeObject, 0.0, Recorder(), name="mine", page_size=7, watch_error_handler=handler
    )
    async with controller:
        await asyncio.sleep(1)
    assert errors == ["no"]
    assert server.lists[0].limit == 7
    assert controller.state.name == "mine"


@virtual_time
async def test_objects_without_name_are_skipped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    nameless = WatchEvent("ADDED", b'{"metadata": {"resourceVersion": "11"}}')
    server = Scripted([page(version=10)], [[nameless, added("b", 12), FOREVER]])
    _, controller = new_informer(server, KubeObject, 0.0, recorder)
    async with controller:
        await asyncio.sleep(5)
    assert recorder.calls == [("add", "b", False)]
    assert controller.state.rejected == 1


@virtual_time
async def test_failing_object_of_a_list_does_not_stop_others(caplog: pytest.LogCaptureFixture) -> None:
    server = Scripted(
        [page(raw_pod("a", 1), b'{"metadata": {"resourceVersion": "3"}}', raw_pod("b", 2), version=10)]
    )
    recorder = Recorder()
    store, controller = new_informer(server, KubeObject, 0.0, recorder)
    async with controller:
        await controller.wait_synced()
    assert store.list_keys() == ["default/a", "default/b"]
    assert [call[1] for call in recorder.calls] == ["a", "b"]
    assert controller.state.rejected == 1


@virtual_time
async def test_handler_sees_the_whole_list_in_the_store(queue: QueueName) -> None:
    """C32: with a RealFIFO the list is replaced as a whole."""
    sizes: list[int] = []
    handler = ResourceEventHandlerFuncs[KubeObject](on_add=lambda obj, initial: sizes.append(len(store)))
    store, controller = new_informer(
        Scripted([page(raw_pod("a", 1), raw_pod("b", 2), version=10)]), KubeObject, 0.0, handler
    )
    async with controller:
        await controller.wait_synced()
    assert sizes == ([1, 2] if queue == "delta" else [2, 2])


@virtual_time
async def test_wait_for_an_ended_controller_raises() -> None:
    """It failed, was exited before it ran, or had ended before; it runs only once."""
    server = Scripted([5.0, ClientClosedError("closed")])
    _, controller = new_informer(server, KubeObject, 0.0, Recorder(), use_watch_list=False)
    with pytest.raises(ClientClosedError):
        async with controller:
            with pytest.raises(StoppedError, match="stopped before it had synced"):
                await controller.wait_synced()
    with pytest.raises(StoppedError):
        await wait_for_cache_sync(controller)
    with pytest.raises(AlreadyStartedError):
        await controller.run()
    _, unstarted = new_informer(Scripted(), KubeObject, 0.0, Recorder())
    waiting = asyncio.create_task(unstarted.wait_synced())
    async with unstarted:
        pass
    with pytest.raises(StoppedError):
        await waiting


@virtual_time
async def test_handler_that_suppresses_cancellation_gets_no_more_calls() -> None:
    """``asyncio.wait_for`` of Python 3.11 can suppress it."""
    seen: list[str] = []

    async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        seen.append(obj.name)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    handler = ResourceEventHandlerFuncs[KubeObject](on_add=on_add)
    server = Scripted([page(raw_pod("a", 1), raw_pod("b", 2), version=10)])
    _, controller = new_informer(server, KubeObject, 0.0, handler)
    async with controller:
        await asyncio.sleep(5)
    assert seen == ["a"]
