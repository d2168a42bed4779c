"""factory.py and loop_thread.py: informers in a thread of their own, from start to end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aioinformer import Client, ConfigError, KubeObject, NotFoundError, Resource, SyncTimeout, blocking
from aioinformer.errors import (
    AlreadyStartedError,
    CacheMutatedError,
    InformerError,
    StoppedError,
    WrongEventLoopError,
)

from .conftest import Server, wait_until


@pytest.mark.parametrize("use_uvloop", [False, True])
def test_informers_sync_follow_and_stop_within_a_second_on_a_quiet_watch(
    server: Server, use_uvloop: bool
) -> None:
    server.create("a", "b")
    with blocking.Factory(server.client(), use_uvloop=use_uvloop) as factory:
        maps = factory.for_resource("v1", "configmaps")
        assert maps.wait_synced(30)
        assert maps.has_synced()
        assert factory.ready()
        assert {config_map.name for config_map in maps.lister.list()} == {"a", "b"}
        assert maps.lister.namespace("default").get("a").key == "default/a"
        assert [obj.name for obj in maps.lister.list("app=b")] == ["b"]
        server.create("c")
        wait_until(lambda: len(maps.lister.list()) == 3)
        with pytest.raises(NotFoundError):
            maps.lister.get("default/d")
        assert factory.call(lambda: type(asyncio.get_running_loop()).__module__.partition(".")[0]) == (
            "uvloop" if use_uvloop else "asyncio"
        )
        started = time.monotonic()
    assert time.monotonic() - started < 1
    assert not factory.ready()
    assert maps.is_stopped
    wait_until(lambda: server.portal.call(lambda: server.api.open_watches) == 0)
    assert len(maps.lister.list()) == 3, "the last state stays readable"


def test_informers_requested_before_the_start_are_configured_then(server: Server) -> None:
    server.create("a", data={"color": "red"})
    factory = blocking.Factory(server.client())
    maps = factory.for_resource("v1", "configmaps")
    assert factory.for_resource("v1", "configmaps") is maps
    maps.set_transform(lambda obj: KubeObject.from_dict({**obj.to_dict(), "data": {"color": "green"}}))
    maps.add_indexers({"color": "data.color"})
    seen: list[str] = []
    registration = maps.add_event_handler(on_add=lambda obj, is_in_initial_list: seen.append(obj.name))
    assert not factory.ready()
    assert threading.active_count() == len(threading.enumerate())
    with factory:
        assert factory.wait_for_cache_sync(30)
        assert registration.wait_synced(30)
        assert [obj.name for obj in maps.indexer.by_index("color", "green")] == ["a"]
        assert seen == ["a"]
        maps.add_indexers({"app": "metadata.labels.app"})
        assert maps.indexer.list_index_func_values("app") == ["a"]
        assert factory.informers == [maps]
        assert 'aioinformer_synced{informer="configmaps"} 1' in factory.metrics()
        assert factory.healthy()
        factory.remove(maps)
        assert factory.informers == []
        assert maps.is_stopped


def test_what_was_written_is_waited_for(server: Server) -> None:
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        resource = Resource(factory.client, "configmaps")
        written = factory.call(resource.create, {"metadata": {"name": "new", "namespace": "default"}})
        cached = maps.wait_for(written, 30)
        assert cached is not None
        assert cached.key == "default/new"
        assert maps.last_sync_resource_version >= written.resource_version
        with pytest.raises(NotFoundError):
            factory.call(resource.get, "default/other")


def test_a_wait_that_ends_too_late_says_why(server: Server) -> None:
    with blocking.Factory(Client.from_url("http://127.0.0.1:9")) as factory:
        pods = factory.for_resource("v1", "pods")
        with pytest.raises(SyncTimeout, match="pods: not synced after"):
            pods.wait_synced(0.2)
        with pytest.raises(SyncTimeout, match="pods"):
            factory.wait_for_cache_sync(0.2)
        assert not factory.ready()


def test_an_unusable_configuration_is_refused_on_entering(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="kubeconfig"),
        blocking.Factory(Client.from_kubeconfig(path=tmp_path / "kubeconfig")),
    ):
        pass


def test_each_misuse_says_what_to_do(server: Server) -> None:
    factory = blocking.Factory(server.client())
    maps = factory.for_resource("v1", "configmaps")
    too_early: list[Callable[[], object]] = [
        maps.wait_synced,
        factory.wait_for_cache_sync,
        lambda: factory.call(int),
        lambda: next(maps.events()),
    ]
    for use in too_early:
        with pytest.raises(InformerError, match="was not started: enter it with `with`, or call start"):
            use()
    factory.shutdown()
    with factory:
        with pytest.raises(AlreadyStartedError, match="runs once: create another one"):
            factory.start()
        with pytest.raises(ConfigError, match="not an informer of"):
            factory.remove("pods")  # type: ignore[arg-type]
        events = maps.events()
    factory.shutdown()
    with pytest.raises(AlreadyStartedError, match="runs once"), factory:
        pass
    too_late: list[Callable[[], object]] = [
        maps.wait_synced,
        lambda: factory.call(int),
        lambda: factory.for_resource("v1", "pods"),
        lambda: maps.add_event_handler(on_add=lambda obj, is_in_initial_list: None),
        lambda: next(events),
    ]
    for use in too_late:
        with pytest.raises(StoppedError):
            use()


def test_a_blocking_call_on_the_own_event_loop_is_refused(server: Server) -> None:
    """It would wait for itself."""
    errors: list[Exception] = []

    def transform(obj: KubeObject) -> KubeObject:
        for use in (
            maps.wait_synced,
            lambda: factory.call(int),
            factory.shutdown,
            lambda: next(maps.events()),
        ):
            try:
                use()
            except Exception as error:
                errors.append(error)
        return obj

    server.create("a")
    factory = blocking.Factory(server.client())
    maps = factory.for_resource("v1", "configmaps")
    maps.set_transform(transform)
    with factory:
        maps.wait_synced(30)
    assert [type(error) for error in errors] == [WrongEventLoopError] * 4
    assert "a blocking call on its own event loop would wait for itself" in str(errors[0])


async def test_code_in_another_event_loop_may_block(server: Server) -> None:
    """As in a notebook, whose cells run in a running event loop."""
    server.create("a")
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        assert maps.wait_synced(30)
        assert len(maps.lister.list()) == 1


def test_threads_that_wait_are_released_at_the_end(server: Server) -> None:
    outcomes: list[str] = []

    def wait(function: Callable[[], object]) -> None:
        try:
            outcomes.append(str(function()))
        except Exception as error:
            outcomes.append(type(error).__name__)

    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.wait_synced(30)
        uses: list[Callable[[], object]] = [
            lambda: maps.wait_for("99999999"),
            lambda: factory.call(asyncio.sleep, 3600),
            lambda: list(maps.events()),
        ]
        threads = [threading.Thread(target=wait, args=(use,)) for use in uses]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(maps.state.handlers) == 1)
        time.sleep(0.1)
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    assert sorted(outcomes) == ["StoppedError", "StoppedError", "[]"]


def test_a_failure_of_an_informer_is_raised_on_leaving(server: Server) -> None:
    server.create("a", data={"x": "1"})
    with (
        pytest.raises(CacheMutatedError),
        blocking.Factory(server.client(), detect_mutations=True) as factory,
    ):
        maps = factory.for_resource("v1", "configmaps", dict)
        maps.wait_synced(30)
        maps.lister.list()[0]["data"]["x"] = "changed"
        wait_until(lambda: maps.is_stopped, 30)


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Send this process a SIGINT, as Ctrl-C does."""
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("what", ["wait_synced", "events", "call"])
def test_keyboard_interrupt_ends_a_wait_within_a_second_and_leaves_nothing(server: Server, what: str) -> None:
    ended: list[BaseException] = []
    interrupted = 0.0

    async def sleep() -> None:
        try:
            await asyncio.sleep(3600)
        except BaseException as error:
            ended.append(error)
            raise

    url = "http://127.0.0.1:9" if what == "wait_synced" else server.url
    with (
        interrupt_after(0.5),
        pytest.raises(KeyboardInterrupt),
        blocking.Factory(Client.from_url(url)) as factory,
    ):
        maps = factory.for_resource("v1", "configmaps")
        try:
            if what == "wait_synced":
                maps.wait_synced()
            elif what == "events":
                with maps.events() as events:
                    list(events)
            else:
                factory.call(sleep)
        finally:
            interrupted = time.monotonic()
            if what == "call":
                wait_until(lambda: ended, 1)
            elif what == "events":
                wait_until(lambda: not maps.state.handlers, 1)
    assert time.monotonic() - interrupted < 1


