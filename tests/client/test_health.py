"""health.py: one probe of an unreachable server for all readers."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

import pytest

from aioinformer import ApiError, Client, ListOptions, ListWatch, TransportError
from aioinformer._core.tasks import finish
from aioinformer.client.health import PATH, ServerHealth
from aioinformer.errors import ClientClosedError, DamagedError, IdleTimeoutError

from ..steps import turns
from ..virtual_time import run, virtual_time
from .transports import REFUSED, SERVER, Server

UNAUTHORIZED = ApiError(401, "Unauthorized")


def start_waiters(health: ServerHealth, count: int, error: Exception = REFUSED) -> list[asyncio.Task[bool]]:
    return [asyncio.create_task(health.until_reachable(error)) for _ in range(count)]


@virtual_time
async def test_server_that_answers_is_probed_once_for_all_readers() -> None:
    """After a pause: a reader has just sent a request."""
    server = Server()
    began = asyncio.get_running_loop().time()
    assert await asyncio.gather(*start_waiters(ServerHealth(server), 5)) == [False] * 5
    assert [path for path, _ in server.asked] == [PATH]
    assert 0.8 <= server.asked[0][1] - began <= 1.0


@virtual_time
async def test_unreachable_server_is_probed_with_growing_pauses() -> None:
    """Pauses of 1, 2, 4 and 6 seconds, then a tenth of the outage's duration, up to 30 seconds."""
    server = Server([REFUSED] * 60)
    tasks = start_waiters(ServerHealth(server, Random(1)), 5)
    began = asyncio.get_running_loop().time()
    assert await asyncio.gather(*tasks) == [True] * 5
    times = [0.0, *(time - began for _, time in server.asked)]
    assert len(times) == 62
    for number, (earlier, later) in enumerate(pairwise(times)):
        longest = [1.0, 2.0, 4.0][number] if number < 3 else min(max(6.0, earlier / 10), 30.0)
        assert 0.8 * longest - 1e-6 <= later - earlier <= longest + 1e-6
    assert sum(time < 60 for time in times[1:]) <= 14
    assert sum(time < 600 for time in times[1:]) <= 45


@virtual_time
async def test_all_readers_continue_when_the_server_is_back() -> None:
    server, loop = Server(), asyncio.get_running_loop()
    server.goes_away()
    tasks = start_waiters(ServerHealth(server), 5)
    await asyncio.sleep(60)
    assert not any(task.done() for task in tasks)
    assert len(server.asked) < 15
    server.comes_back()
    back = loop.time()
    await asyncio.gather(*tasks)
    assert loop.time() - back <= 6.0


@pytest.mark.parametrize("outage", [10, 20, 40, 60])
def test_median_recovery_is_within_four_seconds(outage: float) -> None:
    """After outages of up to a minute; docs/client.md has the figures."""

    async def away_for(seconds: float, seed: int) -> float:
        server, loop = Server(), asyncio.get_running_loop()
        server.goes_away()
        (task,) = start_waiters(ServerHealth(server, Random(seed)), 1)
        await asyncio.sleep(seconds)
        server.comes_back()
        back = loop.time()
        await task
        return loop.time() - back

    assert median(run(away_for(outage + seed / 50, seed)) for seed in range(200)) < 4.0


@virtual_time
async def test_probe_without_answer_is_repeated_after_five_seconds() -> None:
    server = Server([None, None, None])
    await asyncio.gather(*start_waiters(ServerHealth(server), 2))
    pauses = [later - earlier for earlier, later in pairwise(server.times())]
    assert all(5.0 <= pause <= 6.0 for pause in pauses)
    assert len(pauses) == 3
    assert not server.asking


@virtual_time
async def test_next_reader_probes_when_the_first_is_cancelled() -> None:
    """While it probes or pauses; the next reader continues, and no request remains."""
    server = Server(then=None)
    tasks = start_waiters(ServerHealth(server), 3)
    await asyncio.sleep(2)
    assert server.asking == 1
    await finish(tasks[0])
    await turns(5)
    assert server.asking == 0
    await asyncio.sleep(6)
    assert server.asking == 1
    server.goes_away()
    await asyncio.sleep(60)
    before = len(server.asked)
    await finish(tasks[1])
    await turns(5)
    assert len(server.asked) == before
    server.comes_back()
    await tasks[2]
    assert not server.asking


