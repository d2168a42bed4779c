"""until: wait for conditions on events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, assert_type

import msgspec
import pytest

from aioinformer import (
    ApiError,
    ConfigError,
    Indexer,
    InformerEvents,
    KubeObject,
    RetryWatcher,
    SharedIndexInformer,
    StoppedError,
    WatchEvent,
    until,
    until_with_sync,
    until_without_retry,
)
from aioinformer.errors import AlreadyStartedError, InformerError, UntilTimeout, WatchClosedError
from aioinformer.watchtools import InformerEvent

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    FOREVER,
    Scripted,
    Step,
    added,
    deleted,
    error_event,
    expired_error,
    modified,
    page,
    raw_pod,
)
from ..virtual_time import settle, virtual_time


def is_at(version: int) -> Any:
    """A condition: the event's object has this version or a newer one."""

    def is_there(event: WatchEvent) -> bool:
        return int(event.object.resource_version) >= version

    return is_there


async def stream(*events: WatchEvent) -> AsyncIterator[WatchEvent]:
    for event in events:
        await asyncio.sleep(1)
        yield WatchEvent(event.type, KubeObject.from_bytes(event.object)) if event.type != "ERROR" else event


class TestWithoutRetry:
    @virtual_time
    async def test_conditions_are_met_one_after_another(self) -> None:
        asked: list[tuple[int, str]] = []

        def condition(version: int) -> Any:
            def is_there(event: WatchEvent) -> bool:
                asked.append((version, event.object.resource_version))
                return bool(is_at(version)(event))

            return is_there

        events = stream(added("a", 11), modified("a", 12), modified("a", 13), modified("a", 14))
        event = await until_without_retry(events, condition(12), condition(11), condition(14))
        assert event.object.resource_version == "14"
        assert asked == [(12, "11"), (12, "12"), (11, "12"), (14, "12"), (14, "13"), (14, "14")]

    @virtual_time
    async def test_conditions_may_be_async(self) -> None:
        async def is_deleted(event: WatchEvent) -> bool:
            await asyncio.sleep(1)
            return event.type == "DELETED"

        event = await until_without_retry(stream(added("a", 11), deleted("a", 12)), is_deleted)
        assert event.type == "DELETED"

    @virtual_time
    async def test_events_that_end_before_the_condition_raise(self) -> None:
        with pytest.raises(WatchClosedError) as caught:
            await until_without_retry(stream(added("a", 11), modified("a", 12)), is_at(11), is_at(20))
        assert caught.value.event.object.resource_version == "12"
        assert "ended before condition 2 of 2" in str(caught.value)
        assert "the last event was MODIFIED of default/a at 12" in str(caught.value)
        assert not isinstance(caught.value, TimeoutError)
        with pytest.raises(WatchClosedError, match="there was no event"):
            await until_without_retry(stream(), is_at(11))

    @virtual_time
    async def test_timeout_names_the_condition(self) -> None:
        with pytest.raises(UntilTimeout) as caught:
            await until_without_retry(
                stream(added("a", 11), modified("a", 12)), is_at(11), is_at(20), timeout=1.5
            )
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.event.object.resource_version == "11"
        assert "after 1.5 s not condition 2 of 2" in str(caught.value)
        assert "is_there" in str(caught.value)

    @virtual_time
    async def test_error_event_is_raised(self) -> None:
        with pytest.raises(ApiError) as caught:
            await until_without_retry(stream(added("a", 11), error_event(410, "Expired")), is_at(20))
        assert caught.value.is_expired

    @virtual_time
    async def test_error_of_a_condition_ends_the_wait(self) -> None:
        def fail(event: WatchEvent) -> bool:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await until_without_retry(stream(added("a", 11)), fail)

    @virtual_time
    async def test_until_needs_a_condition(self) -> None:
        with pytest.raises(ConfigError, match="at least one condition"):
            await until_without_retry(stream())

    @pytest.mark.parametrize("timeout", [True, float("nan"), float("inf"), "5"])
    @virtual_time
    async def test_invalid_timeouts_are_refused(self, timeout: Any) -> None:
        informer = SharedIndexInformer(Scripted(), KubeObject)
        server = Scripted()
        for wait in (
            until(server, "10", is_at(11), timeout=timeout),
            until_without_retry(stream(), is_at(11), timeout=timeout),
            until_with_sync(informer, is_at(11), timeout=timeout),
        ):
            with pytest.raises(
                ConfigError, match="timeout must be a number of seconds, or None for no end, not"
            ):
                await wait
        assert not server.watches
        assert not informer.state.handlers


