"""``aioinformer bench``: how long changes take to reach a handler, and where on their way they are."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import log2
from typing import NamedTuple

from rich.table import Table

from ..errors import AioInformerError
from ..handlers import ResourceEventHandler
from ..informer import SharedIndexInformer
from ..listwatch import Client, ListWatch
from ..objects import KubeObject
from ..tracing import STAGES, StageTimes, Trace, Tracer
from .load import SELECTOR, SENT
from .output import Screen, printing, tell

WARM_UP = 1.0
PATIENCE = 30.0
"""Seconds after the last change in which all are to have arrived."""

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
WIDTH = 50


class Benchmark(NamedTuple):
    """What is to be measured.

    Attributes:
        server: A URL, or "embedded".
        namespace: Where objects are made.
        objects: How many.
        rate: Changes a second.
        seconds: For how long.
        loop: The loop's name, for the report.
    """

    server: str
    namespace: str
    objects: int
    rate: float
    seconds: float
    loop: str


class _Latencies(ResourceEventHandler[KubeObject]):
    """The handler, and the tracer's hook: both know a part of each change."""

    def __init__(self) -> None:
        self.stages = StageTimes(traces=10_000_000)
        self.received: list[int] = []
        self.totals: list[int] = []
        self.seconds = 0.0
        self._begun: int | None = None
        self._sent: dict[tuple[str, str], int] = {}
        self._arrived = asyncio.Event()
        self._wanted = 0

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._sent[new.key, new.resource_version] = int(new.metadata.annotations[SENT])

    def traced(self, trace: Trace) -> None:
        sent = self._sent.pop((trace.key, trace.resource_version), None)
        if sent is None:
            return
        if self._begun is not None:
            self.seconds = (trace.finished - self._begun) / 1e9
        self.stages(trace)
        self.received.append(trace.received - sent)
        self.totals.append(trace.finished - sent)
        if len(self.totals) >= self._wanted:
            self._arrived.set()

    def begin(self) -> None:
        """Forget the warm-up."""
        self._begun = time.monotonic_ns()
        self.stages = StageTimes(traces=10_000_000)
        self.received.clear()
        self.totals.clear()

    async def have_arrived(self, changes: int) -> bool:
        """Whether so many changes have come in time."""
        self._wanted = changes
        if len(self.totals) >= changes:
            return True
        self._arrived.clear()
        try:
            await asyncio.wait_for(self._arrived.wait(), PATIENCE)
        except TimeoutError:
            return False
        return True


async def run_benchmark(benchmark: Benchmark) -> None:
    """Measure, and print percentiles, the share of each stage and a histogram.

    Raises:
        AioInformerError: The server could not be used, or changes did not arrive.
    """
    latencies = _Latencies()
    try:
        await _measure(benchmark, latencies)
    except asyncio.CancelledError:
        with printing():
            if latencies.seconds:
                print(f"interrupted after {latencies.seconds:.1f} s")  # noqa: T201
                _report(Screen(), benchmark, latencies, latencies.seconds)
            else:
                tell("interrupted before anything was measured")
        raise
    with printing():
        _report(Screen(), benchmark, latencies, benchmark.seconds)


async def _measure(benchmark: Benchmark, latencies: _Latencies) -> None:
    async with _load(benchmark) as load, Client.from_url(load.url) as client:
        informer = SharedIndexInformer(
            ListWatch.for_resource(client, "v1", "configmaps", benchmark.namespace, SELECTOR),
            KubeObject,
            tracer=Tracer(latencies.traced),
        )
        registration = informer.add_event_handler(latencies)
        async with informer:
            await registration.wait_synced(PATIENCE)

            async def change(seconds: float) -> None:
                changes = await load.change(benchmark.rate, seconds)
                if not await latencies.have_arrived(changes):
                    raise AioInformerError(
                        f"of {changes} changes {len(latencies.totals)} have arrived: {informer.state}"
                    )

            await change(WARM_UP)
            latencies.begin()
            await change(benchmark.seconds)


class _Load:
    """The process that makes the changes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.url = ""

    async def change(self, rate: float, seconds: float) -> int:
        """Have changes made, and say how many there were."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{rate} {seconds}\n".encode())
        return int(await self.line())

    async def line(self) -> str:
        """What it says next.

        Raises:
            AioInformerError: It has ended; this says why.
        """
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        line = (await self._process.stdout.readline()).decode().strip()
        if not line:
            said = (await self._process.stderr.read()).decode().strip()
            raise AioInformerError(said or "the process that makes the changes has ended")
        return line


@asynccontextmanager
async def _load(benchmark: Benchmark) -> AsyncIterator[_Load]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioinformer.cli.load"),
        *(benchmark.server, benchmark.namespace, str(benchmark.objects)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for this process, which then ends that one
    )
    try:
        load = _Load(process)
        load.url = await load.line()
        yield load
    finally:
        assert process.stdin is not None
        process.stdin.close()  # it ends, and removes what it has made
        try:
            await asyncio.wait_for(process.communicate(), PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()


def _report(console: Screen, benchmark: Benchmark, latencies: _Latencies, seconds: float) -> None:
    changes = len(latencies.totals)
    console.print(
        f"{changes:,} changes of {benchmark.objects:,} objects, {changes / seconds:,.0f} a second, "
        f"{benchmark.loop}; from the change at the server to the end of the handler",
        highlight=False,
    )
    console.print(_stages(latencies))
    for line in histogram(latencies.totals):
        console.print(line, highlight=False)


def _stages(latencies: _Latencies) -> Table:
    table = Table("stage", *SHARES, "share", title="microseconds", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    times = {"received": _ranked(latencies.received)} | latencies.stages.percentiles(*SHARES.values())
    means = {"received": _mean(latencies.received)} | latencies.stages.means()
    whole = _mean(latencies.totals)
    for stage in ("received", *STAGES):
        table.add_row(stage, *_microseconds(times[stage]), f"{means[stage] / whole:.0%}")
    table.add_section()
    table.add_row("end to end", *_microseconds(_ranked(latencies.totals)), "100%")
    return table


def _ranked(nanoseconds: list[int]) -> tuple[float, ...]:
    ordered = sorted(nanoseconds)
    last = len(ordered) - 1
    return tuple(ordered[min(last, int(share * len(ordered)))] / 1e9 for share in SHARES.values())


def _mean(nanoseconds: list[int]) -> float:
    return sum(nanoseconds) / len(nanoseconds) / 1e9


def _microseconds(seconds: tuple[float, ...]) -> list[str]:
    return [f"{each * 1e6:,.0f}" for each in seconds]


def histogram(totals: list[int]) -> list[str]:
    """Lines of text, each for latencies from one value to 1.4 times it."""
    counts = Counter(int(2 * log2(max(1, total / 1000))) for total in totals)
    most = max(counts.values())
    lines = []
    for bucket in range(min(counts), max(counts) + 1):
        bar = "█" * round(WIDTH * counts[bucket] / most) or ("▏" if counts[bucket] else "")
        lines.append(f"{2 ** (bucket / 2):>12,.0f} µs  {bar} {counts[bucket] or ''}".rstrip())
    return lines
