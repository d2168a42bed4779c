"""``aioinformer bench``: measure how long changes take to reach a handler, and how long each stage takes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import anyio
import msgspec

from .._core.tasks import run_until_first
from ..errors import AioInformerError, ApiError
from ..handlers import ResourceEventHandler
from ..informer import SharedIndexInformer
from ..listwatch import ListWatch
from ..objects.kube_object import KubeObject
from ..reflector import Reflector
from ..tracing import STAGES, StageTimes, Trace, Tracer, percentiles_of
from .load import SELECTOR, SENT
from .output import convert_write_errors
from .report import Report, print_json, print_table
from .target import Target

WARM_UP = 1.0
ARRIVAL_TIMEOUT = 30.0
"""Seconds after the last change until which all changes must have arrived."""

MAX_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


class Benchmark(NamedTuple):
    """The options of a benchmark.

    Attributes:
        target: The server; None for an embedded server.
        namespace: The namespace of the objects.
        objects: How many objects.
        rate: Changes per second.
        seconds: Duration of the measurement.
        loop: The event loop's name, for the report.
        protobuf: Whether the informer reads protobuf.
        as_json: Whether to print the report as JSON instead of a table.
    """

    target: Target | None
    namespace: str
    objects: int
    rate: float
    seconds: float
    loop: str
    protobuf: bool
    as_json: bool


class _Latencies(ResourceEventHandler[KubeObject]):
    """The handler and the tracer's hook, which together measure each change.

    Attributes:
        stages: Times of the stages of the changes that have arrived.
        received: Nanoseconds from each change at the server, or the request for it, to its arrival here.
        totals: Nanoseconds from there to the end of the handler.
        seconds: How long changes have been measured.
        lost: Set when the informer has to relist, so that changes are missing.
    """

    def __init__(self) -> None:
        self.stages = StageTimes(traces=10_000_000)
        self.received: list[int] = []
        self.totals: list[int] = []
        self.seconds = 0.0
        self.lost = asyncio.Event()
        self._begun: int | None = None
        self._sent: dict[tuple[str, str], int] = {}
        self._arrived = asyncio.Event()
        self._wanted = 0

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._sent[new.key, new.resource_version] = int(new.metadata.annotations[SENT])

    def on_error(self, reflector: Reflector[Any], error: Exception) -> None:
        if isinstance(error, ApiError) and error.is_expired:
            self.lost.set()

    def record_trace(self, trace: Trace) -> None:
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
        """Drop the measurements of the warm-up."""
        self._begun = time.monotonic_ns()
        self.stages = StageTimes(traces=10_000_000)
        self.received.clear()
        self.totals.clear()

    async def have_arrived(self, changes: int) -> bool:
        """Wait for this many changes; return whether they arrived in time."""
        self._wanted = changes
        if len(self.totals) >= changes:
            return True
        self._arrived.clear()
        with anyio.move_on_after(ARRIVAL_TIMEOUT):
            return await self._arrived.wait()
        return False


async def run_benchmark(benchmark: Benchmark) -> None:
    """Measure and print a report. A cancellation ends the measurement early.

    Raises:
        AioInformerError: The server could not be used, or changes did not arrive.
        CancelledError: It was cancelled before anything was measured.
    """
    latencies = _Latencies()
    try:
        await _measure(benchmark, latencies)
    except asyncio.CancelledError:
        if not latencies.seconds:
            raise
        _print(benchmark, latencies, interrupted=True)
    else:
        _print(benchmark, latencies, interrupted=False)


def _print(benchmark: Benchmark, latencies: _Latencies, interrupted: bool) -> None:
    report = _report(benchmark, latencies, interrupted)
    with convert_write_errors():
        if benchmark.as_json:
            print_json(report)
        else:
            print_table(report, latencies.totals)


async def _measure(benchmark: Benchmark, latencies: _Latencies) -> None:
    async with _load(benchmark) as load, (benchmark.target or Target(load.url)).client() as client:
        informer = SharedIndexInformer(
            ListWatch.for_resource(
                client, "v1", "configmaps", benchmark.namespace, SELECTOR, protobuf=benchmark.protobuf
            ),
            KubeObject,
            tracer=Tracer(latencies.record_trace),
            watch_error_handler=latencies.on_error,
        )
        registration = informer.add_event_handler(latencies)

        async def change(seconds: float) -> float:
            begin = time.monotonic()
            changes = await load.change(benchmark.rate, seconds)
            taken = time.monotonic() - begin
            if not await latencies.have_arrived(changes):
                raise AioInformerError(
                    f"only {len(latencies.totals):,} of {changes:,} changes arrived within {ARRIVAL_TIMEOUT:g} s: "
                    f"{informer.state}"
                )
            return max(seconds, taken)

        async def measure() -> None:
            await change(WARM_UP)
            latencies.begin()
            latencies.seconds = await change(benchmark.seconds)

        async def notice_losses() -> None:
            await latencies.lost.wait()
            raise AioInformerError(
                f"the informer fell behind and has to relist: {benchmark.rate:,.0f} changes per second are more than "
                "this machine or the server's history can handle; pass a lower --rate"
            )

        async with informer:
            await registration.wait_synced(ARRIVAL_TIMEOUT)
            await run_until_first(measure, notice_losses)


class _Load:
    """The process that makes the changes.

    It deletes its objects at the end, which may take longer than this process runs. So it is no asyncio subprocess,
    which would end with the event loop.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "aioinformer.cli.load"),
                *(msgspec.json.encode(benchmark.target), benchmark.namespace, str(benchmark.objects)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C must reach this process only
        )
        self._output, self._errors = asyncio.StreamReader(), asyncio.StreamReader()
        self._pipes: list[asyncio.ReadTransport] = []
        self.url = ""

    async def open(self) -> None:
        """Wait until the process has created the objects."""
        connect = asyncio.get_running_loop().connect_read_pipe
        for pipe, reader in ((self._process.stdout, self._output), (self._process.stderr, self._errors)):
            transport, _ = await connect(partial(asyncio.StreamReaderProtocol, reader), pipe)
            self._pipes.append(transport)
        self.url = await self._line()

    async def change(self, rate: float, seconds: float) -> int:
        """Have the process make changes and return how many it made."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # reading its next line reports that, too
            self._process.stdin.write(f"{rate} {seconds}\n".encode())
        return int(await self._line())

    async def _line(self) -> str:
        """Return the process's next line.

        Raises:
            AioInformerError: The process has ended; the message says why.
        """
        line = (await self._output.readline()).decode().strip()
        if not line:
            reason = (await self._errors.read()).decode().strip()
            raise AioInformerError(reason or "the process that makes the changes has ended")
        return line

    async def close(self) -> None:
        """Have the process delete its objects and wait for its end; when cancelled, let it finish alone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            with anyio.move_on_after(ARRIVAL_TIMEOUT) as scope:
                while self._process.poll() is None:  # noqa: ASYNC110 - Popen has no event
                    await asyncio.sleep(0.01)
            if scope.cancelled_caught:
                self._process.kill()
                self._process.wait()
        finally:
            for pipe in self._pipes:
                pipe.close()


