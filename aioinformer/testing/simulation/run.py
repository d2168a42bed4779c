"""`simulate`: run a scenario from a seed in virtual time, and report its failure."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import warnings
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from aioinformer._core.callables import callable_name
from aioinformer._core.checks import require_count
from aioinformer.errors import ConfigError
from aioinformer.testing.simulation.errors import LeakError, SimulationError
from aioinformer.testing.simulation.hermetic import hermetic
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.loop import START, VirtualTimeLoop, idle
from aioinformer.testing.simulation.outcome import Outcome
from aioinformer.testing.simulation.shrink import RUNS, SECONDS, shrunk
from aioinformer.testing.simulation.simulation import Simulation
from aioinformer.testing.simulation.tasks import describe, describe_traceback

if TYPE_CHECKING:
    from collections.abc import Iterator

Scenario = Callable[[Simulation], Awaitable[object]]

DAY = 86_400.0

ENTRIES = 100


def simulate(
    scenario: Scenario,
    *,
    seed: int = 0,
    skip: Collection[int] = (),
    until: float = DAY,
    shuffle: bool = True,
    shrink: bool = True,
    entries: int | None = ENTRIES,
    **server: Any,
) -> History:
    """Run an async function against a simulated API server in virtual time; the same seed repeats the same run.

    The scenario must leave nothing behind: no task, no open stream, no unretrieved exception, no warning.

    Args:
        scenario: `async def scenario(world: Simulation)`. It fails by raising, as a test does.
        seed: Determines order, latency, troubles and every other random choice.
        skip: Numbers of `Simulation.happens` calls that must not happen; a failure's note says which to pass.
        until: Virtual seconds after which the run fails.
        shuffle: Draw the order in which ready tasks run; False keeps asyncio's.
        shrink: After a failure, search for fewer actions that also cause it.
        entries: A failure's note shows this many of the latest requests, answers and changes on the server, and as
            many of the latest other entries; None shows the whole history.
        **server: Arguments of the APIServer, such as `history` or `bookmark_interval`.

    Returns:
        What happened.

    Raises:
        ConfigError: The scenario is not async.
        SimulationError: Deadlock, livelock, virtual timeout, or something left behind.
        Exception: What the scenario raised, with a note that shows seed and history.
    """

    if entries is not None:
        require_count("entries", entries)

    def run(skipped: Collection[int]) -> Outcome:
        return run_once(scenario, seed, skipped, until, shuffle=shuffle, **server)

    outcome = run(skip)
    if outcome.error is None:
        return outcome.history
    skipped, is_least = outcome.skipped(skip), True
    if shrink:
        outcome, skipped, is_least = shrunk(run, outcome, skipped)
    assert outcome.error is not None
    outcome.error.add_note(f"{_replay(outcome, seed, skipped, is_least)}\n{outcome.history.text(entries)}")
    raise outcome.error


def run_once(
    scenario: Scenario,
    seed: int,
    skip: Collection[int] = (),
    until: float = DAY,
    *,
    shuffle: bool = True,
    **server: Any,
) -> Outcome:
    """Run a scenario a single time and return its outcome."""
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("call simulate() outside of a running event loop: it runs its own")
    gc.collect(1)  # young garbage is from before the run
    loop = VirtualTimeLoop(Random(f"{seed} order") if shuffle else None, START + until)
    history = History(loop.time)
    worlds: list[Simulation] = []

    async def main() -> None:
        world = Simulation(loop, seed, skip, history, **server)
        worlds.append(world)
        await _in_world(world, scenario)

    was_collecting = gc.isenabled()
    gc.disable()
    try:
        with (
            _record_logs(history),
            hermetic(Random(f"{seed} machine"), loop),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            error = _run_on(loop, main)
            gc.collect(0)  # makes lost tasks and coroutines warn now
            loop.report_unretrieved()
    finally:
        history.end()
        if was_collecting:
            gc.enable()
    happened = sum(world.happened for world in worlds)
    if error is None:
        error = _find_left_behind(worlds[0], loop, warned)
    return Outcome(error, history, happened)


def _run_on(loop: VirtualTimeLoop, main: Callable[[], Coroutine[Any, Any, None]]) -> BaseException | None:
    error: BaseException | None = None
    runner = asyncio.Runner(loop_factory=lambda: loop)
    try:
        runner.run(main())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:  # a stray cancellation, or pytest.fail
        error = raised
    finally:
        loop.after_step = None
        try:
            runner.close()
        except SimulationError as raised:  # a task that ignores its cancellation
            error = error or raised
        finally:
            loop.close()
    return error


async def _in_world(world: Simulation, scenario: Scenario) -> None:
    async with world.server:
        running = scenario(world)
        if not inspect.isawaitable(running):
            raise ConfigError(f"scenario must be an async function: {callable_name(scenario)} is not async")
        await running
        await idle()
        _require_clean_end(world)
        await world.client.close()
    await idle()


def _require_clean_end(world: Simulation) -> None:
    servers = world.server.tasks
    left = [
        task for task in asyncio.all_tasks() if task is not asyncio.current_task() and task not in servers
    ]
    if left:
        lines = "\n".join(f"  {task.get_name()}: {describe(task)}" for task in sorted(left, key=hash))
        raise LeakError(f"the scenario has ended but left tasks running:\n{lines}")
    if unclosed := world.network.unclosed:
        raise LeakError(f"the scenario has ended but left answers open: {unclosed}")


def _find_left_behind(
    world: Simulation, loop: VirtualTimeLoop, warned: list[warnings.WarningMessage]
) -> Exception | None:
    for context in loop.failures:
        if not world.tolerates(context.get("message")):
            leak = LeakError(f"the event loop reported an error: {context.get('message')}")
            leak.__cause__ = context.get("exception")
            return leak
    for warning in warned:
        if not world.tolerates(warning.message):
            return LeakError(f"the run caused a warning: {warning.message!r}")
    return None


@contextmanager
def _record_logs(history: History) -> Iterator[None]:
    """Copy the package's log records into the history."""
    handler = _HistoryHandler(history)
    logger = logging.getLogger("aioinformer")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _HistoryHandler(logging.Handler):
    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        traceback = record.exc_info[2] if record.exc_info else None
        raised = f"; raised in {describe_traceback(traceback)}" if traceback else ""
        self._history.add("log", f"{record.levelname} {record.getMessage()}{raised}")


def _replay(outcome: Outcome, seed: int, skip: frozenset[int], is_least: bool) -> str:
    skipped = f", skip={sorted(skip)}" if skip else ""
    left = f", of which {outcome.happened - len(skip)} suffice" if skip else ""
    stopped = "" if is_least else f"; shrinking stopped after {RUNS} runs or {SECONDS:g} s"
    going_on = ", and continues from this skip" if skip and not is_least else ""
    return (
        f"simulate(..., seed={seed}{skipped}) replays it: {outcome.happened} actions{left}{stopped}{going_on}"
    )
