"""Controller: a reflector, a queue, and the loop that processes its items."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from aioinformer import ConfigError, DeltaFIFO, KubeObject, RealFIFO, Store
from aioinformer.cache import Config, Controller, DeltaType, Queue, ReflectorOptions
from aioinformer.controller import apply_in_steps
from aioinformer.deltas import Delta
from aioinformer.errors import AlreadyStartedError, RequeueError, WrongEventLoopError
from aioinformer.reflector import Phase

from ..reflector.scripted import FOREVER, Scripted, Step, added, error_event, modified, page, raw_pod
from ..steps import until
from ..virtual_time import cancel_after, run, settle, virtual_time

Popped = list[tuple[str, list[str], bool]]


class Process:
    """A process function that records its calls and raises the errors in ``fails``."""

    def __init__(self, fails: dict[str, list[Exception]] | None = None) -> None:
        self.popped: Popped = []
        self.fails = fails or {}

    def __call__(self, deltas: list[Delta], is_in_initial_list: bool) -> None:
        name = deltas[-1].object.name
        self.popped.append((name, [delta.type.value for delta in deltas], is_in_initial_list))
        if self.fails.get(name):
            raise self.fails[name].pop(0)

    def names(self) -> list[str]:
        return [name for name, _, _ in self.popped]


def controller(server: Scripted, process: Any, queue: Queue | None = None, **config: Any) -> Controller:
    options = ReflectorOptions(random=Random(0))
    options.update(config.pop("reflector_options", {}))
    chosen = DeltaFIFO() if queue is None else queue
    return Controller(Config(chosen, server, process, KubeObject, reflector_options=options, **config))


@virtual_time
async def test_lists_watches_and_processes() -> None:
    process = Process()
    server = Scripted([page(raw_pod("a"), raw_pod("b"), version=10)], [[1.0, added("c", 11), FOREVER]])
    subject = controller(server, process)
    assert not subject.has_synced()
    async with subject:
        await subject.wait_synced()
        assert process.names() == ["a", "b"]
        await asyncio.sleep(5)
        assert subject.last_sync_resource_version == "11"
        assert subject.queue_depth == 0
        assert subject.state.phase is Phase.WATCHING
    assert process.popped == [("a", ["Sync"], True), ("b", ["Sync"], True), ("c", ["Added"], False)]
    assert repr(subject) == "<Controller scripted pods>"
    server.assert_closed()


@virtual_time
async def test_has_synced_after_last_item_was_processed() -> None:
    """W2. Difference from upstream, where the cache may still miss the last item."""
    done: list[str] = []

    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        assert not subject.has_synced()
        await asyncio.sleep(1)
        done.append(deltas[-1].object.name)

    subject = controller(Scripted([page(raw_pod("a"), raw_pod("b"), version=10)]), process)
    async with subject:
        await subject.wait_synced()
        assert done == ["a", "b"]


@virtual_time
async def test_empty_first_list_syncs_at_once() -> None:
    """C13."""
    async with controller(Scripted([page(version=10)]), Process()) as subject:
        await subject.wait_synced()
        assert subject.has_synced()


@virtual_time
async def test_relisted_objects_are_not_in_initial_list() -> None:
    """C33."""
    process = Process()
    server = Scripted(
        [page(raw_pod("a"), version=10), page(raw_pod("a"), raw_pod("b"), version=20)],
        [[6.0, error_event(410, "Gone")]],
    )
    async with controller(server, process):
        await asyncio.sleep(60)
    assert process.popped == [("a", ["Sync"], True), ("a", ["Sync"], False), ("b", ["Sync"], False)]


@virtual_time
async def test_failed_item_is_logged_with_key_and_version_and_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = Process({"a": [ValueError("cannot")]})
    async with controller(Scripted([page(raw_pod("a", 7), raw_pod("b"), version=10)]), process) as subject:
        await subject.wait_synced()
        await asyncio.sleep(60)
    assert process.names() == ["a", "b"]
    assert subject.failed == 1
    assert "scripted pods: processing default/a at 7 failed: cannot" in caplog.text


@virtual_time
async def test_cancelled_error_raised_by_process_is_a_failure() -> None:
    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        raise asyncio.CancelledError

    async with controller(Scripted([page(raw_pod("a", 7), raw_pod("b"), version=10)]), process) as subject:
        await subject.wait_synced()
    assert subject.failed == 2


@virtual_time
async def test_failed_async_process_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        await asyncio.sleep(0)
        raise ValueError("cannot")

    async with controller(Scripted([page(raw_pod("a", 7), version=10)]), process) as subject:
        await subject.wait_synced()
    assert subject.failed == 1
    assert "default/a at 7 failed: cannot" in caplog.text


@virtual_time
async def test_cancelled_error_raised_by_async_process_is_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        raise asyncio.CancelledError("another task's")

    async with controller(Scripted([page(raw_pod("a", 7), version=10)]), process) as subject:
        await subject.wait_synced()
        await asyncio.sleep(1)
        assert subject.state.phase is Phase.WATCHING
    assert "default/a at 7 failed: user code raised CancelledError" in caplog.text
    assert "another task's" in caplog.text


def generator(deltas: list[Delta], is_in_initial_list: bool) -> Any:
    yield


async def async_generator(deltas: list[Delta], is_in_initial_list: bool) -> Any:
    yield


@pytest.mark.parametrize(
    ("process", "said"),
    [
        (None, r"must be a function of \(deltas, is_in_initial_list\), not None"),
        ("x", "must be a function"),
        (lambda deltas: None, r"is called with \(deltas, is_in_initial_list\); .* takes \(deltas\)"),
        (generator, "is called, not iterated over: generator contains a yield"),
        (async_generator, "is called, not iterated over: async_generator contains"),
    ],
)
def test_invalid_process_function_is_refused(process: Any, said: str) -> None:
    """It would lose every item; a generator would do so silently."""
    with pytest.raises(ConfigError, match=f"^process {said}"):
        controller(Scripted([]), process)
    if process is not None:
        with pytest.raises(ConfigError, match=f"^process_batch {said}"):
            controller(Scripted([]), Process(), process_batch=process)


@virtual_time
async def test_retry_on_error_requeues_the_item_and_others_follow(caplog: pytest.LogCaptureFixture) -> None:
    process = Process({"a": [ValueError("1"), ValueError("2")]})
    server = Scripted([page(raw_pod("a"), raw_pod("b"), version=10)])
    async with controller(server, process, retry_on_error=True) as subject:
        await subject.wait_synced()
        assert process.names() == ["a", "b", "a", "a"]
    assert subject.failed == 2


@virtual_time
async def test_requeue_error_requeues_without_retry_on_error(caplog: pytest.LogCaptureFixture) -> None:
    process = Process({"a": [RequeueError(), RequeueError(ValueError("why"))]})
    async with controller(Scripted([page(raw_pod("a", 7), version=10)]), process) as subject:
        await subject.wait_synced()
    assert process.names() == ["a", "a", "a"]
    assert subject.failed == 1, "a RequeueError without a cause is not a failure"
    assert [record.getMessage() for record in caplog.records] == [
        "scripted pods: processing default/a at 7 failed: why"
    ]


@virtual_time
async def test_newer_item_wins_over_requeued_item() -> None:
    """add_if_not_present."""
    queue = DeltaFIFO()
    seen: list[list[str]] = []

    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        seen.append([delta.object.resource_version for delta in deltas])
        if len(seen) == 1:
            raise RequeueError

    server = Scripted([page(raw_pod("a", 1), version=10)], [[modified("a", 11), FOREVER]])
    async with controller(server, process, queue=queue):
        await asyncio.sleep(10)
    assert seen == [["1"], ["1", "11"]] or seen == [["1"], ["1"], ["11"]] or seen == [["1"], ["11"]]


@pytest.mark.parametrize("error", [RequeueError(), RequeueError(ValueError("why"))])
@virtual_time
async def test_permanent_failure_is_retried_with_backoff(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        calls.append(deltas)
        raise error

    calls: list[list[Delta]] = []
    async with controller(Scripted([page(raw_pod("a"), version=10)]), process):
        await asyncio.sleep(60)
    assert 50 < len(calls) < 80


@virtual_time
async def test_failing_batch_is_retried_as_often_as_one_item(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        sizes.append(len(deltas))
        raise ValueError

    sizes: list[int] = []
    server = Scripted([page(*(raw_pod(str(number)) for number in range(500)), version=10)])
    async with controller(server, process, process_batch=process, retry_on_error=True):
        await asyncio.sleep(60)
    assert 50 < len(sizes) < 80
    assert set(sizes) == {500}


@pytest.mark.parametrize("retry_on_error", [False, True])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("queue", [DeltaFIFO, partial(RealFIFO, atomic_events=True)])
@virtual_time
async def test_cancel_ends_run_whatever_process_does_with_it(
    queue: Callable[[], Queue], fails: bool, retry_on_error: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """C81."""
    calls: list[list[Delta]] = []

    async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        calls.append(deltas)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if fails:
                raise ValueError("cleaning up has failed") from None

    server = Scripted([page(raw_pod("a"), raw_pod("b"), version=10)])
    subject = controller(server, process, queue(), retry_on_error=retry_on_error)
    task = subject.begin()
    await asyncio.sleep(5)
    task.cancel()
    ended, _ = await asyncio.wait({task}, timeout=60)
    assert ended
    assert task.cancelled()
    assert len(calls) == 1
    assert ["cleaning up has failed" in record.getMessage() for record in caplog.records] == [True] * fails


@virtual_time
async def test_permanent_failure_does_not_delay_others(caplog: pytest.LogCaptureFixture) -> None:
    times: dict[str, float] = {}
    loop = asyncio.get_running_loop()

    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        name = deltas[-1].object.name
        times[name] = loop.time()
        if name == "bad":
            raise ValueError

    server = Scripted([page(raw_pod("bad"), version=10)], [[60.0, added("b", 11), FOREVER]])
    async with controller(server, process, retry_on_error=True):
        started = loop.time()
        await asyncio.sleep(70)
    assert times["b"] - started <= 61


@virtual_time
async def test_permanent_failure_blocks_an_ordered_queue_with_backoff(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A RealFIFO keeps the order, so no item overtakes a requeued one."""
    calls: list[list[str]] = []

    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        calls.append([delta.type.value for delta in deltas])
        if len(calls) < 60:
            raise ValueError

    events = [added(str(number), 11 + number) for number in range(100)]
    server = Scripted([page(version=10)], [[events, FOREVER]])
    async with controller(server, process, RealFIFO(atomic_events=True), retry_on_error=True) as subject:
        await asyncio.sleep(10)
        assert 10 < len(calls) < 30
        assert subject.queue_depth == 101
        await asyncio.sleep(60)
        assert subject.queue_depth == 0
    assert calls == [["ReplacedAll"]] * 60 + [["Added"]] * 100


