"""``aioinformer demo``: an informer on a busy embedded API server that injects faults."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import replace
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
from ..informer import InformerState, SharedIndexInformer
from ..listwatch import ListWatch
from ..objects.kube_object import KubeObject
from ..reflector import Phase, Reflector
from ..testing import APIServer
from ..testing.workload import Troubles, Workload
from .output import Screen, convert_write_errors

RATE = 200.0
TROUBLE_EVERY = 5.0
SETTLE_TIMEOUT = 40.0
"""Seconds after the last fault until which cache and server must be equal; the back-off is at most 30 s."""


async def run_demo(seconds: float | None, pods: int, seed: int) -> None:
    """Show an informer at work.

    Args:
        seconds: Stop after this many seconds and print a summary; None runs until cancelled.
        pods: How many pods to start with.
        seed: The seed of the workload and its faults.

    Raises:
        AioInformerError: Cache and server were not equal at the end.
    """
    async with APIServer(seed=seed) as server:
        workload, troubles = Workload(server, seed), Troubles(server, seed)
        workload.populate(pods)
        async with Client.from_url(server.url) as client:
            recorder = _Recorder()
            informer = SharedIndexInformer(
                ListWatch.for_resource(client, "v1", "pods"),
                KubeObject,
                indexers={"node": lambda pod: [pod["spec"]["nodeName"]]},
                watch_error_handler=recorder.on_error,
            )
            informer.add_event_handler(recorder)
            async with informer:
                show = _Show(informer, server, workload, recorder)
                try:
                    await run_until_first(
                        partial(workload.run, RATE),
                        partial(troubles.run, TROUBLE_EVERY, show.trouble),
                        show.run,
                        partial(_sleep, seconds),
                    )
                finally:
                    show.end()
                server.faults.clear()
                await _settle(informer, server, recorder)
                show.summary(troubles)


class _Recorder(ResourceEventHandler[KubeObject]):
    """A handler that counts its calls; ``pods`` is a copy of the collection, built from these calls only."""

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

    def on_error(self, reflector: Reflector[Any], error: Exception) -> None:
        self.note(f"the informer notices: {error}")

    def note(self, line: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {line}")


class _Show:
    """The output: a live display on a terminal, otherwise a line per second."""

    def __init__(
        self,
        informer: SharedIndexInformer[KubeObject],
        server: APIServer,
        workload: Workload,
        recorder: _Recorder,
    ) -> None:
        self._informer = informer
        self._server = server
        self._workload = workload
        self._recorder = recorder
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
                self._live.update(self._display(), refresh=True)
                await asyncio.sleep(0.2)
            else:
                self._print(f"{render_state(self._informer.state)} | server: {len(self._server_pods())} pods")
                await asyncio.sleep(1)

    def trouble(self, kind: str) -> None:
        line = f"the demo makes a trouble: {kind}"
        self._recorder.note(line)
        if self._live is None:
            self._print(line)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()

    def summary(self, troubles: Troubles) -> None:
        reflector = self._informer.state.reflectors[0]
        pods = len(self._informer.store)
        self._print(
            f"cache equal to the server: {pods} pods with the same resourceVersions; so is the handler's copy"
        )
        self._print(f"workload: {_counts(self._workload.done)}")
        self._print(f"troubles: {_counts(troubles.done) or 'none'}")
        self._print(f"handler:  {_counts(self._recorder.counts)}")
        self._print(
            f"requests: {reflector.lists} lists, {reflector.watches} watches, {reflector.events} events"
        )

    def _server_pods(self) -> dict[str, str]:
        return self._server.snapshot("v1", "pods")

    def _display(self) -> Group:
        return Group(
            Text.assemble(
                ("aioinformer demo", "bold"),
                f": pods of an embedded API server, {RATE:.0f} operations per second",
            ),
            f"watch it too: aioinformer watch pods --server {self._server.url}",
            render_state(self._informer.state),
            self._nodes(),
            f"handler:  {_counts(self._recorder.counts)}",
            f"workload: {_counts(self._workload.done)}",
            "",
            *self._recorder.log,
        )

    def _nodes(self) -> Table:
        table = Table("node", "pods", "Running", title="the informer's index by node", title_justify="left")
        for node in sorted(self._informer.indexer.list_index_func_values("node")):
            pods = self._informer.indexer.by_index("node", node)
            running = sum(pod["status"]["phase"] == "Running" for pod in pods)
            table.add_row(node, str(len(pods)), str(running))
        return table

    def _print(self, line: str) -> None:
        with convert_write_errors():
            self._console.print(line, highlight=False, soft_wrap=True)


def render_state(state: InformerState) -> str:
    """Return a state as text; its last error as what it is here, a trouble that the demo made."""
    if (error := state.last_error) is None:
        return str(state)
    quiet = replace(
        state, reflectors=tuple(replace(reflector, last_error=None) for reflector in state.reflectors)
    )
    doing = "recovered" if state.phase is Phase.WATCHING else "recovering"
    return f"{quiet}; {doing} from the demo's trouble: {error}"


async def _settle(informer: SharedIndexInformer[KubeObject], server: APIServer, recorder: _Recorder) -> None:
    """Wait until the cache and the handler's copy are equal to the server."""
    wanted = server.snapshot("v1", "pods")
    deadline = asyncio.get_running_loop().time() + SETTLE_TIMEOUT
    while not (wanted == {pod.key: pod.resource_version for pod in informer.store.list()} == recorder.pods):
        if asyncio.get_running_loop().time() > deadline:
            raise AioInformerError(
                f"cache and server still differ after {SETTLE_TIMEOUT:.0f} s: {informer.state}"
            )
        await asyncio.sleep(0.05)


async def _sleep(seconds: float | None) -> None:
    if seconds is None:
        await asyncio.get_running_loop().create_future()  # until cancelled
    else:
        await asyncio.sleep(seconds)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in counts.items())