@virtual_time
async def test_no_probe_while_no_reader_waits() -> None:
    server = Server(then=REFUSED)
    await finish(*start_waiters(ServerHealth(server), 3))
    await asyncio.sleep(10)
    before = len(server.asked)
    await asyncio.sleep(600)
    assert len(server.asked) == before


@pytest.mark.parametrize("status", [401, 403, 404, 405, 410, 429])
@virtual_time
async def test_any_other_status_ends_the_outage(status: int) -> None:
    server = Server(then=ApiError(status))
    await ServerHealth(server).until_reachable(REFUSED)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@virtual_time
async def test_readers_wait_for_an_unready_server(status: int) -> None:
    server = Server([ApiError(status)] * 3)
    await ServerHealth(server).until_reachable(REFUSED)
    assert len(server.asked) == 4


@virtual_time
async def test_server_that_begins_to_answer_is_probed_more_often() -> None:
    server = Server([*[REFUSED] * 6, *[ApiError(500)] * 3])
    await ServerHealth(server, Random(1)).until_reachable(REFUSED)
    pauses = [later - earlier for earlier, later in pairwise(server.times())]
    assert all(pause > 4 for pause in pauses[3:6])
    assert all(pause <= longest for pause, longest in zip(pauses[6:], [1, 2, 4], strict=True))


class TestServerThatIsUnreadyForLong:
    """A server that shuts down can be unready for minutes while it serves other requests."""

    @virtual_time
    async def test_readers_return_one_after_the_other(self) -> None:
        server, loop = Server(then=ApiError(500)), asyncio.get_running_loop()
        began = loop.time()
        tasks = start_waiters(ServerHealth(server, Random(1)), 4)
        ends: list[float] = []
        for task in tasks:
            assert await task
            ends.append(loop.time() - began)
        assert 10 <= ends[0] <= 20
        assert all(4 <= later - earlier <= 7 for earlier, later in pairwise(ends))
        assert not server.asking

    @virtual_time
    async def test_answer_to_a_returned_reader_ends_the_wait_of_all(self) -> None:
        server, loop = Server(then=ApiError(500)), asyncio.get_running_loop()
        client = Client(server)
        began = loop.time()
        tasks = start_waiters(client.health, 100)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert sum(task.done() for task in tasks) == 1
        server.comes_back()
        await client.get("/api/v1/pods")
        await asyncio.gather(*tasks)
        assert loop.time() - began <= 20

    @virtual_time
    async def test_ten_seconds_count_again_after_each_connection_error(self) -> None:
        server = Server(answer for _ in range(20) for answer in (*[REFUSED] * 3, ApiError(500)))
        await asyncio.gather(*start_waiters(ServerHealth(server), 3))
        assert len(server.asked) == 81

    @pytest.mark.parametrize("status", [502, 503, 504])
    @virtual_time
    async def test_gateway_error_keeps_readers_waiting(self, status: int) -> None:
        (task,) = start_waiters(ServerHealth(Server(then=ApiError(status))), 1)
        await asyncio.sleep(600)
        assert not task.done()
        await finish(task)


@pytest.mark.parametrize("error", [ClientClosedError("the client is closed"), ZeroDivisionError("a bug")])
@virtual_time
async def test_error_other_than_an_outage_ends_the_wait(error: Exception) -> None:
    """The waiting readers get the same error from their next request."""
    server = Server(then=error)
    await asyncio.gather(*start_waiters(ServerHealth(server), 3))
    assert len(server.asked) == 1


@virtual_time
async def test_answer_to_any_request_ends_the_wait() -> None:
    server = Server([REFUSED] * 6, then=b"{}")
    client = Client(server)
    task = asyncio.create_task(client.health.until_reachable(REFUSED))
    await asyncio.sleep(5)
    assert not task.done()
    server.comes_back()
    asked, now = len(server.asked), asyncio.get_running_loop().time()
    await client.get("/api/v1/pods")
    await task
    assert asyncio.get_running_loop().time() == now
    assert len(server.asked) == asked + 1


@pytest.mark.parametrize("error", [REFUSED, ApiError(500)])
@virtual_time
async def test_failed_request_does_not_end_the_wait(error: Exception) -> None:
    server = Server(then=error)
    client = Client(server)
    task = asyncio.create_task(client.health.until_reachable(REFUSED))
    await asyncio.sleep(4)
    with pytest.raises(type(error)):
        await client.stream("/api/v1/pods")
    await turns(5)
    assert not task.done()
    await finish(task)


