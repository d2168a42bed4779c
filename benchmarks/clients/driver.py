"""Drive a Peer through the phases of CONTRACT.md, by commands on standard input."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import sys
import time
from contextlib import suppress
from typing import Any

from .lag import LagProbe
from .peer import Options, Peer, Reads
from .tally import Tally, percentiles

READS_A_SECOND = 10
_malloc_trim = ctypes.CDLL(None).malloc_trim


def settle() -> None:
    """Collect garbage, and return free memory to the system."""
    gc.collect()
    gc.collect()
    _malloc_trim(0)


def say(phase: str, **fields: Any) -> None:
    print(json.dumps({"phase": phase, **fields}), flush=True)


async def drive(peer: Peer, tally: Tally) -> None:
    """Run the commands of standard input until it ends."""
    options = peer.options
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await peer.open()
    try:
        settle()
        say("ready", version=peer.version)
        while line := await lines.readline():
            match line.decode().split():
                case ["sync"]:
                    await _sync(peer, tally)
                case ["watch", events, kind]:
                    await _watch(peer, tally, int(events) * options.handlers, kind == "stamped")
                case ["fail", count]:
                    await _fail(peer, tally, int(count))
                case ["reads", seconds]:
                    await _read(peer, tally, float(seconds))
                case ["exit"]:
                    return
                case other:
                    raise SystemExit(f"no such command: {other}")
    finally:
        for task in peer.tasks:
            task.cancel()
        for task in peer.tasks:
            with suppress(asyncio.CancelledError):
                await task
        await peer.close()


async def _sync(peer: Peer, tally: Tally) -> None:
    tally.expect(peer.options.objects * peer.options.handlers)
    probe = LagProbe() if peer.options.probe else None
    wall, cpu = time.monotonic_ns(), time.process_time()
    await _while_healthy(peer, peer.sync())
    await _while_healthy(peer, tally.done.wait())
    cpu, wall = max(time.process_time(), tally.cpu) - cpu, time.monotonic_ns() - wall
    lag = {} if probe is None else {"lag_ms": await probe.end()}
    settle()
    say("synced", wall=wall / 1e9, cpu=cpu, **lag)


async def _watch(peer: Peer, tally: Tally, calls: int, stamped: bool) -> None:
    tally.expect(calls, stamped=stamped)
    probe = LagProbe() if peer.options.probe else None
    cpu = time.process_time()
    say("watching")
    await _while_healthy(peer, tally.done.wait())
    cpu = tally.cpu - cpu
    measured: dict[str, Any] = {} if probe is None else {"lag_ms": await probe.end()}
    if stamped:
        measured["latency_us"] = percentiles(tally.latencies, unit=1e3)
    say("watched", cpu=cpu, ended=tally.ended, **measured)


async def _fail(peer: Peer, tally: Tally, calls: int) -> None:
    peer.is_failing = True
    settle()
    tally.expect(calls)
    cpu = time.process_time()
    say("watching")
    await _while_healthy(peer, tally.done.wait())
    settle()
    say("watched", cpu=tally.cpu - cpu, ended=tally.ended)


async def _read(peer: Peer, tally: Tally, seconds: float) -> None:
    reads = peer.reads()
    tally.expect(-1)  # any number of calls
    probe = LagProbe() if peer.options.probe else None
    times: dict[str, list[float]] = {name: [] for name in Reads._fields}
    cpu = time.process_time()
    say("watching")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, read in zip(Reads._fields, reads, strict=True):
            began = time.perf_counter()
            read()
            times[name].append(time.perf_counter() - began)
            await _while_healthy(peer, asyncio.sleep(1 / READS_A_SECOND / len(Reads._fields)))
    measured: dict[str, Any] = {} if probe is None else {"lag_ms": await probe.end()}
    measured["read_us"] = {
        name.removeprefix("by_"): percentiles(values, unit=1e-6) for name, values in times.items()
    }
    say("watched", cpu=time.process_time() - cpu, ended=time.monotonic_ns(), **measured)


async def _while_healthy(peer: Peer, work: Any) -> None:
    """Wait for the work, or raise the first failure of the client."""
    waiting = asyncio.ensure_future(work)
    await asyncio.wait({waiting, *peer.tasks}, return_when=asyncio.FIRST_COMPLETED)
    for task in peer.tasks:
        if task.done():
            task.result()
            raise RuntimeError(f"the client has ended: {task}")
    await waiting


__all__ = ["Options", "drive", "say", "settle"]
