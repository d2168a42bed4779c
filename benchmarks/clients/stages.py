"""aioinformer up to one stage: the difference between two stages is the cost of the later one.

All stages read the same bytes through the same connection. The whole pipeline with a handler is the client
``aioinformer``; the lower bound for reading these bytes is the client ``floor``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aioinformer
from aioinformer import Client, DeltaFIFO, Indexer, KubeObject, ListOptions, ListWatch, Reflector
from aioinformer.cache import NAMESPACE_INDEX, Config, Controller, Delta, meta_namespace_index_func
from aioinformer.client.transport import PROTOBUF
from aioinformer.controller import apply_in_steps
from aioinformer.listwatch.frames import Frames

from .bare import lines_in
from .peer import Options, Peer, UnsupportedError
from .tally import Tally

STAGES = ("read", "lines", "decoded", "queued", "stored")
CHANGES = ("ADDED", "MODIFIED")


class Stages(Peer):
    """The pipeline up to the stage that ``--form`` names, without a handler."""

    version = f"aioinformer {aioinformer.__version__}"

    def __init__(self, options: Options, tally: Tally) -> None:
        super().__init__(options, [])
        self.require(initial="list", informers=1, handlers=1, handler="metadata", probe=False)
        if options.form not in STAGES:
            raise UnsupportedError(f"there is no stage {options.form}")
        self._count = tally.count

    async def open(self) -> None:
        self._client = Client.from_url(self.options.server)
        await self._client.get_json("/version")
        self._pods = ListWatch.for_resource(
            self._client, "v1", "pods", protobuf=self.options.encoding == "protobuf"
        )

    async def close(self) -> None:
        await self._client.close()

    async def sync(self) -> None:
        indexer: Indexer[Any] = Indexer(indexers={NAMESPACE_INDEX: meta_namespace_index_func})
        match self.options.form:
            case "read":
                self.spawn(self._read(await self._list()))
            case "lines":
                self.spawn(self._read_lines(await self._list()))
            case "decoded":
                self.spawn(Reflector(self._pods, KubeObject, _Counter(self), use_watch_list=False).run())
            case "queued":
                self.spawn(self._controller(DeltaFIFO(known_objects=indexer), self._drop).run())
            case "stored":
                self._indexer = indexer
                self.spawn(self._controller(DeltaFIFO(known_objects=indexer), self._store).run())

    def count(self, changes: int) -> None:
        """Count changes that reached the stage."""
        if changes:
            self._count(changes)

    async def _list(self) -> str:
        """Read the list, drop it, and return its version."""
        async for piece in self._pods.list_chunks(ListOptions()):
            self.count(len(piece.items))
        return piece.resource_version

    async def _read(self, version: str) -> None:
        query = [("watch", "true"), ("resourceVersion", version)]
        if self.options.encoding == "json":
            async for chunk in await self._client.stream("/api/v1/pods", query):
                self.count(lines_in(chunk, len(chunk)))
        else:
            frames = Frames()
            async for chunk in await self._client.stream("/api/v1/pods", query, accept=PROTOBUF):
                self.count(len(frames.feed(chunk)))

    async def _read_lines(self, version: str) -> None:
        async for events in await self._pods.watch(ListOptions(resource_version=version)):
            changes = events if isinstance(events, list) else [events]
            self.count(sum(event.type in CHANGES for event in changes))

    def _controller(self, queue: DeltaFIFO, process: Any) -> Controller:
        options: Any = {"use_watch_list": False}
        return Controller(
            Config(queue, self._pods, process, KubeObject, process_batch=process, reflector_options=options)
        )

    def _drop(self, deltas: list[Delta], is_in_initial_list: bool) -> None:
        self.count(len(deltas))

    def _store(self, deltas: list[Delta], is_in_initial_list: bool) -> None:
        self.count(len(list(apply_in_steps(self._indexer, deltas, is_in_initial_list))))


class _Counter:
    """A store that only counts."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    async def apply(self, deltas: Sequence[Delta]) -> None:
        self._stages.count(len(deltas))

    def replace(self, objects: Sequence[Any], resource_version: str) -> None:
        self._stages.count(len(objects))

    def add(self, obj: Any) -> None:
        self._stages.count(1)

    update = delete = add

    def resync(self) -> None:
        """Drop the objects."""