@asynccontextmanager
async def _load(benchmark: Benchmark) -> AsyncIterator[_Load]:
    load = _Load(benchmark)
    try:
        await load.open()
        yield load
    finally:
        await load.close()


def _report(benchmark: Benchmark, latencies: _Latencies, interrupted: bool) -> Report:
    changes = len(latencies.totals)
    whole = fmean(latencies.totals) / 1e9
    percentiles = {
        "received": _percentiles(latencies.received),
        **latencies.stages.percentiles(*MAX_SHARES.values()),
        "endToEnd": _percentiles(latencies.totals),
    }
    means = {"received": fmean(latencies.received) / 1e9, **latencies.stages.means()}
    return Report(
        loop=benchmark.loop,
        encoding="protobuf" if benchmark.protobuf else "json",
        embedded=benchmark.target is None,
        objects=benchmark.objects,
        rate=benchmark.rate,
        duration_seconds=latencies.seconds,
        interrupted=interrupted,
        changes=changes,
        changes_per_second=changes / latencies.seconds,
        latency_seconds={
            stage: dict(zip(MAX_SHARES, percentiles[stage], strict=True))
            for stage in ("received", *STAGES, "endToEnd")
        },
        shares={stage: mean / whole for stage, mean in means.items()},
    )


def _percentiles(nanoseconds: list[int]) -> tuple[float, ...]:
    return percentiles_of(sorted(nanoseconds), tuple(MAX_SHARES.values()))
