"""Tests in virtual time: hours pass in milliseconds, in asyncio's own order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from aioinformer.testing import Simulation, simulate
from aioinformer.testing.simulation import VirtualTimeLoop as VirtualTimeLoop

P = ParamSpec("P")
T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; fail if tasks or unhandled exceptions remain."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        result = runner.run(main)
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        runner.run(asyncio.sleep(0))  # callbacks of tasks that have just ended
        left = asyncio.all_tasks(loop)
        assert not left, f"left running: {left}"
        assert not loop.failures, loop.failures
    return result


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Turn an async test into a plain function that runs in virtual time."""

    @wraps(test)
    def in_virtual_time(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return in_virtual_time


def simulate_scenario(
    scenario: Callable[[Simulation], Coroutine[Any, Any, None]], seeds: int = 3
) -> Callable[[], None]:
    """Turn a scenario on a simulated API server into a test, which runs it in several orders."""

    @wraps(scenario)
    def in_several_orders() -> None:
        for seed in range(seeds):
            simulate(scenario, seed=seed, shrink=False)

    del in_several_orders.__wrapped__  # pytest would look for a fixture named world
    return in_several_orders


async def settle(rounds: int = 50) -> None:
    """Run everything that is ready, without advancing time."""
    for _ in range(rounds):
        await asyncio.sleep(0)


async def cancel_after(steps: int, task: asyncio.Task[Any]) -> bool:
    """Cancel a task after a number of loop iterations and await it; return whether it was cancelled."""
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    return task.cancelled()
