"""Retry: readers of a server wait out its outage together, and back off alone from other errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from random import Random

import pytest

from aioinformer.client.health import ServerHealth
from aioinformer.errors import ApiError, IdleTimeoutError, TransportError
from aioinformer.objects.meta import ListOptions
from aioinformer.reflector import Backoff, Phase
from aioinformer.reflector.retry import Retry

from ..client.transports import REFUSED, Server
from ..steps import run_during
from ..virtual_time import virtual_time
from .running import Errors, reflector, run_for
from .scripted import FOREVER, ListAnswer, Scripted, Step, Stream, closing_bookmark, page, too_many_requests

CUT = TransportError("cut")

Lists = Iterable[ListAnswer]
Watches = Iterable[Stream | Sequence[Step] | Exception | None]


class ScriptedCollection(Scripted):
    """A ListerWatcher that shares its server's health, and whose watches are refused while the server is away.

    Attributes:
        unwatchable: How.
    """

    unwatchable: Exception = REFUSED

    def __init__(self, server: Server, health: ServerHealth, lists: Lists, watches: Watches = ()) -> None:
        super().__init__(lists, watches)
        self.health = health
        self._server = server

    async def watch(self, options: ListOptions) -> Stream:
        if self._server.is_there:
            return await super().watch(options)
        self._note("watch", options)
        raise self.unwatchable


def of_server(server: Server, lists: Lists, watches: Watches = ()) -> ScriptedCollection:
    return ScriptedCollection(server, ServerHealth(server, Random(0)), lists, watches)


@virtual_time
async def test_answer_since_the_error_means_no_outage() -> None:
    server = Server()
    retry = Retry(Backoff(Random(0)), ServerHealth(server, Random(0)))
    retry.record_failure(IdleTimeoutError("the stream has no closing bookmark"))
    retry.record_success()  # the list in its place
    await retry.wait()
    assert not server.asked


@virtual_time
async def test_all_readers_return_within_a_second_after_the_probe(caplog: pytest.LogCaptureFixture) -> None:
    """Each reader fails once; then a single probe asks for all."""
    caplog.set_level(logging.INFO)
    server = Server()
    health = ServerHealth(server, Random(0))
    collections = [ScriptedCollection(server, health, [page(version=10)], [[100.0, CUT]]) for _ in range(5)]
    subjects = [reflector(collection, random=Random(seed)) for seed, collection in enumerate(collections)]
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(subject.run()) for subject in subjects]
        await asyncio.sleep(99)
        server.goes_away()
        await asyncio.sleep(60)
        assert {subject.state.phase for subject in subjects} == {Phase.BACKING_OFF}
        assert [len(collection.calls) for collection in collections] == [
            3
        ] * 5  # a list, a watch, and one that was refused
        assert len(server.asked) < 15
        server.comes_back()
        back = loop.time()
        await asyncio.sleep(8)
        late = [collection.calls[-1][2] - back for collection in collections]
        assert 0 <= min(late) < max(late) <= 7.0
        assert 0.2 < max(late) - min(late) <= 1.0
        assert {subject.state.phase for subject in subjects} == {Phase.WATCHING}
        for task in tasks:
            task.cancel()
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "WARNING", "INFO"]
    assert said[0][1] == "scripted pods at 10: cut"
    assert said[1][1] == "https://server cannot be reached: refused"
    assert said[2][1].startswith("https://server: reachable again after 6")


@virtual_time
async def test_each_reader_also_tries_itself_after_a_while() -> None:
    """The probe may be wrong, for example behind a gateway that does not forward it."""
    server = Server(then=ApiError(503))
    collection = of_server(server, [page(version=10)], [[10.0, CUT], CUT, CUT, CUT])
    await run_for(reflector(collection, random=Random(3)), 600)
    waits = collection.delays()[3:]
    assert len(waits) == 2
    assert all(60 <= wait <= 121 for wait in waits)


@virtual_time
async def test_server_that_answers_although_not_ready_is_used() -> None:
    collection = of_server(Server(then=ApiError(500)), [page(version=10)], [[100.0, CUT], REFUSED])
    await run_for(reflector(collection), 130)
    assert len(collection.streams) == 2
    assert 10 <= collection.delays()[-1] <= 20


@virtual_time
async def test_error_that_is_not_an_outage_backs_off_alone() -> None:
    server = Server()
    lists: list[ListAnswer] = [ApiError(500), ApiError(403), too_many_requests(), ValueError("of a function")]
    collection = of_server(server, lists)
    await run_for(reflector(collection), 60)
    assert collection.delays() == pytest.approx([0.8, 1.6, 3.2, 6.4])
    assert not server.asked


@virtual_time
async def test_delays_grow_if_the_server_answers_the_probe() -> None:
    server = Server()
    collection = of_server(server, [CUT] * 5)
    await run_for(reflector(collection), 60)
    asked = [round(time - collection.calls[0][2], 1) for _, time in server.asked[:1]]
    assert collection.delays() == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8], abs=0.2)
    assert asked == pytest.approx([0.9], abs=0.1)
    assert len(server.asked) == 5


@virtual_time
async def test_outage_does_not_lengthen_the_backoff() -> None:
    """The next delay is the shortest, but Retry-After is kept."""
    server = Server()
    watches: Watches = [[100.0, CUT], too_many_requests(), too_many_requests(7)]
    collection = of_server(server, [page(version=10)], watches)
    errors = Errors()
    async with run_during(reflector(collection, watch_error_handler=errors).run()):
        await asyncio.sleep(99)
        server.goes_away()
        await asyncio.sleep(300)
        server.comes_back()
        await asyncio.sleep(30)
        assert collection.delays()[-2:] == pytest.approx([0.8, 7])
        assert errors.errors[:2] == [CUT, REFUSED]


@virtual_time
async def test_broken_stream_does_not_start_a_probe() -> None:
    """The next request may."""
    server = Server()
    collection = of_server(server, [page(version=10)], [[2.0, CUT], [2.0, CUT]])
    await run_for(reflector(collection), 60)
    assert collection.delays() == pytest.approx([0, 2.0, 2.0])
    assert not server.asked


class TestRefused:
    """401, 403, 404: the server is healthy, and a person has to fix the cause."""

    @pytest.mark.parametrize("status", [401, 403, 404])
    @virtual_time
    async def test_delays_after_refusals_are_shorter(self, status: int) -> None:
        collection = Scripted([ApiError(status)] * 200)
        await run_for(reflector(collection, random=Random(1)), 3600)
        delays = collection.delays()
        times = [time - collection.calls[0][2] for _, _, time in collection.calls]
        assert sum(time <= 60 for time in times) <= 10
        assert all(delay <= max(12, time / 5) for delay, time in zip(delays, times, strict=False))
        assert all(15 <= delay <= 30 for delay in delays[20:])

    @virtual_time
    async def test_each_attempt_is_one_request(self) -> None:
        """After a refused stream, a list is tried from time to time, in case it is allowed."""
        watches = [ApiError(403)] * 4
        collection = Scripted([ApiError(403), page(version=10)], watches, watch_list_semantics=True)
        await run_for(reflector(collection), 60)
        stream, listed = ("watch", ""), ("list", "0")
        assert collection.versions() == [
            stream, listed, stream, stream, stream, listed, ("watch", "10"),
        ]  # fmt: skip
        assert collection.delays() == pytest.approx([0.8, 1.6, 3.2, 6, 6, 0])

    @virtual_time
    async def test_user_allowed_to_list_but_not_to_watch_gets_lists(self) -> None:
        watches = [ApiError(403)] * 100
        collection = Scripted([page(version=10)] * 100, watches, watch_list_semantics=True)
        await run_for(reflector(collection), 60)
        stream, watch = ("watch", "10"), ("watch", "10")
        assert collection.versions()[:8] == [
            ("watch", ""), ("list", "0"), watch, stream, ("list", "10"), watch, stream, ("list", "10"),
        ]  # fmt: skip

    @pytest.mark.parametrize("streams", [False, True])
    @virtual_time
    async def test_readers_that_may_list_but_not_watch_retry_rarely(self, streams: bool) -> None:
        """An answered list does not wake the other readers; an opened watch does."""
        server, loop = Server(), asyncio.get_running_loop()
        server.goes_away()
        health = ServerHealth(server, Random(0))
        stream: Sequence[Step] = [closing_bookmark(10), FOREVER]
        collections = [
            ScriptedCollection(server, health, [page(version=10)] * 1000, [stream]) for _ in range(10)
        ]
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            for seed, collection in enumerate(collections):
                collection.watch_list_semantics, collection.unwatchable = streams, ApiError(403)
                tasks.append(group.create_task(reflector(collection, random=Random(seed)).run()))
            await asyncio.sleep(3600)
            for collection in collections:
                assert sum(time - collection.calls[0][2] <= 60 for _, _, time in collection.calls) <= 20
                assert all(15 <= delay <= 30 for delay in collection.delays()[60:] if delay)
            server.comes_back()
            back = loop.time()
            await asyncio.sleep(40)
            opened = [collection.calls[-1][2] - back for collection in collections]
            assert max(opened) - min(opened) <= 1.0
            assert max(opened) <= 5.0  # ten ask twice a minute and more
            for task in tasks:
                task.cancel()
        assert [len(collection.streams) for collection in collections] == [1] * 10

    @virtual_time
    async def test_accepted_watch_makes_all_refused_readers_retry(self) -> None:
        server = Server()
        health = ServerHealth(server, Random(0))
        first = ScriptedCollection(server, health, [ApiError(403)] * 4 + [page(version=10)])
        others = [
            ScriptedCollection(server, health, [ApiError(403)] * 5 + [page(version=10)]) for _ in range(3)
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(reflector(collection, random=Random(2)).run())
                for collection in (first, *others)
            ]
            await asyncio.sleep(60)
            for task in tasks:
                task.cancel()
        accepted = first.calls[4][2]
        assert all(len(collection.lists) == 6 for collection in others)
        for collection in others:
            assert 0 <= collection.calls[5][2] - max(accepted, collection.calls[4][2]) <= 1.0
        assert not server.asked

    @virtual_time
    async def test_rejected_credentials_are_probed_once_for_all_readers(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        server = Server([ApiError(401)] * 8)
        health = ServerHealth(server, Random(0))
        collections = [
            ScriptedCollection(server, health, [ApiError(401), page(version=10)]) for _ in range(5)
        ]
        subjects = [reflector(collection, random=Random(seed)) for seed, collection in enumerate(collections)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(subject.run()) for subject in subjects]
            await asyncio.sleep(10)
            assert "until https://server accepts the credentials" in str(subjects[0].state)
            await asyncio.sleep(50)
            assert {subject.state.phase for subject in subjects} == {Phase.WATCHING}
            for task in tasks:
                task.cancel()
        assert len(server.asked) == 9
        assert [len(collection.lists) for collection in collections] == [2] * 5
        assert [(record.levelname, record.name.rpartition(".")[2]) for record in caplog.records] == [
            ("WARNING", "stats"),
            ("WARNING", "health"),
            ("INFO", "health"),
        ]

    @virtual_time
    async def test_accepted_probe_but_refused_requests_back_off_alone(self) -> None:
        server = Server()
        collection = of_server(server, [ApiError(401)] * 20)
        await run_for(reflector(collection), 60)
        assert collection.delays()[:4] == pytest.approx([0.8, 1.6, 3.2, 6], abs=0.2)
        assert len(collection.lists) <= 13


@virtual_time
async def test_flapping_server_is_asked_less_and_less_often() -> None:
    """Each time only the probe succeeds."""
    server = Server(answer for _ in range(1000) for answer in (REFUSED, b"ok"))
    collection = of_server(server, [CUT] * 1000)
    await run_for(reflector(collection), 600)
    assert len(collection.lists) < 30


@virtual_time
async def test_state_names_the_server_that_is_waited_for() -> None:
    server = Server()
    collection = of_server(server, [page(version=10)], [[100.0, CUT]])
    subject = reflector(collection)
    async with run_during(subject.run()):
        await asyncio.sleep(99)
        server.goes_away()
        await asyncio.sleep(11)
        assert subject.state.waiting_for == "https://server"
        assert str(subject.state) == (
            "scripted pods: backing off for 10.0 s, until https://server answers, "
            "last byte 110.0 s ago; last error: refused"
        )
        unverified = TransportError("https://server: the certificate cannot be verified")
        server.answer = lambda: unverified
        await asyncio.sleep(10)
        assert subject.state.probe_error is unverified
        assert str(subject.state) == (
            "scripted pods: backing off for 20.0 s, until https://server answers (now: the certificate cannot be "
            "verified), last byte 120.0 s ago; last error: refused"
        )
        server.comes_back()
        await asyncio.sleep(10)
        assert subject.state.phase is Phase.WATCHING
        after = subject.state
        assert (after.waiting_for, after.probe_error) == (None, None)