def test_a_factory_that_is_never_left_ends_with_the_interpreter(server: Server) -> None:
    code = f"""
import threading
from aioinformer import Client, blocking
factory = blocking.Factory(Client.from_url({server.url!r}), use_uvloop=True)
maps = factory.for_resource("v1", "configmaps")
maps.add_event_handler(on_add=lambda obj, initial: None).name
factory.start()
maps.wait_synced(30)
print("synced")
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("synced\n", "", 0)


def test_grace_leaves_a_handler_behind_that_does_not_end(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()
    server.create("a")
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.add_event_handler(on_add=lambda obj, is_in_initial_list: over.wait(60))
        wait_until(lambda: maps.state.handlers[0].handling)
        started = time.monotonic()
        with caplog.at_level(logging.ERROR):
            factory.shutdown(grace=0.3)
        assert time.monotonic() - started < 2
    assert "left behind" in caplog.text
    over.set()


def test_an_exit_that_a_call_raises_is_the_callers(server: Server) -> None:
    async def leave() -> None:
        raise KeyboardInterrupt

    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        with pytest.raises(SystemExit):
            factory.call(sys.exit, 3)
        with pytest.raises(KeyboardInterrupt):
            factory.call(leave)
        assert maps.wait_synced(30)


def test_an_event_loop_that_ends_by_itself_releases_its_callers(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """As when a transform exits: asyncio ends its event loop, and leaves its tasks."""
    factory = blocking.Factory(server.client())
    maps = factory.for_resource("v1", "configmaps")
    maps.set_transform(lambda obj: sys.exit(3) if obj.name == "last" else obj)
    with factory:
        maps.wait_synced(30)
        threading.Timer(0.3, server.create, ("last",)).start()
        with pytest.raises(StoppedError, match=r"its event loop ended \(the log says why\) during a call"):
            factory.call(asyncio.sleep, 60)
        with pytest.raises(StoppedError):
            maps.wait_synced()
    assert "its event loop ended: SystemExit: 3" in caplog.text


def test_a_client_belongs_to_one_running_factory(server: Server) -> None:
    client = server.client()
    with blocking.Factory(client) as first:
        with pytest.raises(WrongEventLoopError, match="make another client"), blocking.Factory(client):
            pass
        maps = first.for_resource("v1", "configmaps")
        assert maps.wait_synced(30), "the first one's client is still open"
    with blocking.Factory(client) as later:
        assert later.for_resource("v1", "configmaps").wait_synced(30)
