"""Every public coroutine can be cancelled at every step, and leaves nothing behind.

A public coroutine without a case fails ``test_every_public_coroutine_has_a_case``. A case is an async context manager:
it sets up what the coroutine needs and gives the function to call. Afterwards it checks that the cancelled call either
changed nothing or was completed, and that its object is still usable or cleanly stopped.

Time is virtual where no socket is needed. Remaining tasks, open streams and unseen errors fail the test.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

import aioinformer
from aioinformer import Client, cache, errors, tracing, workqueue
from aioinformer.testing import APIServer
from aioinformer.testing.simulation import VirtualTimeLoop

from .cancellation.registry import Call, Case, endless, in_virtual_time, over_sockets
from .listwatch.test_cancellation import assert_at_rest
from .steps import until
from .virtual_time import run, settle

MOST = 200
"""Steps that reach every await of a coroutine that runs until it is cancelled."""

LONGEST = 60.0
"""Virtual seconds after which nothing more happens in a case."""

LONG_WAIT = 1000
"""Loop iterations after which a call over sockets waits for a thread: from then on the steps double."""


def public_coroutines() -> Iterator[str]:
    """The coroutines and async generators that users can reach from the package's names."""
    names = {
        name: getattr(module, name)
        for module in (aioinformer, cache, errors, workqueue, tracing)
        for name in module.__all__
    }
    for name, public in names.items():
        if not inspect.isclass(public):
            if is_async(public):
                yield name
        elif not getattr(public, "_is_protocol", False):
            for attribute in dir(public):
                is_private = attribute.startswith("_") and attribute not in (
                    "__aenter__",
                    "__aexit__",
                    "__anext__",
                )
                if not is_private and is_async(getattr(public, attribute, None)):
                    yield f"{name}.{attribute}"


def is_async(function: Any) -> bool:
    unwrapped = inspect.unwrap(function) if callable(function) else function
    return inspect.iscoroutinefunction(unwrapped) or inspect.isasyncgenfunction(unwrapped)


def test_every_public_coroutine_has_a_case() -> None:
    public = set(public_coroutines())
    covered = in_virtual_time.keys() | over_sockets.keys()
    assert len(public) > 40
    assert public - covered == set(), "public coroutines without a case"
    assert covered - public == set(), "cases of what is not public"


@pytest.mark.parametrize("name", in_virtual_time)
def test_cancelled_at_every_step(name: str) -> None:
    gc.freeze()  # objects of earlier tests are not collected again after each step
    for steps in count():
        reached = run(cancel_after(steps, in_virtual_time[name], ends=name not in endless))
        if not reached or (name in endless and steps == MOST):
            break
        assert steps < 10 * MOST, "it should have ended by now"


def test_remaining_tasks_and_streams_fail_the_check() -> None:
    async def leave_a_task() -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.sleep(0)

    async def leave_an_error() -> None:
        asyncio.get_running_loop().create_future().set_exception(ValueError())
        await asyncio.sleep(0)

    left: list[asyncio.Task[None]] = []
    for leave in (leave_a_task, leave_an_error):

        @asynccontextmanager
        async def make(call: Call = leave) -> AsyncIterator[Call]:
            yield call

        with pytest.raises(AssertionError):
            run(cancel_after(1, make))


async def cancel_after(steps: int, make: Case, *, ends: bool = True) -> bool:
    """Cancel after a number of loop steps of any task; return whether the call ran that long."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with make() as call:
        task = asyncio.create_task(call())
        end = loop.steps + steps + 1
        reached = False

        def cancel_in_time(task: asyncio.Task[Any] = task) -> None:
            nonlocal reached
            if loop.steps == end:
                reached = task.cancel()

        loop.after_step = cancel_in_time
        await asyncio.wait({task}, timeout=None if ends else LONGEST)
        loop.after_step = None
        if not ends:
            task.cancel()
            await asyncio.wait({task})
        assert task.cancelled() is (reached or not ends)
        if not task.cancelled():
            task.result()
        del task, cancel_in_time
    await settle(5)
    gc.collect()
    assert not loop.failures
    return reached


@pytest.mark.parametrize("name", over_sockets)
async def test_cancelled_at_every_loop_iteration(name: str) -> None:
    """The loop iterates without end during a wait for a socket or thread, so the steps grow."""
    steps = 0
    async with APIServer() as server, Client.from_url(server.url) as client:
        for number in range(3):
            server.create("v1", "configmaps", {"metadata": {"name": f"map-{number}"}})
        while True:
            async with over_sockets[name](server, client) as call:
                task = asyncio.create_task(call())
                for _ in range(steps):
                    await asyncio.sleep(0)
                    if task.done():
                        break
                ended = task.done()
                task.cancel()
                await asyncio.wait({task})
                if not task.cancelled():
                    task.result()
            await until(lambda: at_rest(client))
            assert await client.get("/api/v1/configmaps")
            if ended or (name in endless and steps > 2000):
                break
            steps += 1 + (steps // 8 if steps < LONG_WAIT else steps)
        assert ended is (name not in endless)


def at_rest(client: Client) -> bool:
    try:
        assert_at_rest(client)
    except AssertionError:
        return False
    return True