class TestUntil:
    @virtual_time
    async def test_broken_watches_are_resumed(self) -> None:
        server = Scripted([], [[added("a", 11)], [modified("a", 12), FOREVER]])
        event = await until(server, "10", is_at(12))
        assert (event.type, event.object.resource_version) == ("MODIFIED", "12")
        assert server.versions() == [("watch", "10"), ("watch", "11")]
        server.assert_closed()

    @virtual_time
    async def test_objects_have_the_requested_type(self) -> None:
        server = Scripted([], [[added("a", 11), FOREVER]])
        event = await until(server, "10", lambda event: event.object["kind"] == "Pod", object_type=dict)
        assert type(event.object) is dict

    @pytest.mark.parametrize("watch", [expired_error(), [error_event(410, "Expired")]])
    @virtual_time
    async def test_expired_version_is_raised(self, watch: Any) -> None:
        server = Scripted([], [watch])
        with pytest.raises(ApiError, match="410 Expired"):
            await until(server, "10", is_at(12))
        server.assert_closed()

    @virtual_time
    async def test_timeout_closes_the_watch(self) -> None:
        server = Scripted([], [[added("a", 11), FOREVER]])
        with pytest.raises(
            UntilTimeout, match=r"RetryWatcher scripted pods .*last event was ADDED of default/a at 11"
        ):
            await until(server, "10", is_at(12), timeout=5)
        server.assert_closed()

    @virtual_time
    async def test_timeout_says_why_no_event_came(self) -> None:
        server = Scripted([], [[added("a", 11)], *[OSError("refused")] * 9])
        with pytest.raises(UntilTimeout, match=r"at 11, failed last: refused>: after 5 s not"):
            await until(server, "10", is_at(12), timeout=5)

    @virtual_time
    async def test_callers_watcher_stays_open(self) -> None:
        server = Scripted([], [[added("a", 11), added("b", 12), FOREVER]])
        async with RetryWatcher(server, "10") as events:
            await until_without_retry(events, is_at(11))
            assert (await anext(events)).object.name == "b"
        server.assert_closed()


def informer(*steps: Step, items: int = 1) -> SharedIndexInformer[KubeObject]:
    pods = [raw_pod(chr(ord("a") + n), 1 + n) for n in range(items)]
    return SharedIndexInformer(
        Scripted([page(*pods, version=10)], [[*steps, FOREVER]]), KubeObject, random=NoJitter()
    )


class TestWithSync:
    @virtual_time
    async def test_cached_objects_come_first(self) -> None:
        async with informer(3.0, modified("a", 11)) as subject:
            await subject.wait_synced()
            event = await until_with_sync(subject, is_at(1))
            assert event is not None
            assert (event.type, event.object.resource_version) == ("ADDED", "1")
            event = await until_with_sync(subject, is_at(1), is_at(11))
            assert event is not None
            assert (event.type, event.object.resource_version) == ("MODIFIED", "11")
            assert not subject.state.handlers

    @virtual_time
    async def test_missed_deletion_has_the_last_known_state(self) -> None:
        server = Scripted(
            [page(raw_pod("a", 1), version=10), page(version=20)], [[6.0, error_event(410, "Gone")]]
        )
        async with SharedIndexInformer(server, KubeObject, random=NoJitter()) as subject:
            event = await until_with_sync(subject, lambda event: event.type == "DELETED")
            assert event is not None
            assert (event.object.name, event.object.resource_version) == ("a", "1")

    @pytest.mark.parametrize("is_async", [False, True])
    @virtual_time
    async def test_precondition_that_holds_ends_the_wait(self, is_async: bool) -> None:
        asked: list[int] = []

        def has_two(indexer: Indexer[KubeObject]) -> bool:
            asked.append(len(indexer))
            return len(indexer) == 2

        async def later(indexer: Indexer[KubeObject]) -> bool:
            await asyncio.sleep(1)
            return has_two(indexer)

        async with informer(items=2) as subject:
            precondition: Any = later if is_async else has_two
            assert await until_with_sync(subject, is_at(99), precondition=precondition) is None
        assert asked == [2], "once, and not before it had synced"

    @virtual_time
    async def test_precondition_that_does_not_hold_continues_the_wait(self) -> None:
        async with informer(3.0, modified("a", 11)) as subject:
            event = await until_with_sync(subject, is_at(11), precondition=lambda indexer: False)
            assert event is not None

    @virtual_time
    async def test_informer_may_start_later(self) -> None:
        subject = informer()
        waiting = asyncio.create_task(until_with_sync(subject, is_at(1), precondition=lambda indexer: False))
        await settle()
        async with subject:
            assert await waiting is not None

    @virtual_time
    async def test_informer_that_ends_raises(self) -> None:
        async with informer() as subject:
            waiting = asyncio.create_task(until_with_sync(subject, is_at(99)))
            await settle()
        with pytest.raises(WatchClosedError, match="scripted pods ended before condition 1 of 1"):
            await waiting
        with pytest.raises(StoppedError):
            await until_with_sync(subject, is_at(1))

    @virtual_time
    async def test_timeout_before_the_informer_has_synced(self) -> None:
        server = Scripted([OSError("refused")] * 9)
        async with SharedIndexInformer(server, KubeObject, random=NoJitter()) as subject:
            with pytest.raises(UntilTimeout, match=r"there was no event; not synced, .* refused"):
                await until_with_sync(subject, is_at(1), precondition=lambda indexer: True, timeout=5)
            assert not subject.state.handlers


