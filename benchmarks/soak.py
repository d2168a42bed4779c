"""Run informers under load and look for growth: ``python -m benchmarks.soak --minutes 30``.

Five informers (both queues, several object types, every backlog policy) follow an API server in another process
that writes at a steady rate, ends watches, expires its history and refuses requests. Handlers are added and removed.
Memory, tasks, descriptors, objects and backlog are sampled, and must be flat over the second half. At the end every
cache must equal the server, and the calls of each handler must be consistent. Exit code 1 if not. Needs Linux's /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from aioinformer import Client, KubeObject, ListWatch, ResourceEventHandler, SharedIndexInformer
from aioinformer._core.tasks import finish
from aioinformer.cache import Backlog
from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func, resource_version_of

from .soak_report import Sample, Trend, svg, table, trends

ROOT = Path(__file__).resolve().parents[1]
PAGE = os.sysconf("SC_PAGE_SIZE")
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)  # of glibc
POLICIES: tuple[Backlog, ...] = ("unbounded", "block", "coalesce", "drop_oldest")
SETTLE = 300.0
"""Seconds after the last write within which caches must equal the server and slow handlers must finish."""


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    resource_version: str


class Projection(msgspec.Struct):
    metadata: Meta


class Copy(ResourceEventHandler[Any]):
    """A handler that keeps a copy of the objects, and records calls that do not fit it.

    Args:
        seconds: The duration of each call.
        sees_all: Whether it gets all notifications, so that each call must fit the ones before.
    """

    def __init__(self, seconds: float = 0.0, *, sees_all: bool = True) -> None:
        self.versions: dict[str, str] = {}
        self.wrong: list[str] = []
        self._seconds = seconds
        self.sees_all = sees_all

    async def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        key = deletion_handling_meta_namespace_key_func(obj)
        self._expect(key not in self.versions, f"{key} was added twice")
        self.versions[key] = resource_version_of(obj)
        await asyncio.sleep(self._seconds)

    async def on_update(self, old: Any, new: Any) -> None:
        key = deletion_handling_meta_namespace_key_func(new)
        self._expect(
            self.versions.get(key) == resource_version_of(old),
            f"{key} had another version than the call says",
        )
        self.versions[key] = resource_version_of(new)
        await asyncio.sleep(self._seconds)

    async def on_delete(self, obj: Any) -> None:
        key = deletion_handling_meta_namespace_key_func(obj)
        self._expect(key in self.versions, f"{key} was deleted but never added")
        self.versions.pop(key, None)
        await asyncio.sleep(self._seconds)

    def _expect(self, condition: bool, problem: str) -> None:
        if self.sees_all and not condition and len(self.wrong) < 10:
            self.wrong.append(problem)


@dataclass(slots=True)
class Subject:
    """An informer with its permanent handler."""

    informer: SharedIndexInformer[Any]
    api: tuple[str, str]
    namespaces: tuple[str, ...] | None
    handler: Copy


@dataclass(slots=True)
class Result:
    """The result of a soak.

    Attributes:
        samples: All measurements, oldest first.
        troubles: The server's faults, in words.
        wrong: The errors, in words.
        guests: The number of handlers that were added and removed.
    """

    samples: list[Sample] = field(default_factory=list)
    troubles: str = ""
    wrong: list[str] = field(default_factory=list)
    guests: int = 0

    def trends(self) -> list[Trend]:
        return trends(self.samples)

    @property
    def is_good(self) -> bool:
        return not self.wrong and all(trend.is_flat for trend in self.trends())


def make_subjects(client: Client) -> list[Subject]:
    """Return the five informers."""
    pods, maps = ("v1", "pods"), ("v1", "configmaps")
    some = ("ns-0", "ns-1")

    def of(
        api: tuple[str, str], kind: Any, queue: Any, handler: Copy, backlog: Backlog, **more: Any
    ) -> Subject:
        namespaces: tuple[str, ...] | None = more.pop("namespaces", None)
        source = {
            namespace or "": ListWatch.for_resource(client, *api, namespace)
            for namespace in namespaces or (None,)
        }
        informer = SharedIndexInformer(source, kind, queue=queue, **more)
        informer.add_event_handler(handler, backlog=backlog, backlog_limit=500)
        return Subject(informer, api, namespaces, handler)

    return [
        of(pods, KubeObject, "delta", Copy(), "unbounded", default_resync_period=30.0),
        of(pods, dict, "real", Copy(0.02), "coalesce"),
        of(maps, Projection, "delta", Copy(), "block"),
        of(maps, KubeObject, "real", Copy(0.02, sees_all=False), "drop_oldest"),
        of(
            pods,
            KubeObject,
            "delta",
            Copy(),
            "unbounded",
            namespaces=some,
            use_watch_list=False,
            page_size=100,
        ),
    ]


def measure(seconds: float, subjects: Sequence[Subject]) -> Sample:
    """Sample the process after it returned free memory, so that only live memory counts."""
    gc.collect()
    TRIM(0)
    states = [subject.informer.state for subject in subjects]
    return Sample(
        seconds=seconds,
        rss=int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6,
        tasks=len(asyncio.all_tasks()),
        descriptors=len(os.listdir("/proc/self/fd")),
        objects=len(gc.get_objects()),
        backlog=sum(state.queue_depth + sum(handler.depth for handler in state.handlers) for state in states),
        events=sum(reflector.events for state in states for reflector in state.reflectors),
    )


async def invite_guests(subjects: Sequence[Subject], result: Result, random: Random) -> None:
    """Add and remove handlers with every backlog policy until cancelled."""
    while True:
        subject = random.choice(subjects)
        guest = Copy(random.choice((0.0, 0.001)), sees_all=False)
        policy = POLICIES[result.guests % len(POLICIES)]
        registration = subject.informer.add_event_handler(guest, backlog=policy, backlog_limit=100)
        await asyncio.sleep(random.random() * 2)
        if result.guests % 2:
            subject.informer.remove_event_handler(registration)
        else:
            await subject.informer.shut_down_event_handler(registration)
        result.guests += 1


@asynccontextmanager
async def serve(rate: float, objects: int, trouble_every: float) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the server's process; it also ends when this process does."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.soak_server", str(rate), str(objects), str(trouble_every), "1",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert server.stdin is not None
    try:
        yield server
    finally:
        server.stdin.close()
        await server.wait()


async def soak(
    seconds: float,
    *,
    rate: float = 200.0,
    objects: int = 1000,
    trouble_every: float = 10.0,
    every: float = 10.0,
) -> Result:
    """Run informers under load.

    Args:
        seconds: The duration.
        rate: Writes per second.
        objects: The number of objects of each of two resources.
        trouble_every: The average seconds between faults.
        every: Seconds between samples.
    """
    result = Result()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(rate, objects, trouble_every))
        assert server.stdin is not None
        assert server.stdout is not None
        url = (await server.stdout.readline()).decode().strip()
        client = await stack.enter_async_context(Client.from_url(url))
        subjects = make_subjects(client)
        for subject in subjects:
            await stack.enter_async_context(subject.informer)
        guests = asyncio.create_task(invite_guests(subjects, result, Random(1)))
        try:
            loop = asyncio.get_running_loop()
            started = loop.time()
            while (passed := loop.time() - started) < seconds:
                result.samples.append(measure(passed, subjects))
                if len(result.samples) % 6 == 1:
                    print(result.samples[-1], file=sys.stderr, flush=True)
                await asyncio.sleep(every)
            if guests.done():
                guests.result()
        finally:
            await finish(guests)
        server.stdin.write(b"quiet\n")
        result.troubles = (await server.stdout.readline()).decode().strip()
        result.wrong += await wait_until_equal(client, subjects)
        result.wrong += [
            f"{subject.informer.name}: {fault}" for subject in subjects for fault in subject.handler.wrong
        ]
    return result


async def wait_until_equal(client: Client, subjects: Sequence[Subject]) -> list[str]:
    """Wait until caches and handlers' copies equal the server; return the remaining differences."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SETTLE
    wrong: list[str] = []
    for subject in subjects:
        listed = await ListWatch.for_resource(client, *subject.api).list()
        wanted = {
            item.key: item.resource_version
            for item in (KubeObject.from_bytes(item) for item in listed.items)
            if subject.namespaces is None or item.namespace in subject.namespaces
        }
        while differences := find_differences(subject, wanted):
            if loop.time() > deadline:
                wrong.append(f"{differences}: {subject.informer.state}; {subject.informer.state.handlers[0]}")
                break
            await asyncio.sleep(0.1)
    return wrong