@virtual_time
async def test_success_resets_the_backoff(caplog: pytest.LogCaptureFixture) -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()

    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        times.append(loop.time())
        if len(times) not in (6, 9):
            raise ValueError

    server = Scripted([page(raw_pod("a"), version=10)], [[60.0, modified("a", 11), FOREVER]])
    async with controller(server, process, retry_on_error=True):
        await asyncio.sleep(70)
    delays = [round(later - earlier, 3) for earlier, later in pairwise(times)]
    assert delays[:5] == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert delays[6:] == [0.005, 0.01]


async def test_wait_synced_in_another_loop_raises() -> None:
    async with controller(Scripted([page(version=1)], [[FOREVER]]), Process()) as subject:
        with pytest.raises(WrongEventLoopError):
            await asyncio.to_thread(lambda: asyncio.run(subject.wait_synced()))


@virtual_time
async def test_resync_asks_should_resync_each_period() -> None:
    """C83, the common case: each period, if should_resync agrees, from the known objects."""
    known: Store[Any] = Store()
    answers = iter([True, False, True])
    types: list[str] = []

    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        types.extend(delta.type.value for delta in deltas)
        for _ in apply_in_steps(known, deltas, is_in_initial_list):
            pass

    queue = DeltaFIFO(known_objects=known, emit_delta_type_replaced=True)
    server = Scripted([page(raw_pod("a"), version=10)])
    async with controller(
        server, process, queue=queue, full_resync_period=10.0, should_resync=lambda: next(answers)
    ):
        await asyncio.sleep(35)
    assert types == ["Replaced", "Sync", "Sync"]