class Pod(msgspec.Struct):
    class Meta(msgspec.Struct, rename="camel"):
        name: str
        resource_version: str = ""

    metadata: Meta


@virtual_time
async def test_type_checkers_know_the_object_of_an_event() -> None:
    """The object of a bare WatchEvent is Any."""

    def is_named(event: WatchEvent[Pod]) -> bool:
        return event.object.metadata.name == "a"

    def is_there(event: WatchEvent) -> bool:
        return bool(event.object.metadata.resource_version)

    lists = Scripted([page(raw_pod("a", 1), version=10)], [[FOREVER]])
    async with SharedIndexInformer(lists, Pod) as subject, InformerEvents(subject) as events:
        assert_type(await anext(events), InformerEvent[Pod])
        assert_type(await until_with_sync(subject, is_named, is_there), WatchEvent[Pod] | None)
    watches = Scripted([], [[added("a", 11), FOREVER]] * 3)
    async with RetryWatcher(watches, "10", Pod) as watcher:
        assert_type(await anext(watcher), WatchEvent[Pod])
    event = await until(watches, "10", is_named, is_there, object_type=Pod)
    assert_type(event, WatchEvent[Pod])
    assert type(event.object) is Pod
    assert_type(await until(watches, "10", is_there), WatchEvent[KubeObject])


