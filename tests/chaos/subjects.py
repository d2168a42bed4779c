"""The subjects: our informers and client-go's, with the same interface."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from aioinformer import (
    ApiError,
    Client,
    DeletedFinalStateUnknown,
    KubeObject,
    ListWatch,
    ResourceEventHandler,
    SharedIndexInformer,
    Transport,
)
from aioinformer._core.tasks import finish
from aioinformer.client.transport import (
    JSON,
    READ_TIMEOUT,
    ByteStream,
    Change,
    Query,
)
from tests.e2e.api import Resource
from tests.e2e.witness import versions_in_cache
from tests.go_build import CACHE, GoBuild

from ..transports import Forwarding

Versions = dict[str, str]
"""The resourceVersion of each object of a collection, by its key."""

CLIENT_GO = GoBuild(
    "client-go 0.36",
    Path(__file__).resolve().parent / "clientgo",
    {"informers": ("build", "./informers")},
    cache=CACHE / "chaos",
    purpose="make chaos compares with client-go itself",
    expectation="half a minute the first time",
)

WITHIN_A_DUMP = 10.0


class RecordedRequest(NamedTuple):
    """A request, whether or not it reached the server.

    Attributes:
        time: Loop time of its response or failure.
        what: Method, path and query.
        status: The response's status; 0 without a response.
    """

    time: float
    what: str
    status: int


class Subject(ABC):
    """Informers of several collections in one namespace.

    Attributes:
        name: The implementation's name.
        shadows: For each collection the state that its handler's calls add up to.
        missed: For each collection the number of deletions that were found by listing.
        illegal: Handler calls that cannot follow the calls before them.
        requests: All requests.
    """

    name: str

    def __init__(self, resources: Sequence[Resource]) -> None:
        self.resources = resources
        self.shadows: dict[str, Versions] = {resource.plural: {} for resource in resources}
        self.missed: dict[str, int] = defaultdict(int)
        self.illegal: list[str] = []
        self.requests: list[RecordedRequest] = []
        self._news = asyncio.Event()

    @abstractmethod
    async def caches(self) -> dict[str, Versions]:
        """Return the contents of the caches."""

    async def until(self, condition: Callable[[], object], timeout: float) -> float:
        """Wait until a condition holds for the handlers' calls; return the loop time when it did."""
        async with asyncio.timeout(timeout):
            while not condition():
                self._news.clear()
                await self._news.wait()
        return asyncio.get_running_loop().time()

    def record_call(self, resource: str, kind: str, key: str, version: str) -> None:
        """Record a handler's call: "add", "update", "delete", or "missed" for a tombstone."""
        shadow = self.shadows[resource]
        if (key in shadow) != (kind != "add"):
            self.illegal.append(f"{kind} of {resource} {key}, which was at {shadow.get(key)}")
        if kind in ("add", "update"):
            shadow[key] = version
        else:
            shadow.pop(key, None)
            self.missed[resource] += kind == "missed"
        self._news.set()

    def record_request(self, what: str, status: int) -> None:
        """Record a request."""
        self.requests.append(RecordedRequest(asyncio.get_running_loop().time(), what, status))


class Ours(Subject):
    """The informers of this package."""

    name = "aioinformer"

    def __init__(self, resources: Sequence[Resource]) -> None:
        super().__init__(resources)
        self.informers: dict[str, SharedIndexInformer[KubeObject]] = {}

    async def caches(self) -> dict[str, Versions]:
        return {name: versions_in_cache(informer) for name, informer in self.informers.items()}

    def states(self) -> str:
        return "; ".join(str(informer.state) for informer in self.informers.values())


@asynccontextmanager
async def ours(kubeconfig: Path, namespace: str, resources: Sequence[Resource]) -> AsyncIterator[Ours]:
    """Run the informers during the block."""
    subject = Ours(resources)
    async with AsyncExitStack() as stack:
        transport = _Counted(Client.from_kubeconfig(path=kubeconfig).transport, subject)
        client = await stack.enter_async_context(Client(transport))
        for resource in resources:
            list_watch = ListWatch.for_resource(client, resource.api_version, resource.plural, namespace)
            informer = SharedIndexInformer(list_watch, KubeObject)
            informer.add_event_handler(_Handler(subject, resource.plural))
            subject.informers[resource.plural] = await stack.enter_async_context(informer)
        yield subject


class _Handler(ResourceEventHandler[KubeObject]):
    def __init__(self, subject: Ours, resource: str) -> None:
        self._subject = subject
        self._resource = resource

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._subject.record_call(self._resource, "add", obj.key, obj.resource_version)

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._subject.record_call(self._resource, "update", new.key, new.resource_version)

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[KubeObject]) -> None:
        kind = "missed" if isinstance(obj, DeletedFinalStateUnknown) else "delete"
        self._subject.record_call(self._resource, kind, obj.key, "")


class _Counted(Forwarding):
    """A Transport that reports every request."""

    def __init__(self, transport: Transport, subject: Subject) -> None:
        super().__init__(transport)
        self._subject = subject

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        with self._count(path, query):
            return await self._transport.get(path, query, timeout=timeout)

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        with self._count(path, query, change.method):
            return await self._transport.send(change, path, query, timeout=timeout)

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        with self._count(path, query):
            return await self._transport.stream(path, query, idle_timeout=idle_timeout, accept=accept)

    @contextmanager
    def _count(self, path: str, query: Query, method: str = "GET") -> Iterator[None]:
        status = 0
        try:
            yield
            status = 200
        except ApiError as error:
            status = error.status
            raise
        finally:
            self._subject.record_request(f"{method} {path}?{urlencode(query)}", status)


class Theirs(Subject):
    """client-go's informers, in a process of their own."""

    name = "client-go"

    def __init__(self, resources: Sequence[Resource], process: asyncio.subprocess.Process) -> None:
        super().__init__(resources)
        self._process = process
        self._dumps: list[dict[str, Versions]] = []

    async def caches(self) -> dict[str, Versions]:
        assert self._process.stdin is not None
        self._process.stdin.write(b"dump\n")
        await self.until(lambda: self._dumps, WITHIN_A_DUMP)
        return self._dumps.pop()

    async def listen(self) -> None:
        """Read the process's output until its end."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self._take(json.loads(line))

    def _take(self, said: Mapping[str, Any]) -> None:
        if "caches" in said:
            self._dumps.append(said["caches"])
            self._news.set()
        elif "request" in said:
            self.record_request(said["request"], said.get("status", 0))
        else:
            self.record_call(said["resource"], said["kind"], said["key"], said.get("version", ""))


@asynccontextmanager
async def theirs(
    kubeconfig: Path, namespace: str, resources: Sequence[Resource], log: Path
) -> AsyncIterator[Theirs]:
    """Run the informers during the block; client-go's log goes into a file."""
    program = await asyncio.to_thread(CLIENT_GO.ensure) / "informers"
    words = [f"{resource.api_version}/{resource.plural}" for resource in resources]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            program, str(kubeconfig), namespace, *words,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors, limit=16 * 1024 * 1024,
        )  # fmt: skip
    subject = Theirs(resources, process)
    listening = asyncio.create_task(subject.listen())
    try:
        yield subject
    finally:
        process.kill()
        await finish(listening)
        await process.wait()