@virtual_time
async def test_watch_error_handler_is_called() -> None:
    errors: list[str] = []

    def handler(reflector: Any, error: Exception) -> None:
        errors.append(str(error))

    server = Scripted([OSError("one"), page(version=1)])
    async with controller(server, Process(), watch_error_handler=handler):
        await asyncio.sleep(5)
    server = Scripted([OSError("two"), page(version=1)])
    async with controller(server, Process(), reflector_options=ReflectorOptions(watch_error_handler=handler)):
        await asyncio.sleep(5)
    assert errors == ["one", "two"]


@virtual_time
async def test_without_known_objects_missed_deletions_are_lost() -> None:
    process = Process()
    server = Scripted(
        [page(raw_pod("a"), raw_pod("b"), version=10), page(raw_pod("b"), version=20)],
        [[6.0, error_event(410, "Gone")]],
    )
    async with controller(server, process):
        await asyncio.sleep(60)
    assert DeltaType.DELETED.value not in [kind for _, kinds, _ in process.popped for kind in kinds]


@virtual_time
async def test_closed_queue_ends_run() -> None:
    queue = DeltaFIFO()
    subject = controller(Scripted([page(version=10)]), Process(), queue=queue)
    task = asyncio.create_task(subject.run())
    await asyncio.sleep(5)
    queue.close()
    await task


