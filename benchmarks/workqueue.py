"""Benchmark work queues in cycles of add, get and done, next to client-go's: ``python -m benchmarks.workqueue``.

    bulk      all items are added, then one worker takes and finishes them
    priority  the same, with three priorities in turn
    waiting   a worker waits for each item: the next is added once the last is done
    stream    a worker takes items while they are added
    delayed   all items are added with a delay; measured until the last is done

Each use runs in turn for every queue, round after round; medians are printed. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time

import uvloop

from aioinformer import WorkQueue
from aioinformer.workqueue import QueueMetrics

from .building import build

PRIORITIES = (100, 0, -100)
GOALS = {("bulk", False): 500_000, ("priority", True): 200_000}
"""Cycles per CPU second, by use and whether metrics are on, on asyncio's event loop. CPU time excludes other load."""

Keys = list[str]
Queue = WorkQueue[str]
Figures = dict[tuple[str, str, bool], list[tuple[float, float]]]
"""Cycles per second and CPU microseconds per cycle, by queue, use and whether metrics are on."""


async def bulk(queue: Queue, keys: Keys) -> None:
    for key in keys:
        queue.add(key)
    for _ in keys:
        queue.done(await queue.get())


async def priority(queue: Queue, keys: Keys) -> None:
    for number, key in enumerate(keys):
        queue.add(key, PRIORITIES[number % 3])
    for _ in keys:
        queue.done(await queue.get())


async def waiting(queue: Queue, keys: Keys) -> None:
    finished: asyncio.Future[None]
    loop = asyncio.get_running_loop()

    async def work() -> None:
        for _ in keys:
            queue.done(await queue.get())
            finished.set_result(None)

    finished = loop.create_future()
    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        await asyncio.sleep(0)
        for key in keys:
            queue.add(key)
            await finished
            finished = loop.create_future()


async def stream(queue: Queue, keys: Keys) -> None:
    async def work() -> None:
        for _ in keys:
            queue.done(await queue.get())

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        for number, key in enumerate(keys):
            queue.add(key)
            if number % 100 == 0:
                await asyncio.sleep(0)


async def delayed(queue: Queue, keys: Keys) -> None:
    for number, key in enumerate(keys):
        queue.add_after(key, 0.001 + (number % 100) / 1e5)
    for _ in keys:
        queue.done(await queue.get())


USES: dict[str, Callable[[Queue, Keys], Awaitable[None]]] = {
    use.__name__: use for use in (bulk, priority, waiting, stream, delayed)
}


async def measure(
    use: Callable[[Queue, Keys], Awaitable[None]], keys: Keys, metrics: bool
) -> tuple[float, float]:
    """Return the cycles per second, and the CPU microseconds per cycle."""
    queue = Queue(metrics=QueueMetrics() if metrics else None)
    gc.collect()
    began, cpu = perf_counter(), process_time()
    await use(queue, keys)
    wall, cpu = perf_counter() - began, process_time() - cpu
    return len(keys) / wall, cpu / len(keys) * 1e6


def run_round(keys: Keys, figures: Figures, go: str | None) -> None:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
        "aioinformer, asyncio": asyncio.SelectorEventLoop,
        "aioinformer, uvloop": uvloop.new_event_loop,
    }
    for name, loop_factory in loops.items():
        for use, function in USES.items():
            for metrics in (False, True):
                with asyncio.Runner(loop_factory=loop_factory) as runner:
                    figure = runner.run(measure(function, keys, metrics))
                figures.setdefault((name, use, metrics), []).append(figure)
    if go is not None:
        command = [go, str(len(keys))]
        output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
        for line in output.splitlines():
            figure_of_go = json.loads(line)
            figures.setdefault(
                (figure_of_go["queue"], figure_of_go["use"], figure_of_go["metrics"]), []
            ).append((figure_of_go["cycles_per_second"], figure_of_go["cpu_microseconds_per_cycle"]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Measure cycles of add, get and done per second of work queues"
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--go", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()

    go = build(["go-queues"]).programs.get("go-queues") if options.go else None
    keys = [f"team-{number % 20}/web-{number:06d}" for number in range(options.items)]
    figures: Figures = {}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        run_round(keys, figures, None if go is None else str(go))

    print(f"{options.items:,} items, {options.rounds} rounds; medians")
    print(f"{'queue':<30}{'use':<10}{'metrics':<9}{'cycles/s':>12}{'µs CPU/cycle':>14}")
    missed = []
    for (name, use, metrics), values in sorted(
        figures.items(), key=lambda item: list(USES).index(item[0][1])
    ):
        rate, cpu = (statistics.median(rates) for rates in zip(*values, strict=True))
        print(f"{name:<30}{use:<10}{'on' if metrics else 'off':<9}{rate:>12,.0f}{cpu:>14.2f}")
        goal, by_cpu = GOALS.get((use, metrics), 0), 1e6 / cpu
        if name == "aioinformer, asyncio" and by_cpu < goal:
            missed.append(f"{use}: {by_cpu:,.0f} is less than {goal:,} per CPU second")
    print(*missed, sep="\n", end="\n" if missed else "")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
