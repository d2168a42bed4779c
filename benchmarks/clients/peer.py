"""The interface between the driver and a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple

Handler = Callable[[Any], None]
"""Called for an object that was added or changed."""


class UnsupportedError(Exception):
    """The client cannot do what the scenario wants."""


@dataclass(frozen=True)
class Options:
    """The arguments of CONTRACT.md."""

    server: str
    ca: str
    encoding: str
    initial: str
    objects: int
    handlers: int
    handler: str
    informers: int
    form: str
    loop: str
    probe: bool
    failures: str


class Reads(NamedTuple):
    """Reads of a cache; each uses the names of all returned objects."""

    get: Callable[[], object]
    by_index: Callable[[], object]
    label: Callable[[], object]


def kubeconfig_of(server: str, ca: str) -> dict[str, Any]:
    """Return a kubeconfig of the server, for clients that need one."""
    cluster = {"server": server} | ({"certificate-authority": ca} if ca else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "benchmark", "cluster": cluster}],
        "contexts": [{"name": "benchmark", "context": {"cluster": "benchmark", "user": "anonymous"}}],
        "users": [{"name": "anonymous", "user": {}}],
        "current-context": "benchmark",
    }


class Peer:
    """The base class of the clients.

    Args:
        options: The arguments.
        handlers: The handlers of each informer.
    """

    version: str

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        self.options = options
        self.handlers = handlers
        self.tasks: set[asyncio.Task[None]] = set()
        """Background tasks that run until the end. If one fails, the driver fails with its error."""
        self.is_failing = False
        """Whether every reconcile must fail."""

    async def open(self) -> None:
        """Set up, and ask for ``/version``."""
        raise NotImplementedError

    async def sync(self) -> None:
        """Start, and return once the cache is complete. Handlers may be called later."""
        raise NotImplementedError

    def reads(self) -> Reads:
        """Return reads of the cache. Raises UnsupportedError if there is no cache."""
        raise UnsupportedError(f"{type(self).__name__} has no cache to read")

    async def close(self) -> None:
        """Release what ``open`` acquired."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.add(asyncio.create_task(work))

    def notify(self, obj: Any) -> None:
        for handler in self.handlers:
            handler(obj)

    def require(self, **supported: Any) -> None:
        """Raise UnsupportedError unless the options have these values."""
        for name, value in supported.items():
            if (asked := getattr(self.options, name)) != value:
                raise UnsupportedError(f"{name} {asked} is not for {type(self).__name__}")
