"""handlers.py and registration.py: handlers are called in threads."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from aioinformer import ConfigError, DeletedFinalStateUnknown, KubeObject, ResourceEventHandler, blocking
from aioinformer.errors import InformerError

from .conftest import Server, wait_until


class Recorder(ResourceEventHandler[Any]):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.threads: set[str] = set()

    def note(self, what: str, key: str) -> None:
        self.threads.add(threading.current_thread().name)
        self.calls.append((what, key))

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        self.note("initial" if is_in_initial_list else "add", obj.key)

    def on_update(self, old: Any, new: Any) -> None:
        self.note("update", new.key)

    def on_delete(self, obj: Any) -> None:
        self.note("delete", obj.key)


def test_a_handler_is_called_in_a_thread_of_its_own_in_order(server: Server) -> None:
    server.create("a")
    recorder = Recorder()
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        registration = maps.add_event_handler(recorder, name="recorder")
        assert registration.wait_synced(30)
        assert registration.has_synced()
        assert registration.name == "configmaps + event handler recorder"
        assert registration.state.delivered == 1
        server.create("b")
        server.set_data("b", x="1")
        server.delete("b")
        wait_until(lambda: len(recorder.calls) == 4)
    assert recorder.calls == [
        ("initial", "default/a"), ("add", "default/b"), ("update", "default/b"), ("delete", "default/b"),
    ]  # fmt: skip
    assert recorder.threads == {"aioinformer configmaps_0"}


def test_a_handler_that_blocks_delays_neither_the_cache_nor_others(server: Server) -> None:
    over = threading.Event()
    recorder = Recorder()
    server.create("a")
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        slow = maps.add_event_handler(on_add=lambda obj, is_in_initial_list: over.wait(60))
        maps.add_event_handler(recorder)
        wait_until(lambda: slow.state.handling)
        server.create("b")
        wait_until(lambda: len(recorder.calls) == 2)
        assert len(maps.lister.list()) == 2
        assert slow.state.delivered == 0
        over.set()
        wait_until(lambda: slow.state.delivered == 2)


def test_handlers_share_a_pool_of_the_callers(server: Server) -> None:
    first, second = Recorder(), Recorder()
    server.create("a", "b")
    with ThreadPoolExecutor(1, "mine") as pool:
        with blocking.Factory(server.client()) as factory:
            maps = factory.for_resource("v1", "configmaps")
            for recorder in (first, second):
                assert maps.add_event_handler(recorder, executor=pool).wait_synced(30)
        assert pool.submit(int).result() == 0, "the pool stays open"
    assert first.threads == second.threads == {"mine_0"}


def test_shutting_down_waits_for_a_running_call_and_drops_one_that_no_thread_has_begun(
    server: Server,
) -> None:
    over, began, called = threading.Event(), threading.Event(), []

    def block(obj: KubeObject, is_in_initial_list: bool) -> None:
        began.set()
        over.wait(60)
        called.append("running")

    server.create("a")
    with ThreadPoolExecutor(1) as pool:
        with blocking.Factory(server.client()) as factory:
            maps = factory.for_resource("v1", "configmaps")
            maps.add_event_handler(on_add=block, executor=pool)
            assert began.wait(10)
            queued = maps.add_event_handler(
                on_add=lambda obj, is_in_initial_list: called.append("queued"), executor=pool
            )
            wait_until(lambda: queued.state.handling)
            threading.Timer(0.5, over.set).start()
            started = time.monotonic()
        assert time.monotonic() - started > 0.4
    assert called == ["running"]


def test_errors_of_a_handler_are_logged_and_counted(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[BaseException] = [
        ValueError("no such bucket"), StopIteration(), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(),
    ]  # fmt: skip

    def fail(obj: KubeObject, is_in_initial_list: bool) -> None:
        raise errors[int(obj.name)]

    server.create(*map(str, range(len(errors))))
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        with caplog.at_level(logging.ERROR):
            registration = maps.add_event_handler(on_add=fail)
            wait_until(lambda: registration.state.failed == len(errors))
            wait_until(lambda: "SystemExit: 3 in its thread" in caplog.text)
        assert "no such bucket" in caplog.text
        assert "raise errors[int(obj.name)]" in caplog.text, "the traceback leads to the handler"
        assert "SystemExit: 3 in its thread, which ends neither the thread nor the process" in caplog.text
        assert factory.ready()


def test_async_handlers_are_refused(server: Server) -> None:
    async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
        pass

    class Handler(Recorder):
        async def on_undecodable(self, obj: Any) -> None:
            pass

    maps = blocking.Factory(server.client()).for_resource("v1", "configmaps")
    refused: list[Callable[[], object]] = [
        lambda: maps.add_event_handler(on_add=on_add),
        lambda: maps.add_event_handler(Handler()),
    ]
    for use in refused:
        with pytest.raises(ConfigError, match="which is called in a thread, must be a plain function"):
            use()
    wrong: list[Callable[[], object]] = [
        maps.add_event_handler,
        lambda: maps.add_event_handler(Recorder(), on_add=lambda obj, is_in_initial_list: None),
        lambda: maps.add_event_handler(Recorder),  # type: ignore[arg-type]
        lambda: maps.remove_event_handler("handler"),  # type: ignore[arg-type]
    ]
    for use in wrong:
        with pytest.raises(ConfigError):
            use()


def test_an_awaitable_result_is_an_error(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def later() -> None:
        pass

    server.create("a")
    with blocking.Factory(server.client()) as factory:
        registration = factory.for_resource("v1", "configmaps").add_event_handler(
            on_add=lambda obj, is_in_initial_list: later()
        )
        wait_until(lambda: "must return its result, not an awaitable" in caplog.text)
        assert registration.state.failed


class Data(msgspec.Struct):
    size: int


class Sized(msgspec.Struct):
    metadata: dict[str, Any]
    data: Data


def test_undecodable_objects_reach_handlers_that_ask_for_them(server: Server) -> None:
    seen: list[str] = []
    server.create("a", data={"size": "large"})
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps", Sized)
        without = maps.add_event_handler(on_add=lambda obj, is_in_initial_list: seen.append("add"))
        maps.add_event_handler(on_undecodable=lambda obj: seen.append(f"undecodable {obj.key}"))
        wait_until(lambda: seen)
        assert without.wait_synced(30)
        assert [undecodable_object.key for undecodable_object in maps.lister.undecodable()] == ["default/a"]
    assert seen == ["undecodable default/a"]


def test_a_handler_may_call_its_factory_and_not_end_what_waits_for_it(server: Server) -> None:
    outcomes: list[object] = []

    def use(obj: KubeObject, is_in_initial_list: bool) -> None:
        uses: list[Callable[[], object]] = [
            lambda: maps.wait_synced(10),
            lambda: len(maps.lister.list()),
            lambda: factory.call(asyncio.sleep, 0, "slept"),
            factory.shutdown,
            lambda: factory.remove(maps),
            lambda: maps.shut_down_event_handler(registration),
        ]
        for attempt in uses:
            try:
                outcomes.append(attempt())
            except InformerError as error:
                outcomes.append(str(error).partition("it would wait for itself")[1])

    server.create("a")
    factory = blocking.Factory(server.client())
    maps = factory.for_resource("v1", "configmaps")
    registration = maps.add_event_handler(on_add=use)
    with factory:
        wait_until(lambda: registration.state.delivered)
        assert factory.ready()
    refused = "it would wait for itself"
    assert outcomes == [True, 1, "slept", refused, refused, refused]


def test_a_removed_handler_is_not_called_again(server: Server) -> None:
    recorder = Recorder()
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        removed = [maps.add_event_handler(recorder), maps.add_event_handler(recorder)]
        maps.wait_synced(30)
        maps.remove_event_handler(removed[0])
        maps.shut_down_event_handler(removed[1])
        assert not maps.state.handlers
        server.create("a")
        wait_until(maps.lister.list)
    assert recorder.calls == []


def test_a_missed_deletion_is_a_tombstone_in_the_thread_too(server: Server) -> None:
    deleted: list[object] = []
    server.create("a")
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.add_event_handler(on_delete=deleted.append)
        maps.wait_synced(30)
        server.portal.call(server.api.stop)
        server.delete("a")
        server.portal.call(server.api.start)
        wait_until(lambda: deleted, 30)
    assert isinstance(deleted[0], (DeletedFinalStateUnknown, KubeObject))
