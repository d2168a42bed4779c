"""kopf as a client of the benchmarks: see CONTRACT.md, "Operators".

kopf writes the last handled state and its progress into the objects. Here both are kept in memory, so that the
benchmark measures kopf and not the server's handling of these writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import aiohttp
import kopf
from kopf._cogs.configs.diffbase import DiffBaseStorage
from kopf._cogs.configs.progress import ProgressStorage
from kopf._cogs.structs.credentials import ConnectionInfo, Vault, VaultKey

from .clients.peer import Handler, Options, Peer, UnsupportedError

PAGE = 500


class DiffBaseInMemory(DiffBaseStorage):  # type: ignore[misc, unused-ignore]
    """The last handled states by uid. kopf computes the diffs for its handlers from them."""

    def __init__(self) -> None:
        super().__init__()
        self._essences: dict[str, Any] = {}

    def fetch(self, *, body: Mapping[str, Any]) -> Any:
        return self._essences.get(body["metadata"]["uid"])

    def store(self, *, body: Mapping[str, Any], patch: Any, essence: Any) -> None:
        self._essences[body["metadata"]["uid"]] = essence


class ProgressInMemory(ProgressStorage):  # type: ignore[misc, unused-ignore]
    """The handlers that have not been called or must be retried, by uid."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[tuple[str, str], Any] = {}

    def fetch(self, *, key: str, body: Mapping[str, Any]) -> Any:
        return self._records.get((body["metadata"]["uid"], key))

    def store(self, *, key: str, record: Any, body: Mapping[str, Any], patch: Any) -> None:
        self._records[body["metadata"]["uid"], key] = record

    def purge(self, *, key: str, body: Mapping[str, Any], patch: Any) -> None:
        self._records.pop((body["metadata"]["uid"], key), None)

    def touch(self, *, body: Mapping[str, Any], patch: Any, value: str | None) -> None:
        """Do nothing: a write would make the server send the object again."""

    def clear(self, *, essence: Any) -> Any:
        return essence


class KopfOperator(Peer):
    """Handlers of pods.

    Forms: ``handlers`` are kopf's create, update and resume handlers, which are retried on failure and get a diff.
    ``events`` is its low-level handler, which is called once for every event.
    """

    version = f"kopf {version('kopf')}"
    shape = "dict"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", informers=1, handlers=1)
        if options.form not in ("handlers", "events"):
            raise UnsupportedError(f"kopf has no form {options.form}")

    async def open(self) -> None:
        options = self.options
        logging.getLogger("kopf").setLevel(logging.WARNING)
        self._registry = kopf.OperatorRegistry()
        if options.form == "handlers":
            for cause in (kopf.on.create, kopf.on.update, kopf.on.resume):
                cause("v1", "pods", registry=self._registry)(self._reconcile)
        else:
            kopf.on.event("v1", "pods", registry=self._registry)(self._reconcile)
        self._settings = kopf.OperatorSettings()
        self._settings.posting.enabled = False
        self._settings.watching.chunk_size = PAGE
        self._settings.watching.initial_streaming = options.initial == "watchlist"
        self._settings.persistence.diffbase_storage = DiffBaseInMemory()
        self._settings.persistence.progress_storage = ProgressInMemory()
        self._vault = Vault()
        connection = ConnectionInfo(server=options.server, ca_path=options.ca or None)
        await self._vault.populate({VaultKey("benchmark"): connection})
        async with aiohttp.ClientSession() as session:  # kopf's own session starts with the operator
            await session.get(f"{options.server}/version", ssl=False)

    async def _reconcile(self, body: kopf.Body, **_: Any) -> None:
        self.notify(body)

    async def sync(self) -> None:
        self.spawn(
            kopf.operator(
                registry=self._registry,
                settings=self._settings,
                vault=self._vault,
                standalone=True,
                clusterwide=True,
            )
        )
        await asyncio.sleep(0)
