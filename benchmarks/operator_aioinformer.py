"""aioinformer's Manager and Controller as a client of the benchmarks: see CONTRACT.md, "Operators"."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import aioinformer
from aioinformer import Client, EventRecorder, KubeObject
from aioinformer.operator import Controller, Manager, Request

from .clients.peer import Handler, Options, Peer, kubeconfig_of


class QuotaError(Exception):
    """A reconcile fails, since the scenario wants it to."""


class AioInformerOperator(Peer):
    """Run one controller of pods with default settings."""

    version = f"aioinformer {aioinformer.__version__}"
    shape = "kubeobject"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", informers=1, handlers=1, form="kubeobject")
        self._stack = AsyncExitStack()
        self._recorder: EventRecorder | None = None

    async def open(self) -> None:
        options = self.options
        folder = Path(self._stack.enter_context(TemporaryDirectory()))
        (folder / "config").write_text(json.dumps(kubeconfig_of(options.server, options.ca)))
        client = await self._stack.enter_async_context(Client.from_kubeconfig(path=folder / "config"))
        await client.get_json("/version")
        self._manager = Manager(client, use_watch_list=options.initial == "watchlist")
        if options.failures == "events":
            self._recorder = EventRecorder(client, "pods")
        pods = self._manager.for_resource("v1", "pods")
        self._manager.add(Controller("pods", self._reconcile, pods, recorder=self._recorder))

    async def _reconcile(self, request: Request[KubeObject]) -> None:
        if request.object is not None:
            self.notify(request.object)
            if self.is_failing:
                raise QuotaError(f"no quota for {request.object.name}")

    async def sync(self) -> None:
        self.spawn(self._manager.run())
        if self._recorder is not None:
            self.spawn(self._recorder.run())

    async def close(self) -> None:
        await self._stack.aclose()