def test_which_errors_affect_all_readers() -> None:
    health = ServerHealth(Server())
    yes = [
        REFUSED,
        IdleTimeoutError("silent"),
        ApiError(502),
        ApiError(503, "ServiceUnavailable"),
        ApiError(504),
        UNAUTHORIZED,
    ]
    no = [
        DamagedError("a bit was turned"),
        ApiError(500, "InternalError"),
        ApiError(429),
        ApiError(410),
        ApiError(403),
        ApiError(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
        OSError("of a user's function"),
    ]
    assert [health.concerns(error) for error in yes] == [True] * len(yes)
    assert [health.concerns(error) for error in no] == [False] * len(no)


@virtual_time
async def test_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    health = ServerHealth(Server([TransportError(f"{SERVER}: refused")] * 5), Random(1))
    for _ in range(2):
        await asyncio.gather(*start_waiters(health, 5))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "https://server cannot be reached: refused"),
        ("INFO", "https://server: reachable again after 22.4 s"),
    ]


@pytest.mark.parametrize(
    ("message", "is_logged"),
    [
        (
            "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]shutdown failed: reason withheld\n"
            "readyz check failed\n",
            "[-]etcd failed: reason withheld; [-]shutdown failed: reason withheld",
        ),
        ("context deadline exceeded", "500 InternalError: context deadline exceeded"),
    ],
    ids=["by its checks", "in other words"],
)
@virtual_time
async def test_unready_server_is_logged_with_its_failed_checks(
    caplog: pytest.LogCaptureFixture, message: str, is_logged: str
) -> None:
    caplog.set_level(logging.WARNING)
    health = ServerHealth(Server([ApiError(500, "InternalError", message)]))
    await asyncio.gather(*start_waiters(health, 5))
    assert caplog.messages == [f"https://server is not ready: {is_logged}"]


@virtual_time
async def test_first_of_equal_errors_is_logged_until_an_answer_comes() -> None:
    client = Client(Server())
    health = client.health
    assert [health.record_error(REFUSED) for _ in range(3)] == [True, False, False]
    assert health.record_error(IdleTimeoutError("silent"))
    assert health.record_error(ApiError(500))
    assert health.record_error(ApiError(500))
    await client.get("/api")
    assert health.record_error(REFUSED)


