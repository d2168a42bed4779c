"""forks.py and loops.py: which process and which event loop an object belongs to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from aioinformer import Client, LeaderElector, SharedInformerFactory, WorkQueue
from aioinformer._core.forks import FORKED, current_process, require_same_process
from aioinformer._core.tasks import Running
from aioinformer.cache import Indexer, MutationCache
from aioinformer.errors import WrongEventLoopError
from aioinformer.operator import Manager

from ..forking import in_child

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


class Service(Running):
    async def run(self) -> None:
        await asyncio.Event().wait()


@needs_fork
async def test_a_fork_makes_another_process_of_the_child_and_not_of_the_parent() -> None:
    process = current_process()
    assert await in_child(lambda: process.was_forked) == "True"
    assert await in_child(lambda: require_same_process(None, "it")) == "None"
    assert not process.was_forked


@needs_fork
async def test_what_runs_in_the_parent_says_so_in_the_child() -> None:
    async with Service() as service:
        for use in (service.require_own_loop, service.require_not_started, service.begin):
            answer = await in_child(use)
            assert answer.startswith(f"ForkedError: {service!r} {FORKED}: start it after the fork")
            assert "gunicorn's post_fork" in answer
        assert await in_child(lambda: service.is_forked) == "True"
        assert not service.is_forked
        service.require_own_loop()


@needs_fork
async def test_what_was_not_started_can_be_started_in_the_child() -> None:
    service = Service()

    async def run_it() -> None:
        async with service:
            service.require_own_loop()

    assert await in_child(lambda: asyncio.run(run_it())) == "None"


def test_without_an_event_loop_the_error_says_that_none_runs_and_what_to_do() -> None:
    client = Client.from_url("http://127.0.0.1:9")
    factory = SharedInformerFactory(client)
    queue: WorkQueue[str] = WorkQueue()
    for use in (
        factory.start,
        lambda: queue.add_after("a", 1),
        lambda: queue.add_rate_limited("a"),
        lambda: MutationCache(Indexer()).get_by_key("a"),
    ):
        with pytest.raises(
            WrongEventLoopError,
            match=r"none is running here: .* asyncio\.run\(main\(\)\); .* aioinformer\.blocking",
        ):
            use()


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.open(),
        lambda client: client.get("/version"),
        lambda client: SharedInformerFactory(client).__aenter__(),
        lambda client: SharedInformerFactory(client).for_resource("v1", "pods").wait_synced(),
        lambda client: Manager(client).run(),
    ],
)
def test_a_coroutine_that_another_kind_of_loop_runs_says_that_it_needs_asyncio(
    use: Callable[[Client], Coroutine[Any, Any, object]],
) -> None:
    """As trio does, this runs a coroutine without asyncio's event loop."""
    coroutine = use(Client.from_url("http://127.0.0.1:9"))
    with pytest.raises(WrongEventLoopError, match="needs asyncio's event loop, and none is running here"):
        coroutine.send(None)


@pytest.mark.parametrize(
    "make",
    [
        SharedInformerFactory,
        lambda client: SharedInformerFactory(client).for_resource("v1", "pods"),
        Manager,
        lambda client: LeaderElector(client, "name", "default"),
        lambda client: client,
    ],
    ids=["factory", "informer", "manager", "elector", "client"],
)
def test_plain_with_says_async_with(make: Callable[[Client], Any]) -> None:
    subject = make(Client.from_url("http://127.0.0.1:9"))
    with pytest.raises(WrongEventLoopError, match=r"needs `async with`, .* aioinformer\.blocking"), subject:
        pass


async def test_an_object_of_an_event_loop_that_has_ended_says_so() -> None:
    service = Service()

    async def use() -> None:
        service.require_own_loop()

    await asyncio.to_thread(asyncio.run, use())
    with pytest.raises(WrongEventLoopError, match="another event loop, which has ended: create it again"):
        service.require_own_loop()


async def test_a_thread_without_an_event_loop_gets_an_error_that_names_the_way_out() -> None:
    """It is not told of another event loop: it has none."""
    service = Service()
    async with service:
        with pytest.raises(WrongEventLoopError) as caught:
            await asyncio.to_thread(service.require_own_loop)
    said = str(caught.value)
    assert said.startswith(f"{service!r} runs in an event loop, and none is running here: ")
    assert said.endswith("code without an event loop uses aioinformer.blocking")


def test_an_event_loop_that_has_ended_is_said_to_code_without_one() -> None:
    service = Service()

    async def use() -> None:
        service.require_own_loop()

    asyncio.run(use())
    with pytest.raises(
        WrongEventLoopError, match=r"which has ended: .* none is running here; .* aioinformer\.blocking"
    ):
        service.require_own_loop()
