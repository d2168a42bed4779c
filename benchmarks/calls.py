"""Count the Python calls of a lone event and of a lone reconcile: ``python -m benchmarks.calls``.

An event is counted between the socket and the handler; a reconcile between the socket and the end of its work. Unlike
times, calls are nearly the same in every run. They are counted by cProfile: Python functions, each resumption of a
coroutine or generator, and C functions that Python code calls. Events arrive one at a time from the replay server.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from types import CodeType

import uvloop
from rich.console import Console
from rich.table import Table

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.cache import NAMESPACE_INDEX, meta_namespace_index_func
from aioinformer.operator import Context, Controller, Manager, Operator, Request

from .building import build
from .clients.peer import kubeconfig_of
from .harness.processes import ReplayServer
from .harness.run import SERVER, templates

PODS = 100
WARMING = 300
"""Changes before the counted ones."""
RATE = 100.0
"""Changes a second: few enough that each is alone."""

Call = tuple[str, str]
"""Where a call is, such as ``fifo`` or ``aiohttp``, and the function's name."""


def place_of(code: CodeType | str) -> str:
    """Return where a profiled function is: a room of the package, or another package."""
    if isinstance(code, str):
        return "C"
    parts = Path(code.co_filename).parts
    if "aioinformer" in parts:
        end = len(parts) - parts[::-1].index("aioinformer")
        where = parts[end]
    elif "site-packages" in parts:
        where = parts[parts.index("site-packages") + 1]
    else:
        where = Path(code.co_filename).parent.name
    return where


def calls_of(profile: cProfile.Profile) -> Counter[Call]:
    """Return the calls of a profile. A C function counts where it is called."""
    counts: Counter[Call] = Counter()
    for entry in profile.getstats():
        if isinstance(entry.code, str):
            counts["C", entry.code] += entry.callcount
        else:
            counts[place_of(entry.code), entry.code.co_qualname] += entry.callcount
            for called in entry.calls or ():
                if isinstance(called.code, str):
                    counts[place_of(entry.code), called.code] += called.callcount
                    counts["C", called.code] -= called.callcount
    return counts


Handler = Callable[..., None]
"""Called for each change."""


@asynccontextmanager
async def informer_of(client: Client, handle: Handler, *, protobuf: bool = False) -> AsyncIterator[None]:
    """Run an informer with a plain handler."""
    informer = SharedIndexInformer(
        ListWatch.for_resource(client, "v1", "pods", protobuf=protobuf),
        KubeObject,
        indexers={NAMESPACE_INDEX: meta_namespace_index_func},
    )
    informer.add_event_handler(on_add=handle, on_update=handle)
    async with informer:
        yield


@asynccontextmanager
async def operator_of(client: Client, handle: Handler, *, protobuf: bool = False) -> AsyncIterator[None]:
    """Run a manager with one controller, whose reconciler is a coroutine function."""

    async def reconcile(request: Request[KubeObject]) -> None:
        handle()

    manager = Manager(client)
    manager.add(Controller("pods", reconcile, manager.for_resource("v1", "pods", protobuf=protobuf)))
    async with manager:
        yield


@asynccontextmanager
async def declared_of(client: Client, handle: Handler) -> AsyncIterator[None]:
    """Run an Operator with one controller, whose reconciler takes the context."""
    operator = Operator("counted", events=False)

    @operator.controller("pods")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        handle()

    async with operator.manager(client):
        yield


COUNTED: dict[str, Callable[[Client, Handler], AbstractAsyncContextManager[None]]] = {
    "event, JSON": informer_of,
    "event, protobuf": partial(informer_of, protobuf=True),
    "reconcile, JSON": operator_of,
    "reconcile, protobuf": partial(operator_of, protobuf=True),
    "reconcile of an Operator": declared_of,
}
"""What is counted, and what runs meanwhile."""


async def count(server: ReplayServer, what: str, events: int) -> Counter[Call]:
    """Return the calls of a number of events or reconciles."""
    delivered = 0
    all_delivered = asyncio.Event()
    wanted = PODS

    def handle(*_: object) -> None:
        nonlocal delivered
        delivered += 1
        if delivered == wanted:
            all_delivered.set()

    async def expect(more: int) -> None:
        nonlocal wanted
        wanted += more
        all_delivered.clear()
        await asyncio.to_thread(server.flow, more, RATE, 1)
        await all_delivered.wait()

    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config"
        config.write_text(json.dumps(kubeconfig_of(server.http, "")))
        async with Client.from_kubeconfig(path=config) as client, COUNTED[what](client, handle):
            await all_delivered.wait()  # the first list
            await expect(WARMING)
            profile = cProfile.Profile()
            profile.enable()
            await expect(events)
            profile.disable()
    return calls_of(profile)


def table(title: str, counts: Counter[Call], events: int, most: int) -> Table:
    """Return the calls of one event, by place; each with its most frequent functions."""
    made = Table("where", "calls", "most frequent", title=title)
    made.columns[1].justify = "right"
    places: Counter[str] = Counter()
    for (where, _), calls in counts.items():
        places[where] += calls
    made.add_row("all", f"{counts.total() / events:.1f}", "")
    for where, calls in places.most_common():
        if calls / events < 0.1:
            break
        functions = [(calls, name) for (place, name), calls in counts.items() if place == where]
        names = [f"{name} {calls / events:.1f}" for calls, name in sorted(functions, reverse=True)[:most]]
        made.add_row(where, f"{calls / events:.1f}", ", ".join(names))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Count the Python calls of a lone event and a lone reconcile"
    )
    parser.add_argument("--events", type=int, default=600, help="(default: %(default)s)")
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="uvloop")
    parser.add_argument("--most", type=int, default=4, help="functions named in a row (default: %(default)s)")
    given = parser.parse_args()
    built = build([SERVER])
    if SERVER in built.missing:
        sys.exit(built.missing[SERVER])
    console = Console()
    run = uvloop.run if given.loop == "uvloop" else asyncio.run
    with tempfile.TemporaryDirectory() as folder:
        ca = Path(folder) / "ca.pem"
        with ReplayServer(built.programs[SERVER], templates("quick"), ca, [0, 1]) as server:
            for what in COUNTED:
                server.configure(PODS)
                counts = run(count(server, what, given.events))
                console.print(table(f"calls of a lone {what}", counts, given.events, given.most))


if __name__ == "__main__":
    main()