def find_differences(subject: Subject, wanted: dict[str, str]) -> str:
    """Return in words how cache and copy differ from the server, or ``""``."""
    store = subject.informer.store
    cached = {store.key_of(obj): resource_version_of(obj) for obj in store.list()}
    copied = subject.handler.versions if subject.handler.sees_all else wanted
    counts = [
        sum(other.get(key) != wanted.get(key) for key in {*other, *wanted}) for other in (cached, copied)
    ]
    return (
        f"{counts[0]} objects differ in the cache, {counts[1]} in the handler's copy" if any(counts) else ""
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Run informers under load, and check that nothing grows")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=200.0, help="writes a second")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between samples")
    parser.add_argument("--svg", type=Path, help="file for a plot of the samples")
    options = parser.parse_args()
    result = asyncio.run(soak(options.minutes * 60, rate=options.rate, every=options.every))
    print(table(result.samples))
    print(f"troubles: {result.troubles}; {result.guests} handlers came and went\n")
    for trend in result.trends():
        print(trend)
    for fault in result.wrong:
        print(f"WRONG: {fault}")
    if options.svg is not None:
        options.svg.parent.mkdir(parents=True, exist_ok=True)
        options.svg.write_text(svg(result.samples))
    print("verdict:", "flat and correct" if result.is_good else "NOT GOOD")
    return 0 if result.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
