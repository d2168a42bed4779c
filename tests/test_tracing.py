"""Tracer: what it stamps and forgets, and that it costs nothing when it is off."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from aioinformer import (
    ConfigError,
    KubeObject,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
)
from aioinformer.processor import Processor
from aioinformer.tracing import STAGES, StageTimes, Trace, Tracer, percentiles_of
from tests.informer.handlers import Follower
from tests.reflector.running import NoJitter
from tests.reflector.scripted import FOREVER, Scripted, added, bookmark, deleted, modified, page, raw_pod
from tests.virtual_time import virtual_time


def live() -> Scripted:
    changes: Any = [
        [added("a", 11), modified("a", 12), added("b", 13)],
        bookmark(14),
        deleted("b", 15),
        FOREVER,
    ]
    return Scripted([page(raw_pod("old", 1), version=10)], [changes])


def make_traced(server: Scripted, tracer: Tracer | None, **options: Any) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(server, KubeObject, random=NoJitter(), tracer=tracer, **options)


@pytest.mark.parametrize("queue", ["delta", "real"])
@virtual_time
async def test_every_event_is_stamped_on_its_way_to_every_handler(queue: Any) -> None:
    traces: list[Trace] = []
    tracer = Tracer(traces.append)
    subject = make_traced(live(), tracer, queue=queue)
    plain: ResourceEventHandlerFuncs[KubeObject] = ResourceEventHandlerFuncs()
    subject.add_event_handler(slow := Follower(seconds=1.0), name="slow")
    subject.add_event_handler(plain)
    async with subject:
        await asyncio.sleep(30)
    assert len(slow.calls) == 5
    stamped = [(trace.key, trace.resource_version) for trace in traces if trace.handler == "slow"]
    events = [("default/a", "11"), ("default/a", "12"), ("default/b", "13"), ("default/b", "15")]
    assert stamped == events, "the pod of the list is no event"
    assert len(traces) == 2 * len(events)
    for trace in traces:
        stamps = [trace.received, *(getattr(trace, stage) for stage in STAGES)]
        assert stamps[0] > 0
        assert stamps == sorted(stamps)
        assert sum(trace.stages) == trace.finished - trace.received
        assert list(trace.seconds()) == list(STAGES)
        assert sum(trace.seconds().values()) == pytest.approx((trace.finished - trace.received) / 1e9)
        assert trace.informer == "scripted pods"
    assert len(tracer) == 0
    assert tracer.forgotten == 0


@virtual_time
async def test_trace_finishes_when_a_handler_raises() -> None:
    class Failing(ResourceEventHandler[KubeObject]):
        def on_update(self, old: KubeObject, new: KubeObject) -> None:
            raise ValueError("plain")

        async def on_delete(self, obj: Any) -> None:
            raise ValueError("async")

    traces: list[Trace] = []
    subject = make_traced(live(), tracer := Tracer(traces.append))
    registration = subject.add_event_handler(Failing())
    async with subject:
        await asyncio.sleep(5)
        assert "Failing" in repr(registration)
        assert subject.state.handlers[0].failed == 2
    assert [trace.resource_version for trace in traces] == ["11", "12", "13", "15"]
    assert len(tracer) == 0


@virtual_time
async def test_number_of_pending_traces_is_bounded() -> None:
    tracer = Tracer(lambda trace: None, limit=2)
    subject = make_traced(live(), tracer)
    subject.add_event_handler(Follower(seconds=100.0), backlog="block", backlog_limit=1)
    async with subject:
        await asyncio.sleep(5)
        assert len(tracer) == 2
        assert tracer.forgotten == 2


@pytest.mark.parametrize(("backlog", "whole"), [("coalesce", []), ("drop_oldest", ["15"])])
@virtual_time
async def test_dropped_notifications_leave_no_trace(backlog: Any, whole: list[str]) -> None:
    traces: list[Trace] = []
    subject = make_traced(live(), tracer := Tracer(traces.append))
    registration = subject.add_event_handler(Follower(seconds=100.0), backlog=backlog, backlog_limit=1)
    async with subject:
        await asyncio.sleep(1000)
        state = registration.state
        assert state.coalesced + state.dropped > 0
        assert len(tracer) == 0
    assert [trace.resource_version for trace in traces] == whole


@virtual_time
async def test_removed_handler_leaves_no_trace() -> None:
    traces: list[Trace] = []
    subject = make_traced(live(), tracer := Tracer(traces.append))
    registration = subject.add_event_handler(Follower(seconds=100.0))
    subject.add_event_handler(ResourceEventHandlerFuncs(), name="stays")
    async with subject:
        await asyncio.sleep(5)
        subject.remove_event_handler(registration)
        await asyncio.sleep(500)
        assert len(tracer) == 0
    assert {trace.handler for trace in traces} == {"stays"}


@virtual_time
async def test_resyncs_have_no_trace() -> None:
    """Also for an object whose event has not reached every handler."""
    traces: list[Trace] = []
    server = Scripted([page(version=10)], [[added("a", 11), FOREVER]])
    subject = make_traced(server, Tracer(traces.append), default_resync_period=1.0)
    subject.add_event_handler(Follower(seconds=3.5), 0.0, name="slow")
    subject.add_event_handler(quick := Follower(), name="quick")
    async with subject:
        await asyncio.sleep(10)
    assert len(quick.calls) > 5
    assert [trace.handler for trace in traces] == ["quick", "slow"]


class Named(msgspec.Struct):
    name: str
    namespace: str = ""


class Unversioned(msgspec.Struct):
    metadata: Named
    spec: dict[str, int]


async def a_while(*objects: Any) -> None:
    await asyncio.sleep(1.0)


@pytest.mark.parametrize("backlog", ["unbounded", "block"])
@pytest.mark.parametrize("queue", ["delta", "real"])
@virtual_time
async def test_events_of_objects_without_version_are_kept_apart(queue: Any, backlog: Any) -> None:
    traces: list[Trace] = []
    changes: Any = [step for number in range(11, 31) for step in (modified("a", number, n=number), 0.4)]
    server = Scripted([page(raw_pod("a", 1), version=10)], [[*changes, FOREVER]])
    tracer = Tracer(traces.append)
    subject = SharedIndexInformer(server, Unversioned, random=NoJitter(), tracer=tracer, queue=queue)
    slow: ResourceEventHandlerFuncs[Unversioned] = ResourceEventHandlerFuncs(on_update=a_while)
    registration = subject.add_event_handler(slow, backlog=backlog, backlog_limit=1)
    subject.add_event_handler(ResourceEventHandlerFuncs(), name="quick")
    async with subject:
        await asyncio.sleep(100)
        assert registration.state.delivered == 21
        assert len(tracer) == 0
    assert len(traces) + 2 * tracer.forgotten == 40
    assert tracer.forgotten == 0 or backlog == "block"
    for trace in traces:
        stamps = [trace.received, *(getattr(trace, stage) for stage in STAGES)]
        assert stamps[0] > 0
        assert stamps == sorted(stamps)


@virtual_time
async def test_without_handlers_nothing_is_kept() -> None:
    subject = make_traced(live(), tracer := Tracer(lambda trace: None))
    async with subject:
        await asyncio.sleep(5)
        assert len(subject.store) == 2
        assert len(tracer) == 0


def test_without_a_tracer_no_code_is_wrapped() -> None:
    subject = make_traced(live(), None)
    subject.add_event_handler(handler := Follower())
    assert type(subject._processor) is Processor
    assert subject._processor.listeners[0].handler is handler


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ConfigError):
        Tracer(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        make_traced(live(), Tracer(print)).add_event_handler(object())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="plain function"):
        Tracer(asyncio.sleep)  # type: ignore[arg-type]
    for other in (StageTimes(), Tracer):
        with pytest.raises(ConfigError, match=r"tracer must be a Tracer, such as Tracer\(StageTimes\(\)\)"):
            make_traced(live(), other)  # type: ignore[arg-type]
    for share in (50, -0.1, float("nan"), "0.5"):
        with pytest.raises(
            ConfigError, match=r"a share must be a number from 0 to 1, such as 0\.99 for 99 %, not"
        ):
            StageTimes().percentiles(0.5, share)  # type: ignore[arg-type]


def test_tracer_is_for_one_informer() -> None:
    make_traced(live(), tracer := Tracer(print))
    with pytest.raises(ConfigError, match="others: this Tracer belongs to scripted pods"):
        make_traced(live(), tracer, name="others")


@pytest.mark.parametrize("error", [ValueError("full"), asyncio.CancelledError()])
@virtual_time
async def test_error_in_the_hook_is_not_the_handlers(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def count(trace: Trace) -> None:
        raise error

    subject = make_traced(live(), tracer := Tracer(count))
    registration = subject.add_event_handler(slow := Follower(seconds=1.0))
    subject.add_event_handler(ResourceEventHandlerFuncs())
    async with subject:
        await asyncio.sleep(30)
    assert len(slow.calls) == 5
    assert [state.failed for state in (registration.state, *subject.state.handlers)] == [0, 0, 0]
    assert tracer.failed == len(caplog.messages) == 8
    assert "scripted pods: the Tracer's hook test_error" in caplog.text
    assert "<locals>.count raised for default/a at 11" in caplog.text


def test_stage_times_are_percentiles_of_the_last_traces() -> None:
    times = StageTimes(traces=100)
    assert times.percentiles(0.5) == {}
    assert times.means() == {}
    for number in range(200):
        times(Trace("k", "1", "pods", "h", 0, 1000, 2000, 3000, 4000, 5000, 6000, 6000 + number * 1000))
    assert len(times) == 100
    percentiles = times.percentiles(0.0, 0.5, 0.99)
    assert list(percentiles) == [*STAGES, "total"]
    assert percentiles["decoded"] == (1e-6, 1e-6, 1e-6)
    assert percentiles["finished"] == (100e-6, 149e-6, 198e-6)
    assert percentiles["total"] == (106e-6, 155e-6, 204e-6)
    assert sum(times.means().values()) == pytest.approx(155.5e-6)


@pytest.mark.parametrize(
    ("count", "share", "rank"),
    [
        (100, 0.5, 50),
        (100, 0.07, 7),
        (100, 0.99, 99),
        (100, 0.991, 100),
        (100, 1.0, 100),
        (100, 0.0, 1),
        (2, 0.5, 1),
    ],
)
def test_percentiles_are_by_nearest_rank(count: int, share: float, rank: int) -> None:
    assert percentiles_of([number * 10**9 for number in range(1, count + 1)], (share,)) == (rank,)


@virtual_time
async def test_bookmarks_pass_through_a_tracer() -> None:
    """From Python 3.12 on, isinstance does not see attributes that a wrapper passes on by __getattr__."""
    server = Scripted([page(version=10)], [[bookmark(14), FOREVER]])
    async with make_traced(server, Tracer(lambda trace: None), queue="real") as subject:
        await asyncio.sleep(1)
        assert subject.store.last_store_sync_resource_version == "14"