@virtual_time
async def test_stop_closes_queue_and_streams() -> None:
    queue = DeltaFIFO()
    server = Scripted([page(version=10)])
    async with controller(server, Process(), queue=queue):
        await settle()
    assert queue.is_closed
    server.assert_closed()


@virtual_time
async def test_enter_twice_raises() -> None:
    subject = controller(Scripted(), Process())
    async with subject:
        with pytest.raises(AlreadyStartedError):
            async with subject:
                pass


@virtual_time
async def test_run_twice_raises() -> None:
    process, queue = Process(), DeltaFIFO()
    async with controller(Scripted([page(raw_pod("a"), version=10)]), process, queue) as subject:
        await subject.wait_synced()
        with pytest.raises(AlreadyStartedError, match="was started before"):
            await subject.run()
        assert not queue.is_closed
        assert subject.state.phase is Phase.WATCHING


def test_cancel_at_any_step_loses_no_item() -> None:
    """Every item is either processed or still queued, and no stream stays open."""
    steps: list[Step] = [[added("b", 11), added("c", 12)], modified("a", 13), modified("c", 14), FOREVER]
    for count in range(60):

        async def main(count: int = count) -> None:
            finished: list[Delta] = []

            async def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
                await asyncio.sleep(0)
                finished.extend(deltas)

            queue = DeltaFIFO()
            server = Scripted([page(raw_pod("a", 1), version=10)], [steps])
            subject = controller(server, process, queue=queue)
            assert await cancel_after(count, asyncio.create_task(subject.run()))
            server.assert_closed()
            remaining = [delta for key in queue.list_keys() for delta in queue.get_by_key(key) or []]
            seen = [delta.object.resource_version for delta in finished + remaining]
            assert len(seen) == len(set(seen))
            version = int(subject.last_sync_resource_version or 0)
            expected = {"11", "12", "13", "14"} if version else set()
            assert {number for number in seen if int(number) > 10} == {
                number for number in expected if int(number) <= version
            }

        run(main())


async def test_runs_on_both_event_loops() -> None:
    process = Process()
    server = Scripted([page(raw_pod("a"), version=10)], [[added("b", 11), FOREVER]])
    async with controller(server, process) as subject:
        await subject.wait_synced()
        await until(lambda: process.names() == ["a", "b"])
    server.assert_closed()
