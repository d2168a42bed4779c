"""Measure the costs of each object type: ``python -m benchmarks.memory``.

Each type runs in its own process without a network: an informer with the namespace index and one handler reads a list
of pods, page by page, and then a watch of changes. Memory is the growth of the whole process (anonymous pages), so
keys, dicts and indexes count. The cost of making the pods is subtracted. Page reporting is off meanwhile
(``harness/page_reporting.py``).
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from aioinformer import (
    KubeObject,
    ListOptions,
    ListWatch,
    ResourceEventHandler,
    SharedIndexInformer,
    WatchEvent,
    field,
)
from aioinformer.cache import NAMESPACE_INDEX, ListResult, TypeMeta, meta_namespace_index_func
from aioinformer.objects.protobuf import form_of
from aioinformer.testing.protobuf import marshaller

from .harness.page_reporting import keep_memory
from .pods import (
    FIRST_VERSION,
    NAME_MARK,
    SENT_MARK,
    UID_MARK,
    VERSION_MARK,
    name_suffix,
    uid,
    write_templates,
)
from .projection import Pod

TEMPLATES = Path(".cache/benchmarks/pods-4000.jsonl")
POD = TypeMeta("v1", "Pod")
PAGE = 36
"""Pods per piece of a list: a quarter of a megabyte, as from a socket."""
BATCH = 16
"""Changes per batch."""
ROUNDS = 8
"""Rounds in which the cost of an event is measured. The minimum excludes other load of the machine."""

CHOICES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "KubeObject": (KubeObject, {}),
    "KubeObject, drop_managed_fields": (KubeObject, {"drop_managed_fields": True}),
    "KubeObject, compress": (KubeObject, {"compress": True}),
    "KubeObject, compress, drop_managed_fields": (
        KubeObject,
        {"compress": True, "drop_managed_fields": True},
    ),
    "KubeObject, protobuf": (KubeObject, {}),
    "KubeObject, protobuf, drop_managed_fields": (KubeObject, {"drop_managed_fields": True}),
    "KubeObject, protobuf, compress": (KubeObject, {"compress": True}),
    "a Struct of five fields": (Pod, {}),
    "dict": (dict, {}),
    "V1Pod": (type(None), {}),
}
LARGE = ("dict", "V1Pod")
"""Object types that are measured with a tenth of the pods, because they are large."""


class Pods:
    """Pods as bytes, made on demand.

    Args:
        count: The number of pods.
        protobuf: Whether they are protobuf instead of JSON. Replaced texts keep their length.
    """

    def __init__(self, count: int, protobuf: bool = False) -> None:
        if not TEMPLATES.exists():
            write_templates(TEMPLATES, 4000)
        self._templates = TEMPLATES.read_bytes().splitlines()
        if protobuf:
            write = marshaller("core/v1.Pod")
            self._templates = [write(json.loads(template)) for template in self._templates]
        self.count = count

    def pod(self, number: int, version: int) -> bytes:
        return (
            self._templates[number % len(self._templates)]
            .replace(NAME_MARK.encode(), name_suffix(number).encode())
            .replace(UID_MARK.encode(), uid(number).encode(), 1)
            .replace(VERSION_MARK.encode(), str(version).encode(), 1)
            .replace(SENT_MARK.encode(), b"%019d" % (10**18 + version * 7919), 1)
        )

    def pages(self) -> Iterator[list[bytes]]:
        """Yield the list in the order of the templates, which favours no client."""
        for begin in range(0, self.count, PAGE):
            yield [self.pod(n, FIRST_VERSION + n) for n in range(begin, min(begin + PAGE, self.count))]

    def changes(self, count: int) -> list[list[memoryview]]:
        version = FIRST_VERSION + self.count
        raws = [memoryview(self.pod(n * 7919 % self.count, version + n)) for n in range(count)]
        return [raws[begin : begin + BATCH] for begin in range(0, count, BATCH)]


class Source(ListWatch):
    """A ListWatch of the pods, and then of ``batches``: JSON bytes, or protobuf objects."""

    def __init__(self, pods: Pods, protobuf: bool = False) -> None:
        super().__init__(self.list, self.watch, description="pods")
        self._pods = pods
        self._item_of: Callable[[bytes], Any] = form_of(POD).object_of if protobuf else bytes
        self.batches: asyncio.Queue[list[memoryview]] = asyncio.Queue()
        self.busy = 0.0

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        pages = self._pods.pages()
        while True:
            began = time.thread_time()
            page = next(pages, None)
            self.busy += time.thread_time() - began
            if page is None:
                break
            yield ListResult([self._item_of(raw) for raw in page], type_meta=POD)
            del page
            await asyncio.sleep(0)
        yield ListResult((), str(FIRST_VERSION + self._pods.count))

    async def watch(self, options: ListOptions) -> Any:
        async def events() -> AsyncIterator[list[WatchEvent]]:
            while True:
                batch = await self.batches.get()
                # a copy, as from a socket's buffer
                yield [WatchEvent("MODIFIED", self._item_of(bytes(raw))) for raw in batch]

        return events()


class Handler(ResourceEventHandler[Any]):
    """A handler that reads and counts."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read
        self._goal = 0
        self._reached = asyncio.Event()
        self.seen = 0

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        self._read(obj)
        self.seen += 1
        if self.seen == self._goal:
            self._reached.set()

    def on_update(self, old: Any, new: Any) -> None:
        self.on_add(new, False)

    async def until(self, goal: int) -> None:
        """Wait for a total number of calls."""
        self._goal = goal
        self._reached.clear()
        if self.seen < goal:
            await self._reached.wait()


