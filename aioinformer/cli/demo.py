"""``aioinformer demo``: an informer on an embedded API server that is full of life and trouble."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from functools import partial
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .._core.tasks import run_until_first
from ..client import Client
from ..deltas import DeletedFinalStateUnknown
from ..errors import AioInformerError
from ..handlers import ResourceEventHandler
from ..informer import SharedIndexInformer
from ..listwatch import ListWatch
from ..objects.kube_object import KubeObject
from ..reflector import Reflector
from ..testing import APIServer
from ..testing.workload import Troubles, Workload
from .output import Screen, printing

RATE = 200.0
TROUBLE_EVERY = 5.0
SETTLE = 40.0
"""Seconds within which cache and server must be equal once the trouble is over; the backoff's cap is 30."""


async def run_demo(seconds: float | None, pods: int, seed: int) -> None:
    """Show an informer at work.

    Args:
        seconds: Ends by itself after this long, with a summary; None runs until cancelled.
        pods: How many there are to begin with.
        seed: Of the workload and its troubles.

    Raises:
        AioInformerError: Cache and server were not equal at the end.
    """
    async with APIServer(seed=seed) as server:
        workload, troubles = Workload(server, seed), Troubles(server, seed)
        workload.populate(pods)
        async with Client.from_url(server.url) as client:
            news = _News()
            informer = SharedIndexInformer(
                ListWatch.for_resource(client, "v1", "pods"),
                KubeObject,
                indexers={"node": lambda pod: [pod["spec"]["nodeName"]]},
                watch_error_handler=news.on_error,
            )
            informer.add_event_handler(news)
            async with informer:
                show = _Show(informer, server, workload, news)
                try:
                    await run_until_first(
                        partial(workload.run, RATE),
                        partial(troubles.run, TROUBLE_EVERY, news.trouble),
                        show.run,
                        partial(_sleep, seconds),
                    )
                finally:
                    show.end()
                server.faults.clear()
                await _settle(informer, server, news)
                show.summary(troubles)


class _News(ResourceEventHandler[KubeObject]):
    """What the handler was told; ``pods`` is a copy of the collection made of nothing else."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.log: deque[str] = deque(maxlen=8)

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self.counts["initial adds" if is_in_initial_list else "adds"] += 1
        self.pods[obj.key] = obj.resource_version

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self.counts["re-creations seen as updates" if old.uid != new.uid else "updates"] += 1
        self.pods[new.key] = new.resource_version

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        self.counts["deletions found by a list" if missed else "deletions"] += 1
        del self.pods[obj.key]

    def trouble(self, kind: str) -> None:
        self._note(f"server: {kind}")

    def on_error(self, reflector: Reflector[Any], error: Exception) -> None:
        self._note(f"informer: {error}")

    def _note(self, line: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {line}")


class _Show:
    """The picture: a live one on a terminal, a line each second elsewhere."""

    def __init__(
        self, informer: SharedIndexInformer[KubeObject], server: APIServer, workload: Workload, news: _News
    ) -> None:
        self._informer = informer
        self._server = server
        self._workload = workload
        self._news = news
        self._console = Screen()
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    async def run(self) -> None:
        if self._live is None:
            self._print(
                f"an API server at {self._server.url}; try: aioinformer watch pods --server {self._server.url}"
            )
        if self._live is not None:
            self._live.start()
        while True:
            if self._live is not None:
                self._live.update(self._picture(), refresh=True)
                await asyncio.sleep(0.2)
            else:
                self._print(f"{self._informer.state} | server: {len(self._server_pods())} pods")
                await asyncio.sleep(1)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()

    def summary(self, troubles: Troubles) -> None:
        reflector = self._informer.state.reflectors[0]
        pods = len(self._informer.store)
        self._print(
            f"cache equal to the server: {pods} pods, every resourceVersion the same; so is the handler's copy"
        )
        self._print(f"workload: {_counts(self._workload.done)}")
        self._print(f"troubles: {_counts(troubles.done) or 'none'}")
        self._print(f"handler:  {_counts(self._news.counts)}")
        self._print(
            f"requests: {reflector.lists} lists, {reflector.watches} watches, {reflector.events} events"
        )

    def _server_pods(self) -> dict[str, str]:
        return self._server.snapshot("v1", "pods")

    def _picture(self) -> Group:
        return Group(
            Text.assemble(
                ("aioinformer demo", "bold"),
                f": pods of an embedded API server, {RATE:.0f} operations a second",
            ),
            f"watch it too: aioinformer watch pods --server {self._server.url}",
            f"{self._informer.state}",
            self._nodes(),
            f"handler:  {_counts(self._news.counts)}",
            f"workload: {_counts(self._workload.done)}",
            "",
            *self._news.log,
        )

    def _nodes(self) -> Table:
        table = Table("node", "pods", "Running", title="the informer's index by node", title_justify="left")
        for node in sorted(self._informer.indexer.list_index_func_values("node")):
            pods = self._informer.indexer.by_index("node", node)
            running = sum(pod["status"]["phase"] == "Running" for pod in pods)
            table.add_row(node, str(len(pods)), str(running))
        return table

    def _print(self, line: str) -> None:
        with printing():
            self._console.print(line, highlight=False, soft_wrap=True)


async def _settle(informer: SharedIndexInformer[KubeObject], server: APIServer, news: _News) -> None:
    """Wait until the cache and the handler's copy are equal to the server."""
    wanted = server.snapshot("v1", "pods")
    deadline = asyncio.get_running_loop().time() + SETTLE
    while not (wanted == {pod.key: pod.resource_version for pod in informer.store.list()} == news.pods):
        if asyncio.get_running_loop().time() > deadline:
            raise AioInformerError(f"cache and server still differ after {SETTLE:.0f} s: {informer.state}")
        await asyncio.sleep(0.05)


async def _sleep(seconds: float | None) -> None:
    if seconds is None:
        await asyncio.get_running_loop().create_future()  # until cancelled
    else:
        await asyncio.sleep(seconds)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in counts.items())
