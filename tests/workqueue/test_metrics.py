"""workqueue/metrics.py: client-go's metrics, with its names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import WorkQueue
from aioinformer.errors import QueueShutDownError
from aioinformer.workqueue import QueueMetrics

from ..virtual_time import virtual_time


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_metrics_of_a_queue() -> None:
    """TestMetrics."""
    clock = Clock()
    metrics = QueueMetrics[str](clock)
    queue: WorkQueue[str] = WorkQueue(metrics=metrics)
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert (metrics.adds, metrics.depth) == (2, 2)
    clock.now = 0.05
    await queue.get()
    assert metrics.depth == 1
    assert metrics.queue_duration.sum == pytest.approx(0.05)
    clock.now = 1.05
    assert metrics.unfinished_work_seconds == pytest.approx(1.0)
    await queue.get()
    clock.now = 2.05
    assert metrics.unfinished_work_seconds == pytest.approx(3.0)
    assert metrics.longest_running_processor_seconds == pytest.approx(2.0)
    queue.add("a")  # counted once; waits from here on
    queue.add("a", 5)
    assert (metrics.adds, metrics.depth, len(queue)) == (3, 1, 0)
    clock.now = 3.05
    queue.done("a")
    assert metrics.work_duration.sum == pytest.approx(3.0)
    assert metrics.depth == 1
    clock.now = 4.05
    await queue.get()
    assert metrics.depth == 0
    assert metrics.queue_duration.sum == pytest.approx(0.05 + 1.05 + 2.0)
    queue.done("a")
    queue.done("b")
    assert (metrics.unfinished_work_seconds, metrics.longest_running_processor_seconds) == (0.0, 0.0)
    queue.add_after("c", 60)
    queue.add_rate_limited("d")
    assert metrics.retries == 2
    assert metrics.adds == 3
    queue.shut_down()


async def test_names_are_upstreams() -> None:
    clock = Clock()
    metrics = QueueMetrics[str](clock)
    queue: WorkQueue[str] = WorkQueue(metrics=metrics)
    queue.add("a")
    clock.now = 0.5
    async with queue.processing():
        pass
    samples = {
        (sample.name + sample.suffix, sample.labels.get("le")): sample.value
        for sample in metrics.samples("tests")
    }
    assert samples[("workqueue_depth", None)] == 0
    assert samples[("workqueue_adds_total", None)] == 1
    assert samples[("workqueue_retries_total", None)] == 0
    assert samples[("workqueue_unfinished_work_seconds", None)] == 0
    assert samples[("workqueue_longest_running_processor_seconds", None)] == 0
    assert samples[("workqueue_queue_duration_seconds_count", None)] == 1
    assert samples[("workqueue_queue_duration_seconds_sum", None)] == 0.5
    assert samples[("workqueue_queue_duration_seconds_bucket", "0.1")] == 0
    assert samples[("workqueue_queue_duration_seconds_bucket", "1")] == 1
    assert samples[("workqueue_queue_duration_seconds_bucket", "+Inf")] == 1
    assert samples[("workqueue_work_duration_seconds_count", None)] == 1
    bounds = [
        float(bound) for name, bound in samples if name.endswith("work_duration_seconds_bucket") and bound
    ]
    assert bounds == pytest.approx([*(10.0**exponent for exponent in range(-8, 4)), float("inf")])
    assert {sample.labels["name"] for sample in metrics.samples("tests")} == {"tests"}


async def test_overridden_methods_are_called() -> None:
    calls: list[str] = []

    class Recorded(QueueMetrics[str]):
        def added(self, item: str) -> None:
            super().added(item)
            calls.append(item)

    queue: WorkQueue[str] = WorkQueue(metrics=Recorded())
    queue.add("a")
    assert calls == ["a"]


class Failing(QueueMetrics[str]):
    def added(self, item: str) -> None:
        super().added(item)
        raise OSError("statsd")

    def done(self, item: str) -> None:
        super().done(item)
        raise OSError("statsd")

    def retried(self, item: str) -> None:
        super().retried(item)
        raise OSError("statsd")


async def test_metrics_that_raise_lose_no_item() -> None:
    queue: WorkQueue[str] = WorkQueue(metrics=Failing())
    with pytest.raises(OSError, match="statsd"):
        queue.add("a")
    assert len(queue) == 1
    assert await queue.get() == "a"
    with pytest.raises(OSError, match="statsd"):
        queue.add("a")
    with pytest.raises(OSError, match="statsd"):
        queue.done("a")
    assert len(queue) == 1
    with pytest.raises(OSError, match="statsd"):
        queue.add_after("b", 5.0)
    assert queue.state.delayed == 1


async def test_got_that_raises_hands_out_no_item() -> None:
    class Getting(QueueMetrics[str]):
        def got(self, item: str) -> None:
            super().got(item)
            if self.adds < 3:
                queue.add(item, 1)  # as if it were in process
                raise OSError("statsd")

    queue: WorkQueue[str] = WorkQueue(metrics=Getting())
    queue.add("a")
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    ended, _ = await asyncio.wait(waiting, timeout=10)
    assert [repr(task.exception()) for task in waiting[:2]] == ["OSError('statsd')"] * 2
    assert (len(ended), waiting[2].result(), queue.items_processing) == (3, "a", ["a"])
    queue.done("a")
    queue.shut_down()
    with pytest.raises(QueueShutDownError, match="work queue '' is shut down"):
        await queue.get()


async def test_item_without_a_recorded_addition_is_tolerated() -> None:
    class Forgetful(QueueMetrics[str]):
        def added(self, item: str) -> None:
            raise OSError("statsd")

        def got(self, item: str) -> None:
            if item == "a":
                super().got(item)

    metrics = Forgetful()
    queue: WorkQueue[str] = WorkQueue(metrics=metrics)
    for item in "ab":
        with pytest.raises(OSError, match="statsd"):
            queue.add(item)
        assert await queue.get() == item
        queue.done(item)
    assert (metrics.queue_duration.count, metrics.work_duration.count) == (0, 1)


@virtual_time
async def test_metrics_that_raise_do_not_stop_delayed_items() -> None:
    loop = asyncio.get_running_loop()
    failures: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    metrics = Failing()
    queue: WorkQueue[str] = WorkQueue(metrics=metrics)
    for seconds, item in ((5.0, "a"), (5.0, "b"), (10.0, "c")):
        with pytest.raises(OSError, match="statsd"):
            queue.add_after(item, seconds)
    await asyncio.sleep(5.1)
    assert (len(queue), len(failures)) == (2, 2)
    await asyncio.sleep(5)
    assert (len(queue), len(failures)) == (3, 3)
