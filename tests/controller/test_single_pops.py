"""Custom queues: with client-go's verbs only, or with a pop of their own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from aioinformer import ConfigError, DeltaFIFO, KubeObject, Store, SyncTimeout
from aioinformer._core.cancellation import maybe_await
from aioinformer.cache import Config, Controller
from aioinformer.deltas import Delta, DeltaType
from aioinformer.protocols import Process

from ..reflector.scripted import FOREVER, Scripted, added, page, raw_pod
from ..steps import until
from ..virtual_time import virtual_time


def server() -> Scripted:
    return Scripted([page(raw_pod("a"), raw_pod("b"), version=10)], [[added("c", 11), FOREVER]])


async def test_overridden_pop_is_called() -> None:
    popped: list[list[Delta]] = []

    class Counting(DeltaFIFO):
        async def pop(self, process: Process) -> list[Delta]:
            popped.append(await super().pop(process))
            return popped[-1]

    processed: list[list[Delta]] = []
    config = Config(Counting(), server(), lambda deltas, _: processed.append(deltas), KubeObject)
    config.process_batch = config.process
    async with Controller(config):
        await until(lambda: len(processed) == 3)
    assert popped == processed


class MinimalQueue:
    """A queue with client-go's verbs only, whose pop does not yield while it has items."""

    def __init__(self) -> None:
        self.items: deque[list[Delta]] = deque()
        self.more = asyncio.Event()
        self.initial = -1
        self.closed = False

    def _put(self, kind: DeltaType, obj: Any) -> None:
        self.items.append([Delta(kind, obj)])
        self.more.set()

    def add(self, obj: Any) -> None:
        self._put(DeltaType.ADDED, obj)

    def update(self, obj: Any) -> None:
        self._put(DeltaType.UPDATED, obj)

    def delete(self, obj: Any) -> None:
        self._put(DeltaType.DELETED, obj)

    def replace(self, objects: Sequence[Any], resource_version: str) -> None:
        for obj in objects:
            self._put(DeltaType.REPLACED, obj)
        self.initial = len(self.items)

    def resync(self) -> None: ...

    async def pop(self, process: Process) -> list[Delta]:
        while not self.items:
            self.more.clear()
            await self.more.wait()
        deltas = self.items.popleft()
        await maybe_await(process(deltas, self.initial > 0))
        self.initial -= 1
        return deltas

    def has_synced(self) -> bool:
        return self.initial == 0 or not self.items

    def close(self) -> None:
        self.closed = True


async def test_queue_with_client_go_verbs_only() -> None:
    queue: Any = MinimalQueue()
    names: list[str] = []
    config = Config(queue, server(), lambda deltas, _: names.append(deltas[-1].object.name), KubeObject)
    subject = Controller(config)
    assert (subject.queue_depth, subject.processed, subject.unfinished) == (0, 0, 0)
    async with subject:
        await until(lambda: len(names) == 3)
    assert names == ["a", "b", "c"]
    assert queue.closed


@virtual_time
async def test_has_synced_of_minimal_queue_is_polled() -> None:
    queue: Any = MinimalQueue()

    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        await asyncio.sleep(1)

    async with Controller(
        Config(queue, Scripted([page(raw_pod("a"), version=1)]), process, KubeObject)
    ) as subject:
        await until(lambda: queue.initial == 1)
        queue.add(raw_pod("never"))
        with pytest.raises(SyncTimeout):
            await subject.wait_synced(0.5)
        await subject.wait_synced(2)


async def test_other_tasks_run_while_minimal_queue_is_processed() -> None:
    queue: Any = MinimalQueue()
    for _ in range(100_000):
        queue.add("x")
    async with Controller(Config(queue, Scripted(), lambda deltas, _: None, KubeObject)):
        await until(lambda: len(queue.items) < 100_000)
        assert queue.items


def test_invalid_queue_is_refused() -> None:
    nothing: Any = object()
    with pytest.raises(ConfigError, match="must be one such as"):
        Controller(Config(nothing, Scripted(), lambda deltas, _: None, KubeObject))
    store: Any = Store()
    with pytest.raises(ConfigError, match=r"queue must be one such as .* has no pop, has_synced, close"):
        Controller(Config(store, Scripted(), lambda deltas, _: None, KubeObject))
