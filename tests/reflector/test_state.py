"""A reflector's errors, log and state."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer.errors import TransportError, VeryShortWatchError
from aioinformer.reflector import Phase, Reflector, ReflectorState

from ..steps import run_during, until
from ..virtual_time import run, virtual_time
from .running import reflector, run_for
from .scripted import (
    FOREVER,
    GONE,
    ListAnswer,
    RecordingStore,
    Scripted,
    Step,
    added,
    closing_bookmark,
    error_event,
    expired_error,
    page,
    raw_pod,
)


class TestOfOtherThreads:
    async def test_seconds_are_correct_in_any_thread_and_after_the_end(self) -> None:
        subject = reflector(Scripted([page(version=1)]))
        before = asyncio.get_running_loop().time() - 0.002  # uvloop's clock ticks each millisecond
        async with run_during(subject.run()):
            await until(lambda: subject.state.phase is Phase.WATCHING)
            lasted = subject.state.phase_seconds - 0.002
            for look in (lambda: subject.state, lambda: asyncio.run(state_of(subject))):
                state = await asyncio.to_thread(look)
                assert lasted <= state.phase_seconds <= asyncio.get_running_loop().time() - before
                assert state.idle_seconds is not None
                assert lasted <= state.idle_seconds <= asyncio.get_running_loop().time() - before
                lasted = state.phase_seconds - 0.002
        assert subject.state.phase_seconds < 60

    def test_seconds_follow_virtual_time(self) -> None:
        subject = reflector(Scripted([page(version=1)]))

        async def main() -> None:
            async with run_during(subject.run()):
                await asyncio.sleep(3600)
                assert subject.state.phase_seconds == pytest.approx(3600)

        run(main())
        assert subject.state.phase is Phase.STOPPED
        assert 0 <= subject.state.phase_seconds < 60


async def state_of(subject: Reflector[Any]) -> ReflectorState:
    return subject.state


class TestErrorHandlerAndLog:
    @virtual_time
    async def test_an_async_handler_is_awaited(self) -> None:
        seen: list[str] = []

        async def handler(reflector: Reflector[Any], error: Exception) -> None:
            await asyncio.sleep(0)
            seen.append(f"{reflector.name}: {error}")

        await run_for(reflector(Scripted([OSError("no")]), watch_error_handler=handler), 10)
        assert seen == ["scripted pods: no"]

    @virtual_time
    async def test_error_handler_that_raises_is_logged_and_does_not_end_the_reflector(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        def handler(reflector: Reflector[Any], error: Exception) -> None:
            raise ZeroDivisionError

        server = Scripted([OSError("no"), page(version=1)])
        await run_for(reflector(server, watch_error_handler=handler), 10)
        assert server.versions() == [("list", "0"), ("list", "0"), ("watch", "1")]
        assert "the watch error handler raised an exception for: no" in caplog.text

    @virtual_time
    async def test_error_whose_str_fails_does_not_end_the_reflector(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class MuteError(Exception):
            def __str__(self) -> str:
                raise RuntimeError("not even this")

        server = Scripted([MuteError(), page(version=1)])
        await run_for(reflector(server), 10)
        assert server.versions() == [("list", "0"), ("list", "0"), ("watch", "1")]
        assert "scripted pods: MuteError" in caplog.messages

    @virtual_time
    async def test_an_outage_is_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        await run_for(reflector(Scripted([TransportError("refused")] * 100)), 600)
        levels = [record.levelno for record in caplog.records if "refused" in record.getMessage()]
        assert levels[0] == logging.WARNING
        assert set(levels[1:]) == {logging.DEBUG}

    @virtual_time
    async def test_watches_that_end_at_once_are_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        """TestReflectorWatchHandler's very short watch: as behind a proxy that blocks watches."""
        server = Scripted([page(version=number) for number in range(1, 8)], [[0.2]] * 6)
        subject = reflector(server)
        async with run_during(subject.run()):
            await asyncio.sleep(20)
            assert len(server.watches) > 3
            state = subject.state
            assert state.phase is Phase.BACKING_OFF
            assert isinstance(state.last_error, VeryShortWatchError)
            assert "closed after 0.20 s without an event" in str(state)
            await asyncio.sleep(100)
            assert (subject.state.phase, subject.state.last_error) == (Phase.WATCHING, None)
        (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert warning.getMessage().startswith("scripted pods at 1: the watch was closed after 0.20 s")

    @virtual_time
    async def test_each_outage_is_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        lists: list[ListAnswer] = [TransportError("refused"), page(version=1), TransportError("refused")]
        server = Scripted(lists, [[6.0, added("a", 2), error_event(410, "Gone")]])
        await run_for(reflector(server), 60)
        warnings = [
            record
            for record in caplog.records
            if record.levelno == logging.WARNING and "refused" in record.getMessage()
        ]
        assert len(warnings) == 2

    @virtual_time
    async def test_outage_after_a_healthy_silent_watch_is_another_warning(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        lists: list[ListAnswer] = [TransportError("refused"), page(version=1)]
        server = Scripted(lists, [[200.0], TransportError("refused")])
        await run_for(reflector(server), 300)
        warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert [warning.getMessage() for warning in warnings] == [
            "scripted pods: refused",
            "scripted pods at 1: refused",
        ]

    @virtual_time
    async def test_lower_version_is_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        server = Scripted(
            [page(version=10), page(version=5), page(version=7)], [[6.0, added("a", 12), GONE], [6.0, GONE]]
        )
        await run_for(reflector(server), 60)
        (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert message.startswith("scripted pods: the server has gone back")
        assert "it lists at 5, and changes up to 12 were read before. Restart the process" in message

    @virtual_time
    async def test_list_without_a_version_is_not_a_lower_version(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = Scripted([page(version="")] * 2, [[6.0, added("a", 12), GONE], FOREVER])
        await run_for(reflector(server), 60)
        assert caplog.records == []

    @virtual_time
    async def test_expiry_is_not_a_warning_and_after_an_outage_not_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """After an outage all informers expire at once."""
        caplog.set_level(logging.INFO)
        gone = error_event(410, "Gone")
        server = Scripted(
            [page(version=1)] * 3, [[6.0, gone], [20.0, TransportError("cut")], [gone], FOREVER]
        )
        await run_for(reflector(server), 60)
        assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
            ("INFO", "scripted pods at 1: 410 Gone: no message"),
            ("WARNING", "scripted pods at 1: cut"),
        ]

    @virtual_time
    async def test_healthy_run_is_logged_at_debug_without_its_events(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        lists: list[ListAnswer] = [page(added("a", 1).object, version=1, token="more"), page(version=1)]
        first: list[Step] = [6.0, added("b", 2), added("c", 3)]
        second: list[Step] = [6.0, error_event(410, "Gone")]
        await run_for(reflector(Scripted([*lists, 2.0, page(version=5)], [first, second])), 30)
        lines = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
        assert [line for line in lines if line.startswith("scripted pods: ")] == [
            "scripted pods: listed 1 objects at 1 in 2 pages, 0.0 s",
            "scripted pods: watching from 1",
            "scripted pods: the watch ended after 6.0 s and 2 events: watch again at once",
            "scripted pods: watching from 3",
            "scripted pods: the watch ended after 6.0 s and 0 events: list again",
            "scripted pods: listed 0 objects at 5 in 1 pages, 2.0 s",
            "scripted pods: watching from 5",
        ]

    @virtual_time
    async def test_streamed_list_is_logged_at_debug(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        server = Scripted(
            watches=[[3.0, added("a", 1), closing_bookmark(2), FOREVER]], watch_list_semantics=True
        )
        await run_for(reflector(server), 10)
        assert caplog.messages == [
            "scripted pods: reading the list as a stream",
            "scripted pods: streamed 1 objects at 2 in 3.0 s",
            "scripted pods: watching from 2",
        ]

    @virtual_time
    async def test_errors_without_a_message_are_logged_by_type(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        await run_for(reflector(Scripted([ValueError(), LookupError()])), 10)
        messages = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert messages == [
            "scripted pods: ValueError()",
            "scripted pods: LookupError()",
        ]


class TestState:
    def test_state_before_the_start_works_outside_a_loop(self) -> None:
        state = reflector(Scripted()).state
        assert state.phase is Phase.NEW
        assert str(state) == "scripted pods: new for 0.0 s, nothing read yet"
        assert repr(reflector(Scripted())) == "<Reflector scripted pods>"

    @virtual_time
    async def test_state_during_an_outage(self) -> None:
        server = Scripted(
            [5.0, page(version=1), TransportError("refused"), page(version=2)],
            [[20.0, added("a", 7), error_event(410, "Gone")], [10.0, added("b", 8), FOREVER]],
        )
        subject = reflector(server)
        task = asyncio.create_task(subject.run())
        await asyncio.sleep(2)
        assert str(subject.state) == "scripted pods: listing for 2.0 s, nothing read yet"
        await asyncio.sleep(13)
        assert str(subject.state) == "scripted pods: watching for 10.0 s, last byte 10.0 s ago"
        await asyncio.sleep(11)
        # Gone at 25, backed off 0.8 s, refused at 25.8, backing off until 27.4.
        state = subject.state
        assert state.phase is Phase.BACKING_OFF
        assert str(state) == (
            "scripted pods: backing off for 0.2 s, next try in 1.4 s, last byte 1.0 s ago; last error: refused"
        )
        await asyncio.sleep(4)
        assert subject.state.phase is Phase.WATCHING
        assert str(subject.state.last_error) == "refused"
        await asyncio.sleep(20)
        assert subject.state.last_error is None
        assert (subject.state.lists, subject.state.watches, subject.state.events) == (3, 2, 3)
        task.cancel()
        await asyncio.wait({task})
        assert str(subject.state).startswith("scripted pods: stopped for 0.0 s")

    @virtual_time
    async def test_healthy_silent_watch_clears_the_last_error(self) -> None:
        """The server's own timeout is not an error, and neither is the time between two watches."""
        lists: list[ListAnswer] = [TransportError("refused"), page(version=1)]
        subject = reflector(Scripted(lists, [[3.0, TransportError("cut")], [3.0], FOREVER]))
        async with run_during(subject.run()):
            await asyncio.sleep(3)
            assert str(subject.state.last_error) == "refused"
            await asyncio.sleep(2)
            assert str(subject.state.last_error) == "cut"
            await asyncio.sleep(30)
            assert (subject.state.watches, str(subject.state.last_error)) == (3, "cut")
        subject = reflector(Scripted(lists))
        async with run_during(subject.run()):
            await asyncio.sleep(5.7)
            assert str(subject.state.last_error) == "refused"
            await asyncio.sleep(0.2)
            assert subject.state.last_error is None

    @virtual_time
    async def test_failed_resync_is_the_last_error(self) -> None:
        class NoResync(RecordingStore):
            async def resync(self) -> None:
                raise ValueError("no")

        subject = reflector(Scripted([page(version=1), FOREVER]), NoResync(), resync_period=60)
        async with run_during(subject.run()):
            await asyncio.sleep(70)
            assert str(subject.state.last_error) == "no"

    def test_state_after_the_end_works_outside_a_loop(self) -> None:
        subject = reflector(Scripted([page(version=1)]))
        run(run_for(subject, 10))
        assert subject.state.phase is Phase.STOPPED
        assert "stopped" in str(subject.state)
        assert subject.state.idle_seconds is not None
        assert subject.state.idle_seconds >= 0

    def test_name_is_the_description_or_the_option(self) -> None:
        assert reflector(Scripted(), name="mine").name == "mine"


@virtual_time
async def test_abandoned_pages_do_not_count_as_listed() -> None:
    server = Scripted(
        [
            page(raw_pod("a"), version=1, token="t"),
            expired_error(),
            page(raw_pod("a"), raw_pod("b"), version=3),
        ]
    )
    subject = reflector(server, page_size=1)
    await run_for(subject, 5)
    assert subject.state.listed == 2


class TestIdleSeconds:
    @pytest.mark.parametrize("streams", [False, True], ids=["lists", "streams"])
    @virtual_time
    async def test_watch_with_only_an_error_does_not_reset_idle_seconds(self, streams: bool) -> None:
        """As with a broken conversion webhook: lists are refused, and watches start without an error."""
        broken = error_event(*((500, "InternalError") if streams else (429, "TooManyRequests")))
        first: list[Step] = [added("a", 1), closing_bookmark(1), 1.0, broken] if streams else [1.0, broken]
        lists: list[ListAnswer] = [] if streams else [page(version=1)]
        server = Scripted(
            [*lists, *[OSError("no")] * 99], [first, *[[broken]] * 99], watch_list_semantics=streams
        )
        subject = reflector(server)
        async with run_during(subject.run()):
            await asyncio.sleep(100)
            assert len(server.watches) > 3
            assert subject.state.idle_seconds == pytest.approx(100, abs=1)

    @pytest.mark.parametrize("end", [None, TransportError("cut")], ids=["closed", "cut"])
    @virtual_time
    async def test_short_answered_watches_reset_idle_seconds(self, end: Exception | None) -> None:
        """As behind a proxy that ends each after three seconds: the server answers, and no event is lost."""
        steps: list[Step] = [3.0] if end is None else [3.0, end]
        server = Scripted([page(version=1)], [steps] * 999)
        subject = reflector(server)
        async with run_during(subject.run()):
            await asyncio.sleep(1000)
            assert subject.state.idle_seconds is not None
            assert subject.state.idle_seconds < 60
        assert len(server.watches) > 30

    @virtual_time
    async def test_answer_of_a_silent_watch_resets_idle_seconds_once_healthy(self) -> None:
        server = Scripted([page(version=1)], [[300.0], [300.0], [2.0, added("a", 2), FOREVER]])
        subject = reflector(server)
        async with run_during(subject.run()):
            for seconds, idle in ((304, 304), (2, 6), (293, 299), (2, 301), (2, 1)):
                await asyncio.sleep(seconds)
                assert subject.state.idle_seconds == pytest.approx(idle)