class TestInformerEvents:
    @virtual_time
    async def test_all_events_arrive_in_order(self) -> None:
        seen = []
        async with (
            informer([modified("a", 11), added("b", 12)], 3.0, deleted("a", 13)) as subject,
            InformerEvents(subject) as events,
        ):
            async for event in events:
                seen.append(f"{event.type} {event.object.name} {event.object.resource_version}")
                if len(seen) == 4:
                    break
        assert seen == ["ADDED a 1", "MODIFIED a 11", "ADDED b 12", "DELETED a 13"]

    @virtual_time
    async def test_events_before_the_informers_end_are_returned(self) -> None:
        async with informer(items=3) as subject:
            events = await InformerEvents(subject).__aenter__()
            await subject.wait_synced()
            await settle()
        assert [event.object.name async for event in events] == ["a", "b", "c"]
        await events.__aexit__(None, None, None)

    @virtual_time
    async def test_length_counts_unread_events(self) -> None:
        async with informer(items=2) as subject, InformerEvents(subject) as events:
            assert events
            assert len(events) == 0
            await settle()
            assert len(events) == 2
            await anext(events)
            assert len(events) == 1

    @virtual_time
    async def test_leaving_ends_the_events_of_a_waiting_task(self) -> None:
        async with informer() as subject:
            async with InformerEvents(subject) as events:
                reader = asyncio.create_task(names(events))
                await settle()
            assert await reader == ["a"]
            assert await names(events) == []
            async with events:
                assert (await anext(events)).object.name == "a"

    @virtual_time
    async def test_events_have_the_old_state_and_whether_they_are_initial(self) -> None:
        async with informer(3.0, modified("a", 11)) as subject, InformerEvents(subject) as events:
            first, second = await anext(events), await anext(events)
        assert (first.initial, first.old) == (True, None)
        assert second.old is not None
        assert (second.initial, second.old.resource_version) == (False, "1")
        kind, obj = second
        assert (kind, obj.resource_version) == ("MODIFIED", "11")

    @virtual_time
    @pytest.mark.parametrize("items", [0, 2])
    async def test_synced_follows_the_initial_events(self, items: int) -> None:
        async with (
            informer(3.0, added("x", 11), items=items) as subject,
            InformerEvents(subject, synced=True) as events,
        ):
            kinds = [(await anext(events)).type for _ in range(items + 2)]
        assert kinds == ["ADDED"] * items + ["SYNCED", "ADDED"]

    @virtual_time
    async def test_synced_comes_for_an_informer_that_has_synced_before(self) -> None:
        async with informer() as subject:
            await subject.wait_synced()
            async with InformerEvents(subject, synced=True) as events:
                assert [(await anext(events)).type for _ in range(2)] == ["ADDED", "SYNCED"]

    @virtual_time
    async def test_backlog_coalesces_what_a_slow_reader_has_not_taken(self) -> None:
        changes = [modified("a", 11 + number) for number in range(50)]
        async with informer(3.0, *changes) as subject, InformerEvents(subject, backlog="coalesce") as events:
            await anext(events)
            await asyncio.sleep(10)
            assert len(events) <= 3
            seen = [event async for event in taken(events, len(events))]
        assert seen[-1].object.resource_version == "60"
        assert [event.old.resource_version for event in seen if event.old] == [
            "1",
            *(event.object.resource_version for event in seen[:-1]),
        ]

    @virtual_time
    async def test_backlog_that_drops_keeps_the_newest(self) -> None:
        changes = [modified("a", 11 + number) for number in range(50)]
        async with (
            informer(3.0, *changes) as subject,
            InformerEvents(subject, backlog="drop_oldest", backlog_limit=5) as events,
        ):
            await asyncio.sleep(10)
            assert 5 <= len(events) <= 8
            seen = [event async for event in taken(events, len(events))]
        assert [event.object.resource_version for event in seen[-5:]] == ["56", "57", "58", "59", "60"]

    @virtual_time
    async def test_many_unread_events_wait_in_the_backlog_in_order(self) -> None:
        changes = [modified("a", 11 + number) for number in range(1000)]
        async with informer(3.0, *changes) as subject, InformerEvents(subject) as events:
            await asyncio.sleep(10)
            assert len(events) == 1001
            assert subject.state.handlers[0].depth > 700
            seen = [event.object.resource_version async for event in taken(events, 1001)]
            assert seen == ["1", *(str(11 + number) for number in range(1000))]
            assert len(events) == 0

    @virtual_time
    async def test_leaving_with_a_full_backlog_ends_the_handler(self) -> None:
        changes = [modified("a", 11 + number) for number in range(1000)]
        async with informer(3.0, *changes) as subject:
            async with InformerEvents(subject):
                await asyncio.sleep(10)
            assert (subject.state.handlers, subject.state.leaving) == ((), 0)

    @virtual_time
    async def test_unknown_backlog_is_an_error(self) -> None:
        async with informer() as subject:
            with pytest.raises(ConfigError, match="backlog"):
                await InformerEvents(subject, backlog="none").__aenter__()  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match="synced must be true or false"):
                InformerEvents(subject, synced=1)  # type: ignore[arg-type]

    @virtual_time
    async def test_iterating_before_entering_is_an_error(self) -> None:
        async with informer() as subject:
            with pytest.raises(InformerError, match="with async with"):
                await anext(InformerEvents(subject))

    @virtual_time
    async def test_second_entering_is_an_error_until_left(self) -> None:
        async with informer() as subject:
            events = InformerEvents(subject)
            registered: list[int] = []
            async with events:
                with pytest.raises(
                    AlreadyStartedError, match=f"events of {subject.name} are entered already"
                ):
                    await events.__aenter__()
                registered.append(len(subject.state.handlers))
            registered.append(len(subject.state.handlers))
            async with events:
                registered.append(len(subject.state.handlers))
            assert registered == [1, 0, 1]

    @virtual_time
    async def test_informer_that_is_never_started_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        async with informer() as started, InformerEvents(started), InformerEvents(subject := informer()):
            await asyncio.sleep(9)
            assert caplog.messages == []
            await asyncio.sleep(60)
            assert caplog.messages == [
                f"events of {subject.name} wait for an informer that is not started: enter it (async with), "
                "or await its run()"
            ]


async def taken(events: InformerEvents[KubeObject], count: int) -> AsyncIterator[InformerEvent[KubeObject]]:
    """Yield so many events."""
    for _ in range(count):
        yield await anext(events)


async def names(events: InformerEvents[KubeObject]) -> list[str]:
    return [event.object.name async for event in events]
