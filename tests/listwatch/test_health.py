"""Whether a server can be reached, asked once for all who wait for it."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from aioinformer import ApiError, Client, ClientClosedError, IdleTimeoutError, ListWatch, TransportError
from aioinformer.listwatch.health import PATH, ServerHealth
from aioinformer.tasks import finish

from ..steps import turns
from ..virtual_time import run, virtual_time
from .transports import REFUSED, SERVER, Server


def waiting(health: ServerHealth, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(health.until_reachable()) for _ in range(count)]


@virtual_time
async def test_a_server_that_answers_is_asked_once_for_all() -> None:
    server = Server()
    await asyncio.gather(*waiting(ServerHealth(server), 5))
    assert [path for path, _ in server.asked] == [PATH]


@virtual_time
async def test_while_it_is_away_one_asks_at_growing_pauses_of_at_most_three_seconds() -> None:
    server = Server([REFUSED] * 20)
    tasks = waiting(ServerHealth(server, Random(1)), 5)
    await asyncio.gather(*tasks)
    times = server.times()
    assert len(times) == 21
    pauses = [later - earlier for earlier, later in pairwise(times)]
    for pause, longest in zip(pauses, [0.4, 0.8, 1.6] + [3.0] * 17, strict=True):
        assert 0.8 * longest <= pause <= longest


@virtual_time
async def test_all_go_on_when_it_is_back() -> None:
    server, loop = Server(), asyncio.get_running_loop()
    server.goes_away()
    tasks = waiting(ServerHealth(server), 5)
    await asyncio.sleep(60)
    assert not any(task.done() for task in tasks)
    assert len(server.asked) < 30
    server.comes_back()
    back = loop.time()
    await asyncio.gather(*tasks)
    assert loop.time() - back <= 3.0


@virtual_time
async def test_a_server_that_never_answers_is_asked_again_after_five_seconds() -> None:
    server = Server([None, None, None])
    await asyncio.gather(*waiting(ServerHealth(server), 2))
    assert server.times() == pytest.approx([0, 5, 10, 15])
    assert not server.asking


@virtual_time
async def test_who_asks_for_all_may_be_cancelled() -> None:
    """Asking and pausing; the next one goes on where it was, and nothing stays behind."""
    server = Server(then=None)
    tasks = waiting(ServerHealth(server), 3)
    await asyncio.sleep(1)
    assert server.asking == 1
    await finish(tasks[0])
    await turns(5)
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
async def test_nothing_is_asked_when_nobody_waits() -> None:
    server = Server(then=REFUSED)
    await finish(*waiting(ServerHealth(server), 3))
    await asyncio.sleep(10)
    before = len(server.asked)
    await asyncio.sleep(600)
    assert len(server.asked) == before


@pytest.mark.parametrize("status", [401, 403, 404, 405, 410, 429])
@virtual_time
async def test_any_word_of_the_server_is_a_sign_of_life(status: int) -> None:
    server = Server(then=ApiError(status))
    await ServerHealth(server).until_reachable()
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@virtual_time
async def test_a_server_that_is_not_ready_is_waited_for(status: int) -> None:
    server = Server([ApiError(status)] * 3)
    await ServerHealth(server).until_reachable()
    assert len(server.asked) == 4


@virtual_time
async def test_one_that_begins_to_answer_is_asked_more_often_again() -> None:
    server = Server([*[REFUSED] * 6, *[ApiError(500)] * 3])
    await ServerHealth(server, Random(1)).until_reachable()
    pauses = [later - earlier for earlier, later in pairwise(server.times())]
    assert all(pause > 2 for pause in pauses[3:6])
    assert pauses[6] == pytest.approx(0.4)
    assert all(pause < 1 for pause in pauses[6:9])


@pytest.mark.parametrize("error", [ClientClosedError("the client is closed"), ZeroDivisionError("a bug")])
@virtual_time
async def test_what_waiting_cannot_mend_ends_it(error: Exception) -> None:
    """Whoever waits meets with it next."""
    server = Server(then=error)
    await asyncio.gather(*waiting(ServerHealth(server), 3))
    assert len(server.asked) == 1


@virtual_time
async def test_any_answer_to_anybody_ends_the_waiting() -> None:
    server = Server([REFUSED] * 6, then=b"{}")
    client = Client(server)
    task = asyncio.create_task(client.health.until_reachable())
    await asyncio.sleep(6)
    assert not task.done()
    server.comes_back()
    asked, now = len(server.asked), asyncio.get_running_loop().time()
    await client.get("/api/v1/pods")
    await task
    assert asyncio.get_running_loop().time() == now
    assert len(server.asked) == asked + 1


@pytest.mark.parametrize("error", [REFUSED, ApiError(500)])
@virtual_time
async def test_an_answer_of_failure_to_anybody_does_not(error: Exception) -> None:
    server = Server(then=error)
    client = Client(server)
    task = asyncio.create_task(client.health.until_reachable())
    await asyncio.sleep(4)
    with pytest.raises(type(error)):
        await client.stream("/api/v1/pods")
    await turns(5)
    assert not task.done()
    await finish(task)


def test_what_may_be_the_servers_trouble() -> None:
    health = ServerHealth(Server())
    yes = [
        REFUSED,
        IdleTimeoutError("silent"),
        ApiError(502),
        ApiError(503, "ServiceUnavailable"),
        ApiError(504),
    ]
    no = [
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
async def test_an_outage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    health = ServerHealth(Server([TransportError(f"{SERVER}: refused")] * 5), Random(1))
    for _ in range(2):
        await asyncio.gather(*waiting(health, 5))
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", "https://server cannot be reached: refused"),
        ("INFO", "https://server: reachable again after 7.9 s"),
    ]


@virtual_time
async def test_of_missed_answers_the_first_is_news_until_one_comes() -> None:
    client = Client(Server())
    health = client.health
    assert [health.is_news(REFUSED) for _ in range(3)] == [True, False, False]
    assert health.is_news(IdleTimeoutError("silent"))
    assert health.is_news(ApiError(500))
    assert health.is_news(ApiError(500))
    await client.get("/api")
    assert health.is_news(REFUSED)


def test_a_trouble_of_another_event_loop_is_over() -> None:
    """An ApiClient that was wrapped may be used in one loop after the other."""
    health = ServerHealth(Server([REFUSED] * 3))

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.gather(*waiting(health, 2))

    asyncio.run(give_up())
    run(health.until_reachable())


async def test_those_who_read_through_one_client_share_it() -> None:
    client = Client(Server())
    pods, secrets = (ListWatch.for_resource(client, "v1", plural) for plural in ("pods", "secrets"))
    assert pods.health is secrets.health is client.health

    async def nothing(options: object) -> Any: ...

    assert ListWatch(nothing, nothing).health is None
