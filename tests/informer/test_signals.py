"""SharedInformerFactory.run_until_signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from aioinformer import Client, ConfigError, SharedInformerFactory
from aioinformer.testing import APIServer

from ..steps import until


@asynccontextmanager
async def a_factory() -> AsyncIterator[SharedInformerFactory]:
    async with APIServer() as server, Client.from_url(server.url) as client:
        factory = SharedInformerFactory(client)
        factory.for_resource("v1", "configmaps")
        yield factory


def signal_handling_is_restored() -> bool:
    task = asyncio.current_task()
    assert task is not None
    return not task.cancelling() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_signal_stops_the_factory() -> None:
    async with a_factory() as factory:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        await factory.run_until_signal()
        assert factory.informers[0].is_stopped
        assert signal_handling_is_restored()


async def test_inside_async_with_run_until_signal_only_waits() -> None:
    async with a_factory() as factory:
        async with factory:
            await factory.wait_for_cache_sync(timeout=10)
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
            await factory.run_until_signal()
            assert signal_handling_is_restored()
            assert not factory.informers[0].is_stopped
        assert factory.informers[0].is_stopped


async def test_cancelled_call_stays_cancelled() -> None:
    async with a_factory() as factory:
        running = asyncio.create_task(factory.run_until_signal())
        await until(factory.ready)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        assert signal_handling_is_restored()


async def test_use_in_another_thread_is_refused() -> None:
    async def run() -> None:
        async with a_factory() as factory:
            with pytest.raises(ConfigError, match="only the main thread can handle signals"):
                await factory.run_until_signal()

    await asyncio.to_thread(asyncio.run, run())


async def test_a_task_group_of_the_caller_that_failed_before_does_not_turn_a_signal_into_a_cancellation() -> (
    None
):
    """Before Python 3.13, a child that fails while the group waits leaves a request to cancel the task behind."""

    async def fail() -> None:
        raise ValueError("no quota")

    async def main() -> None:
        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        async with a_factory() as factory:
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
            await factory.run_until_signal()

    await asyncio.create_task(main())