class TestRefusedCredentials:
    """After a 401 all readers wait for new credentials."""

    @virtual_time
    async def test_one_reader_probes_until_credentials_are_accepted(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        server = Server([UNAUTHORIZED] * 3)
        health = ServerHealth(server, Random(1))
        assert await asyncio.gather(*start_waiters(health, 5, UNAUTHORIZED)) == [True] * 5
        assert len(server.asked) == 4
        said = [(record.levelname, record.getMessage()) for record in caplog.records]
        assert [level for level, _ in said] == ["WARNING", "INFO"]
        assert said[0][1].startswith("https://server does not accept the credentials: 401 Unauthorized")
        assert said[1][1].startswith("https://server: accepts the credentials again after ")

    @virtual_time
    async def test_accepted_request_ends_the_wait_and_another_401_does_not(self) -> None:
        server = Server(then=UNAUTHORIZED)
        client = Client(server)
        (task,) = start_waiters(client.health, 1, UNAUTHORIZED)
        with pytest.raises(ApiError):
            await client.get("/api")
        await turns(5)
        assert not task.done()
        server.comes_back()
        await client.get("/api")
        assert not await task

    @virtual_time
    async def test_first_401_is_logged_until_credentials_are_accepted(self) -> None:
        """Only the first of several 401 errors is logged."""
        server = Server(then=UNAUTHORIZED)
        client = Client(server)
        logged: list[bool] = []
        for _ in range(3):
            with pytest.raises(ApiError):
                await client.get("/api")
            logged.append(client.health.record_error(UNAUTHORIZED))
        assert logged == [True, False, False]
        server.comes_back()
        await client.get("/api")
        assert client.health.record_error(UNAUTHORIZED)

    @virtual_time
    async def test_401_is_not_an_outage(self) -> None:
        """A 401 ends the wait for the server, but not the wait for accepted credentials."""
        server = Server(then=UNAUTHORIZED)
        health = ServerHealth(server)
        (refused,) = start_waiters(health, 1, UNAUTHORIZED)
        (away,) = start_waiters(health, 1)
        assert not await away
        assert not refused.done()
        await finish(refused)


class TestReopeningStreams:
    """After a cut all streams reopen at once: the outcome of the first request decides for the others."""

    @virtual_time
    async def test_failure_of_the_first_request_fails_all(self) -> None:
        server = Server(then=REFUSED)
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        outcomes = await asyncio.gather(
            *(client.stream(f"/{number}") for number in range(5)), return_exceptions=True
        )
        assert [(type(outcome), str(outcome)) for outcome in outcomes] == [(TransportError, "refused")] * 5
        assert len(server.asked) == 1

    @virtual_time
    async def test_each_error_names_its_own_request(self) -> None:
        server = Server(then=TransportError("refused"))
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        watches = [ListWatch.for_resource(client, "v1", plural).watch for plural in ("pods", "nodes")]
        outcomes = await asyncio.gather(*(watch(ListOptions()) for watch in watches), return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["watch pods: refused", "watch nodes: refused"]
        assert len(server.asked) == 1

    @virtual_time
    async def test_all_requests_are_sent_when_the_first_succeeds(self) -> None:
        server = Server()
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(client.stream(f"/{number}") for number in range(5)))
        assert [path for path, _ in server.asked] == ["/0", "/1", "/2", "/3", "/4"]
        assert asyncio.get_running_loop().time() == began

    @pytest.mark.parametrize("error", [ApiError(410, "Gone"), ApiError(500), ValueError("a bug")])
    @virtual_time
    async def test_error_of_the_first_request_alone_is_not_shared(self, error: Exception) -> None:
        server = Server([error])
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        outcomes = await asyncio.gather(
            *(client.stream(f"/{number}") for number in range(5)), return_exceptions=True
        )
        assert outcomes[0] is error
        assert not any(isinstance(outcome, BaseException) for outcome in outcomes[1:])

    @virtual_time
    async def test_others_wait_for_the_first_request_for_one_second(self) -> None:
        server = Server([None])
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        first = asyncio.create_task(client.stream("/0"))
        await turns(3)
        began = asyncio.get_running_loop().time()
        await client.stream("/1")
        assert asyncio.get_running_loop().time() - began == pytest.approx(1.0)
        await finish(first)

    @virtual_time
    async def test_cancelled_first_request_lets_the_others_continue(self) -> None:
        server = Server([None])
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        tasks = [asyncio.create_task(client.stream(f"/{number}")) for number in range(5)]
        await turns(3)
        await finish(tasks[0])
        await asyncio.gather(*tasks[1:])
        assert len(server.asked) == 5

    @virtual_time
    async def test_waiting_requests_can_be_cancelled(self) -> None:
        server = Server([None])
        client = Client(server)
        client.health.record_error(TransportError("cut"))
        tasks = [asyncio.create_task(client.stream(f"/{number}")) for number in range(3)]
        await turns(3)
        await finish(tasks[1])
        server.goes_away()
        await finish(tasks[0])
        with pytest.raises(TransportError):
            await tasks[2]
        assert [path for path, _ in server.asked] == ["/0", "/2"]

    @virtual_time
    async def test_no_request_waits_without_a_failure_before(self) -> None:
        server = Server([None])
        client = Client(server)
        client.health.record_error(DamagedError("a bit was turned"))
        first = asyncio.create_task(client.stream("/0"))
        await turns(3)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await client.stream("/1")
        assert loop.time() == began
        await finish(first)


@virtual_time
async def test_forbidden_readers_continue_when_a_request_is_accepted() -> None:
    health = ServerHealth(Server())
    tasks = [asyncio.create_task(health.until_accepted()) for _ in range(3)]
    await turns(3)
    await finish(tasks[0])
    health.record_accepted()
    await asyncio.gather(*tasks[1:])
    health.record_accepted()


def test_outage_of_another_event_loop_is_ignored() -> None:
    """A wrapped ApiClient may be used in several event loops, one after the other."""
    health = ServerHealth(Server([REFUSED] * 3))

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.gather(*start_waiters(health, 2))

    asyncio.run(give_up())
    run(health.until_reachable(REFUSED))


async def test_readers_of_one_client_share_its_health() -> None:
    client = Client(Server())
    pods, secrets = (ListWatch.for_resource(client, "v1", plural) for plural in ("pods", "secrets"))
    assert pods.health is secrets.health is client.health

    async def nothing(options: object) -> Any: ...

    assert ListWatch(nothing, nothing).health is None