class Probe:
    """Samples the maximum memory and the longest blocking of the event loop, in each iteration.

    Blocking is measured as thread time, which excludes other processes.
    """

    def __init__(self) -> None:
        self.memory = 0
        self.blocked = 0.0
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            self.memory = max(self.memory, anonymous())
            began = time.thread_time()
            await asyncio.sleep(0.001)
            self.blocked = max(self.blocked, time.thread_time() - began)

    def end(self) -> None:
        self._task.cancel()


def anonymous() -> int:
    """Return the bytes of resident anonymous memory."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


def settle() -> None:
    gc.collect()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


async def measure(choice: str, objects: int, events: int) -> dict[str, Any]:
    """Measure all figures of one choice."""
    object_type, options = CHOICES[choice]
    if choice == "V1Pod":
        from kubernetes_asyncio.client import V1Pod as object_type  # noqa: N813
    protobuf = "protobuf" in choice
    pods = Pods(objects, protobuf)
    source = Source(pods, protobuf)
    handler = Handler(name_reader(choice))
    informer: SharedIndexInformer[Any] = SharedIndexInformer(
        source, object_type, indexers={NAMESPACE_INDEX: meta_namespace_index_func}, **options
    )
    informer.add_event_handler(handler)
    settle()
    before, tracked_before = anonymous(), len(gc.get_objects())
    probe = Probe()
    cpu, wall = time.process_time(), time.perf_counter()
    async with informer:
        await informer.wait_synced()
        await handler.until(objects)
        cpu, wall = time.process_time() - cpu - source.busy, time.perf_counter() - wall
        await asyncio.sleep(3 if "compress" in choice else 0.1)  # for the last dictionary
        probe.end()
        settle()
        settled = anonymous() - before
        tracked = len(gc.get_objects()) - tracked_before
        figures = {
            "memory": settled / objects,
            "resident": anonymous(),
            "peak": max(1.0, (probe.memory - before) / settled),
            "tracked": tracked / objects,
            "sync_cpu": cpu / objects * 1e6,
            "sync_wall": wall,
            "held": probe.blocked * 1000,
        }
        figures["event"] = await event_cost(source, handler, pods.changes(events))
        return figures | reads(choice, informer)


async def event_cost(source: Source, handler: Handler, batches: list[list[memoryview]]) -> float:
    """Return the CPU microseconds per event, from the watch to the handler: the minimum of some rounds."""
    costs: list[float] = []
    size = max(1, len(batches) // ROUNDS)
    for begin in range(0, len(batches), size):
        some = batches[begin : begin + size]
        events = sum(map(len, some))
        goal = handler.seen + events
        began = time.process_time()
        for batch in some:
            source.batches.put_nowait(batch)
        await handler.until(goal)
        costs.append((time.process_time() - began) / events * 1e6)
    return min(costs)


def name_reader(choice: str) -> Callable[[Any], Any]:
    if choice == "dict":
        return lambda obj: obj["metadata"]["name"]
    return lambda obj: obj.metadata.name


def reads(choice: str, informer: SharedIndexInformer[Any]) -> dict[str, float | None]:
    """Return the microseconds of each kind of read, or None where it does not exist."""
    some = informer.store.list()[:2000]
    node = field("spec.nodeName")
    whole: Callable[[Any], Any] | None = None
    if choice.startswith("KubeObject"):
        whole = KubeObject.to_dict
    given = {
        "read_labels": lambda: informer.lister.list("app=none"),
        "read_field": lambda: sum(node(obj) is None for obj in some),
        "read_whole": None if whole is None else lambda: sum(whole(obj) is None for obj in some),
    }
    sizes = {"read_labels": len(informer.store)}
    figures: dict[str, float | None] = {}
    for name, function in given.items():
        if function is None:
            figures[name] = None
            continue
        best = min(_time(function) for _ in range(5))
        figures[name] = best / sizes.get(name, len(some)) * 1e6
    return figures


def _time(function: Callable[[], Any]) -> float:
    began = time.thread_time()
    function()
    return time.thread_time() - began


def table(figures: dict[str, dict[str, Any]]) -> str:
    """Return the table in Markdown."""
    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "memory": ("memory per pod", lambda v: f"{v / 1000:.2f} KB"),
        "peak": ("peak of the sync", lambda v: f"{v:.2f}×"),
        "sync_cpu": ("CPU per pod of the sync", lambda v: f"{v:.0f} µs"),
        "event": ("CPU per event", lambda v: f"{v:.0f} µs"),
        "read_field": ('`field("spec.nodeName")`', lambda v: f"{v:.1f} µs"),
        "read_labels": ("a label selector", lambda v: f"{v:.1f} µs"),
        "read_whole": ("`to_dict()`", lambda v: "as it is" if v is None else f"{v:.0f} µs"),
        "tracked": ("objects the collector sees", lambda v: f"{v:.1f}"),
    }
    lines = [
        "| object type | " + " | ".join(title for title, _ in columns.values()) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for choice, measured in figures.items():
        lines.append(
            f"| {choice} | " + " | ".join(show(measured[name]) for name, (_, show) in columns.items()) + " |"
        )
    return "\n".join(lines)


def _alone(choice: str, objects: int, events: int) -> dict[str, Any]:
    """Measure one choice in its own process."""
    print(choice, file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks.memory", "--alone", "--choice", choice]
    command += ["--objects", str(objects // 10 if choice in LARGE else objects), "--events", str(events)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, Any] = json.loads(output)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--choice", action="append", choices=list(CHOICES), help="default: all")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--alone", action="store_true", help="measure one choice in this process")
    options = parser.parse_args()
    chosen = options.choice or list(CHOICES)
    if options.alone:
        print(json.dumps(asyncio.run(measure(chosen[0], options.objects, options.events))))
        return
    Pods(0)
    with keep_memory(Console(stderr=True)) as note:
        figures = {choice: _alone(choice, options.objects, options.events) for choice in chosen}
    print(f"{options.objects} pods; {options.objects // 10} of {' and of '.join(LARGE)}\n\n{table(figures)}")
    if note:
        print(f"\n{note}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
