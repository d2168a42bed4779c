"""wait_for_cache_sync: wait for several caches at once."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import (
    ApiError,
    Client,
    ConfigError,
    DeltaFIFO,
    KubeObject,
    SharedIndexInformer,
    SharedInformerFactory,
    StoppedError,
    SyncTimeout,
    wait_for_cache_sync,
)
from aioinformer.cache import Config, Controller

from ..reflector.scripted import Scripted, page, raw_pod
from ..virtual_time import settle, virtual_time
from .handlers import Follower


def informer(name: str, after: float = 0.0) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(Scripted([after, page(raw_pod("a"), version=1)]), KubeObject, name=name)


@virtual_time
async def test_without_arguments_it_returns_at_once() -> None:
    await wait_for_cache_sync()


class MinimalWaitable:
    """An object with ``has_synced`` and ``wait_synced`` only."""

    name: str

    def __init__(self, after: float) -> None:
        self.after = after

    def has_synced(self) -> bool:
        return self.after == 0

    async def wait_synced(self) -> None:
        await asyncio.sleep(self.after)
        self.after = 0

    def __repr__(self) -> str:
        return "mine"


@virtual_time
async def test_waitable_without_name_is_named_by_its_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(SyncTimeout, match=r"^not synced after 15 s: mine$"):
        await wait_for_cache_sync(MinimalWaitable(20), timeout=15)
    assert "waiting for caches to sync for 10 s: mine" in caplog.text
    assert await wait_for_cache_sync(MinimalWaitable(20))
    with pytest.raises(
        ConfigError, match=r"^fail_fast=True needs a wait_synced\(\*, fail_fast\), not that of mine"
    ):
        await wait_for_cache_sync(informer("other"), MinimalWaitable(20), fail_fast=True)


@virtual_time
async def test_timeout_of_a_single_waitable_has_its_name() -> None:
    pods, nodes = informer("pods"), informer("nodes")
    registration = pods.add_event_handler(Follower())
    for waited_for, name in (
        ((pods,), "pods"),
        ((registration,), registration.name),
        ((MinimalWaitable(20),), None),
        ((pods, nodes), None),
    ):
        with pytest.raises(SyncTimeout) as caught:
            await wait_for_cache_sync(*waited_for, timeout=1)
        assert caught.value.informer == name


@virtual_time
async def test_timeout_names_a_waitable_by_its_name() -> None:
    own = MinimalWaitable(20)
    own.name = "the firewall"
    with pytest.raises(SyncTimeout, match=r"^not synced after 15 s: the firewall$"):
        await wait_for_cache_sync(own, timeout=15)


@virtual_time
async def test_waits_return_true() -> None:
    """Like asyncio.Event.wait."""
    subject = informer("subject")
    registration = subject.add_event_handler(Follower())
    controller = Controller(Config(DeltaFIFO(), Scripted([page(version=1)]), lambda *_: None, KubeObject))
    async with subject, controller:
        for waits in (subject.wait_synced, registration.wait_synced, controller.wait_synced):
            assert await waits() is True
            assert await waits() is True
        assert await wait_for_cache_sync(subject, registration, controller) is True


@virtual_time
async def test_returns_after_the_last_has_synced() -> None:
    loop = asyncio.get_running_loop()
    first, second = informer("first", 20.0), informer("second", 10.0)
    registration = second.add_event_handler(Follower(seconds=5.0))
    async with first, second:
        started = loop.time()
        await wait_for_cache_sync(first, second, registration)
        assert loop.time() - started == pytest.approx(20)
        assert first.has_synced()
        assert registration.has_synced()
        await wait_for_cache_sync(first, second, timeout=0)


@virtual_time
async def test_timeout_names_the_unsynced_and_their_states() -> None:
    first, second, third = informer("first"), informer("second", 20.0), informer("third", 30.0)
    registration = first.add_event_handler(Follower(seconds=50.0))
    async with first, second, third:
        with pytest.raises(SyncTimeout) as caught:
            await wait_for_cache_sync(third, first, second, registration, timeout=10)
    message = str(caught.value)
    assert message.startswith("not synced after 10 s: ")
    assert "; second: not synced, 0 objects, 0 queued; second: listing for 10.0 s" in message
    assert "not synced after 10 s: third: not synced" in message
    assert "; first: not synced" not in message
    assert "; first + event handler a follower: a follower: 1 waiting" in message
    assert "at default/a" in message


@virtual_time
async def test_timeout_of_a_handler_includes_its_informers_state(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Scripted([ApiError(403, "Forbidden", "not you")] * 9)
    refused = SharedIndexInformer(server, KubeObject, name="pods")
    registration = refused.add_event_handler(Follower())
    async with refused:
        with pytest.raises(SyncTimeout, match=r"pods \+ event handler .*; the informer: .*: not you"):
            await wait_for_cache_sync(registration, timeout=15)
    (progress,) = (line for line in caplog.messages if line.startswith("waiting for caches"))
    assert progress.endswith("403 Forbidden: not you")


@virtual_time
async def test_stopped_informer_ends_the_wait() -> None:
    first, second = informer("first", 100.0), informer("second")
    async with second:
        async with first:
            waiting = asyncio.create_task(wait_for_cache_sync(first, second))
            await settle()
        with pytest.raises(StoppedError, match="first stopped before it had synced"):
            await waiting


@virtual_time
async def test_stopped_informer_ends_the_wait_for_others_at_once() -> None:
    """The waits run concurrently."""
    loop = asyncio.get_running_loop()
    for order in (1, -1):
        lasting, stopping = informer("lasting", 1000.0), informer("stopping", 1000.0)
        registration = stopping.add_event_handler(Follower())
        async with lasting:
            async with stopping:
                started = loop.time()
                waiting = asyncio.create_task(
                    wait_for_cache_sync(*(lasting, stopping, registration)[::order])
                )
                await settle()
            with pytest.raises(StoppedError, match="stopping"):
                await waiting
            assert loop.time() == started


@virtual_time
async def test_progress_is_logged_every_ten_seconds_with_the_unsynced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    first, second, late = informer("first", 15.0), informer("second", 25.0), informer("late")
    registration = first.add_event_handler(Follower(seconds=20.0))
    waiting = asyncio.create_task(wait_for_cache_sync(first, second, late, registration))
    async with first, second:
        await asyncio.sleep(36)
        async with late:
            await waiting
    lines = [line for line in caplog.messages if line.startswith("waiting for caches to sync")]
    assert [line.split(":")[0] for line in lines] == [
        f"waiting for caches to sync for {seconds} s" for seconds in (10, 20, 30)
    ]
    named = [
        [
            name
            for name in ("first: not synced", "second: ", "late: ", "first + event handler a follower: ")
            if name in line
        ]
        for line in lines
    ]
    assert named == [
        ["first: not synced", "second: ", "late: ", "first + event handler a follower: "],
        ["second: ", "late: ", "first + event handler a follower: "],
        ["late: ", "first + event handler a follower: "],
    ]
    assert "late: not synced, 0 objects, 0 queued; not started" in lines[2]


@virtual_time
async def test_short_wait_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with informer("quick", 5.0) as subject:
        await wait_for_cache_sync(subject)
    assert not caplog.messages


@virtual_time
async def test_names_of_informer_and_registration() -> None:
    subject = informer("pods")
    registration = subject.add_event_handler(Follower())
    assert (subject.name, registration.name) == ("pods", "pods + event handler a follower")


@virtual_time
async def test_wait_for_an_informer_that_starts_later() -> None:
    subject = informer("late")
    waiting = asyncio.create_task(wait_for_cache_sync(subject))
    await asyncio.sleep(10)
    async with subject:
        await waiting


@virtual_time
async def test_outer_timeout_is_no_sync_timeout() -> None:
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(1):
            await wait_for_cache_sync(informer("never"), timeout=5)
    assert not isinstance(caught.value, SyncTimeout)


@virtual_time
async def test_invalid_argument_is_refused() -> None:
    nothing: Any
    for nothing in (lambda: True, SharedIndexInformer, None, "pods"):
        with pytest.raises(ConfigError, match="what is waited for must be one such as SharedIndexInformer"):
            await wait_for_cache_sync(informer("first"), nothing)


@pytest.mark.parametrize("timeout", [True, float("nan"), float("inf"), "5"])
@virtual_time
async def test_invalid_timeouts_are_refused(timeout: Any) -> None:
    """NaN would wait for ever."""
    factory = SharedInformerFactory(Client.from_url("http://127.0.0.1:1"))
    async with informer("pods") as subject:
        registration = subject.add_event_handler(Follower())
        controller = Controller(Config(DeltaFIFO(), Scripted(), lambda deltas, is_initial: None, KubeObject))
        for wait in (
            subject.wait_synced(timeout),
            registration.wait_synced(timeout),
            controller.wait_synced(timeout),
            factory.wait_for_cache_sync(timeout),
            wait_for_cache_sync(subject, timeout=timeout),
            subject.wait_for("1", timeout),
        ):
            with pytest.raises(
                ConfigError, match="timeout must be a number of seconds, or None for no end, not"
            ):
                await wait


@virtual_time
async def test_timeout_of_zero_or_below_checks_once() -> None:
    """The remaining time of a passed deadline is negative."""
    async with informer("pods", 5.0) as subject:
        for wait in subject.wait_synced, subject.add_event_handler(Follower()).wait_synced:
            for timeout in 0, -0.1:
                with pytest.raises(SyncTimeout):
                    await wait(timeout)
        await subject.wait_synced()
        assert await subject.wait_synced(-0.1)
        await subject.wait_synced(0)
