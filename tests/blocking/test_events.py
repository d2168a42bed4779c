"""events.py: an informer's notifications as a plain iterator."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pytest

from aioinformer import ConfigError, blocking
from aioinformer.errors import StoppedError

from .conftest import Server, wait_until
from .test_handlers import Sized


def test_events_begin_with_the_cached_objects_and_end_after_the_timeout(server: Server) -> None:
    server.create("a", "b")
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.wait_synced(30)
        events = maps.events(timeout=1)
        assert not maps.state.handlers, "iterating registers them"
        assert [(event.type, event.object.key) for event in events] == [
            ("ADDED", "default/a"), ("ADDED", "default/b"),
        ]  # fmt: skip
        started = time.monotonic()
        assert list(events) == []
        assert 0.9 < time.monotonic() - started < 3
        server.set_data("a", x="1")
        server.delete("b")
        assert [(event.type, event.object.key) for event in events] == [
            ("MODIFIED", "default/a"), ("DELETED", "default/b"),
        ]  # fmt: skip
        events.close()
        events.close()
        assert list(events) == []
        with pytest.raises(StoppedError, match=r"call events\(\) again"), events:
            pass
        with pytest.raises(ConfigError):
            maps.events(timeout="soon")  # type: ignore[arg-type]


def test_leaving_or_dropping_events_removes_them(server: Server) -> None:
    server.create("a")
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        with maps.events() as events:
            assert next(events).object.key == "default/a"
            assert len(maps.state.handlers) == 1
        wait_until(lambda: not maps.state.handlers)
        for _ in maps.events():
            assert len(maps.state.handlers) == 1
            break
        gc.collect()
        wait_until(lambda: not maps.state.handlers)


def test_many_events_need_few_calls_of_the_event_loop(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"map-{number}" for number in range(1000)]
    server.create(*names)
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.wait_synced(30)
        events = maps.events(timeout=5)
        events.__enter__()
        calls = 0
        call = events._loop.call

        def counted(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            return call(*args)

        monkeypatch.setattr(events._loop, "call", counted)
        assert sorted(next(events).object.name for _ in names) == sorted(names)
        assert calls < 30


def test_several_threads_share_the_events(server: Server) -> None:
    names = {f"map-{number}" for number in range(200)}
    server.create(*names)
    seen: list[str] = []
    with blocking.Factory(server.client()) as factory:
        events = factory.for_resource("v1", "configmaps").events(timeout=1)
        threads = [
            threading.Thread(target=lambda: seen.extend(event.object.name for event in events))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(factory.informers[0].state.handlers) == 1
    assert len(seen) == 200
    assert set(seen) == names


def test_a_waiting_loop_ends_when_another_thread_closes_the_events(server: Server) -> None:
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        events = maps.events()
        threading.Timer(0.3, events.close).start()
        assert list(events) == []
        wait_until(lambda: not maps.state.handlers)


def test_undecodable_states_are_events(server: Server) -> None:
    server.create("a", data={"size": "large"})
    with blocking.Factory(server.client()) as factory:
        event = next(factory.for_resource("v1", "configmaps", Sized).events())
    unfit: Any = event.object
    assert (event.type, unfit.key) == ("UNDECODABLE", "default/a")
