"""A collection that can be listed but not watched is polled by lists, and the state says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from aioinformer.errors import ApiError, IdleTimeoutError, TransportError
from aioinformer.reflector import Phase

from ..steps import run_during
from ..virtual_time import virtual_time
from .running import content, plain_store, reflector, run_for
from .scripted import FOREVER, ListAnswer, Scripted, Step, added, closing_bookmark, error_event, page

POLLING = "cannot watch: polling by list"


def forbidden() -> ApiError:
    return ApiError(403, "Forbidden", "alice may not watch pods")


def pages(count: int, version: str = "1") -> list[ListAnswer]:
    return [page(version=version) for _ in range(count)]


@virtual_time
async def test_state_says_polling_until_a_watch_is_open() -> None:
    server = Scripted([page(added("a", 1).object, version=1)] * 10, [forbidden()] * 3)
    subject = reflector(server)
    async with run_during(subject.run()):
        await asyncio.sleep(2)
        state = subject.state
        assert (state.phase, state.polling, str(state.watch_refusal)) == (
            Phase.BACKING_OFF,
            True,
            "403 Forbidden: alice may not watch pods",
        )
        assert str(state).startswith(f"scripted pods: {POLLING}, backing off for ")
        assert state.failed_watches == {"Forbidden": 2}
        await asyncio.sleep(60)
        state = subject.state
        assert (state.phase, state.polling, state.watch_refusal) == (Phase.WATCHING, False, None)
        assert POLLING not in str(state)


@virtual_time
async def test_polling_is_a_warning_at_once_and_every_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await run_for(reflector(Scripted(pages(1000), [forbidden()] * 1000)), 1500)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert len(said) == 3
    assert set(said) == {
        (
            "WARNING",
            f"scripted pods: {POLLING}, so changes arrive late: 403 Forbidden: alice may not watch pods. "
            "Allow the verb watch, and let proxies pass watches",
        )
    }


@virtual_time
async def test_polling_is_reported_with_streamed_lists_too(caplog: pytest.LogCaptureFixture) -> None:
    server = Scripted(pages(1000), [forbidden()] * 1000, watch_list_semantics=True)
    subject = reflector(server)
    async with run_during(subject.run()):
        await asyncio.sleep(60)
        assert subject.state.polling
    assert sum(POLLING in message for message in caplog.messages) == 1


@virtual_time
async def test_watches_that_end_at_once_count_as_polling(caplog: pytest.LogCaptureFixture) -> None:
    """As behind a proxy that blocks watches. The first may have been a cut."""
    watches: list[Sequence[Step]] = [[0.2]] * 100
    subject = reflector(Scripted(pages(1000), watches))
    async with run_during(subject.run()):
        await asyncio.sleep(0.5)
        assert (subject.state.phase, subject.state.polling) == (Phase.BACKING_OFF, False)
        await asyncio.sleep(20)
        assert (subject.state.phase, subject.state.polling) == (Phase.BACKING_OFF, True)
        await asyncio.sleep(700)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [POLLING in warning for warning in warnings] == [False, True]


@virtual_time
async def test_passing_error_is_not_polling() -> None:
    expired, failed = ApiError(410, "Expired"), ApiError(500, "InternalError")
    subject = reflector(Scripted(pages(10), [expired, expired, failed]))
    async with run_during(subject.run()):
        for _ in range(40):
            await asyncio.sleep(0.25)
            assert not subject.state.polling
        assert subject.state.failed_watches == {"Expired": 2, "InternalError": 1}


@virtual_time
async def test_outage_is_not_polling() -> None:
    lists: list[ListAnswer] = [page(version=1), TransportError("refused"), page(version=1)]
    subject = reflector(Scripted(lists, [forbidden()] * 10))
    async with run_during(subject.run()):
        await asyncio.sleep(0.5)
        assert subject.state.polling
        await asyncio.sleep(0.5)
        assert (str(subject.state.last_error), subject.state.polling) == ("refused", False)


@virtual_time
async def test_collection_without_versions_and_watches_is_listed_repeatedly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As metrics.k8s.io: client-go also lists it with backoff. No option could change that, so there is no warning."""
    caplog.set_level(logging.INFO)
    lists = [page(added(name, "").object, version="") for name in "abcdefghij"]
    refused = ApiError(405, "MethodNotAllowed", "watch is not supported")
    store = plain_store()
    subject = reflector(
        Scripted([*lists, *lists[-1:] * 100], [refused] * 100, watch_list_semantics=True), store
    )
    async with run_during(subject.run()):
        refusal = asyncio.ensure_future(subject.wait_refused())
        await asyncio.sleep(0.5)
        assert content(store) == {"default/a": ""}
        await asyncio.sleep(120)
        assert content(store) != {"default/a": ""}
        assert subject.state.polling
        assert 5 < subject.state.lists < 15
        await asyncio.sleep(1000)
        assert not refusal.done()  # a list was answered: fail_fast has nothing to raise
        refusal.cancel()
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert sum(POLLING in message for message in caplog.messages) == 1


@virtual_time
async def test_failures_are_counted_by_reason() -> None:
    lists: list[ListAnswer] = [
        TransportError("refused"),
        ApiError(403, "Forbidden"),
        ApiError(500, "an invented reason"),
        page(version=1),
        page(version=2),
    ]
    watches: list[Sequence[Step] | Exception] = [
        ApiError(429, "TooManyRequests"),
        [6.0, error_event(410, "Expired")],
        [10.0, TransportError("cut")],
    ]
    subject = reflector(Scripted(lists, watches))
    async with run_during(subject.run()):
        await asyncio.sleep(60)
        state = subject.state
    assert state.failed_lists == {"TransportError": 1, "Forbidden": 1, "500": 1}
    assert state.failed_watches == {"TooManyRequests": 1, "Expired": 1, "TransportError": 1}
    samples = {
        (sample.name, sample.labels["reason"]): sample.value
        for sample in state.samples()
        if "reason" in sample.labels
    }
    assert samples[("aioinformer_failed_lists_total", "Forbidden")] == 1
    assert samples[("aioinformer_failed_watches_total", "Expired")] == 1


@virtual_time
async def test_failed_resync_is_not_a_failed_request() -> None:
    class Failing:
        async def add(self, obj: object) -> None: ...
        async def update(self, obj: object) -> None: ...
        async def delete(self, obj: object) -> None: ...
        async def replace(self, objects: object, version: str) -> None: ...
        async def resync(self) -> None:
            raise ValueError("no")

    subject = reflector(Scripted(pages(10)), Failing(), resync_period=20.0)
    async with run_during(subject.run()):
        await asyncio.sleep(30)
        assert (subject.state.failed_lists, subject.state.failed_watches) == ({}, {})


@virtual_time
async def test_a_silent_stream_counts_as_a_failed_watch() -> None:
    watches: list[Sequence[Step]] = [[closing_bookmark(1), FOREVER]]
    subject = reflector(Scripted(pages(3), watches, watch_list_semantics=True), min_watch_timeout=60)
    async with run_during(subject.run()):
        await asyncio.sleep(100)
        assert subject.state.failed_watches == {IdleTimeoutError.__name__: 1}
