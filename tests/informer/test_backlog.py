"""How a slow handler affects the store and other handlers, for each backlog policy."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ConfigError
from aioinformer._core import coop
from aioinformer.cache import Backlog
from aioinformer.controller import QueueName

from ..reflector.scripted import FOREVER, added, modified
from ..virtual_time import virtual_time
from .handlers import Follower
from .subject import informer_of


@pytest.mark.parametrize("backlog", ["unbounded", "coalesce", "drop_oldest"])
@virtual_time
async def test_slow_handler_does_not_delay_store_and_others_c55(backlog: Backlog) -> None:
    subject = informer_of(watch=[*(modified("a", version) for version in range(11, 111)), FOREVER])
    registration = subject.add_event_handler(Follower(seconds=1000.0), backlog=backlog, backlog_limit=10)
    other = Follower()
    subject.add_event_handler(other)
    async with subject:
        await asyncio.sleep(10)
        assert subject.store.list()[0].resource_version == "110"
        assert other.copy == {"default/a": "110"}
        state = registration.state
        depth = {"unbounded": 100, "coalesce": 2, "drop_oldest": 11}[backlog]
        assert (state.depth, state.backlog) == (depth, backlog)
        assert state.coalesced + state.dropped == 100 - depth
        numbers = {(sample.name, sample.kind): sample.value for sample in state.samples()}
        assert numbers == {
            ("aioinformer_handler_depth", "gauge"): state.depth,
            ("aioinformer_handler_high_water", "gauge"): state.high_water,
            ("aioinformer_handler_delivered_total", "counter"): state.delivered,
            ("aioinformer_handler_failed_total", "counter"): state.failed,
            ("aioinformer_handler_coalesced_total", "counter"): state.coalesced,
            ("aioinformer_handler_dropped_total", "counter"): state.dropped,
        }


@virtual_time
async def test_blocking_handler_delays_the_store_and_then_the_watch(queue: QueueName) -> None:
    """W17, the other side: the backlog is bounded. A RealFIFO takes more, as it is unlocked while it processes."""
    names = [str(number) for number in range(20)]
    events = [added(name, 11 + number) for number, name in enumerate(names)]
    changes = [modified(name, 100 + number) for number, name in enumerate(names * 3)]
    subject = informer_of(watch=[*(step for event in events for step in (event, 0.1)), 5.0, changes, FOREVER])
    slow, quick = Follower(seconds=10.0), Follower()
    registration = subject.add_event_handler(slow, backlog="block", backlog_limit=5)
    subject.add_event_handler(quick)
    async with subject:
        await asyncio.sleep(9)
        assert len(subject.store) == len(quick.copy) == 5
        state = subject.state
        assert (registration.state.depth, state.queue_depth) == (5, 0 if queue == "delta" else 74)
        assert subject.last_sync_resource_version == ("16" if queue == "delta" else "159")
        await asyncio.sleep(10_000)
        assert subject.state.queue_depth == 0
        newest = {f"default/{name}": str(140 + number) for number, name in enumerate(names)}
        assert slow.copy == quick.copy == newest
        assert not slow.wrong + quick.wrong
        assert registration.state.high_water < 5 + 20 * 4


@virtual_time
async def test_blocking_on_the_last_initial_object_does_not_delay_has_synced_c41(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole list is in the store, and the next event waits in the queue."""
    monkeypatch.setattr(coop, "SLICE", 60.0)  # between slices, the list would wait for room
    subject = informer_of("a", "b", "c", watch=[1.0, added("d", 11), FOREVER])
    stuck = subject.add_event_handler(Follower(seconds=1000.0), backlog="block", backlog_limit=1)
    async with subject:
        await subject.wait_synced(1.0)
        await asyncio.sleep(10)
        assert [obj.name for obj in subject.store.list()] == ["a", "b", "c"]
        assert subject.last_sync_resource_version == "11"
        assert not stuck.has_synced()
        await asyncio.sleep(10_000)
        assert len(subject.store) == 4


@virtual_time
async def test_blocking_handler_bounds_the_backlog_of_one_object(queue: QueueName) -> None:
    changes = [
        [modified("a", version) for version in range(start, start + 100)] for start in range(11, 10_011, 100)
    ]
    subject = informer_of("a", watch=[*changes, FOREVER])
    registration = subject.add_event_handler(Follower(seconds=1.0), backlog="block", backlog_limit=5)
    async with subject:
        await asyncio.sleep(100)
        assert int(subject.last_sync_resource_version) < (500 if queue == "delta" else 2_500)
        await asyncio.sleep(20_000)
        assert subject.store.list()[0].resource_version == "10010"
        assert registration.state.high_water < 5 + 2 * 100


@virtual_time
async def test_remove_of_blocking_handler_unblocks_the_store() -> None:
    subject = informer_of(watch=[added("a", 11), 0.1, added("b", 12), 0.1, added("c", 13), FOREVER])
    registration = subject.add_event_handler(Follower(seconds=1e6), backlog="block", backlog_limit=1)
    async with subject:
        await asyncio.sleep(10)
        assert len(subject.store) == 1
        subject.remove_event_handler(registration)
        await asyncio.sleep(1)
        assert len(subject.store) == 3


@virtual_time
async def test_informer_stops_while_a_handler_blocks() -> None:
    subject = informer_of(*"abc", watch=[added("d", 11), FOREVER])
    subject.add_event_handler(Follower(seconds=1e6), backlog="block", backlog_limit=1)
    async with subject:
        await asyncio.sleep(10)
    assert subject.is_stopped


def test_unknown_backlog_is_refused() -> None:
    with pytest.raises(ConfigError, match="no backlog named 'ring'"):
        informer_of().add_event_handler(Follower(), backlog="ring")  # type: ignore[arg-type]
