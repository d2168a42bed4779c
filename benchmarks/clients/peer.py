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


class Reads(NamedTuple):
    """Reads of a cache; each looks at the names of all that it gives."""

    get: Callable[[], object]
    by_index: Callable[[], object]
    label: Callable[[], object]


def kubeconfig_of(server: str, ca: str) -> dict[str, Any]:
    """A kubeconfig of the server, for clients that read one."""
    cluster = {"server": server} | ({"certificate-authority": ca} if ca else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "benchmark", "cluster": cluster}],
        "contexts": [{"name": "benchmark", "context": {"cluster": "benchmark", "user": "nobody"}}],
        "users": [{"name": "nobody", "user": {}}],
        "current-context": "benchmark",
    }


class Peer:
    """A client. Subclasses say what they are.

    Args:
        options: The arguments.
        handlers: Those to tell, for each informer the same.
    """

    version: str

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        self.options = options
        self.handlers = handlers
        self.tasks: set[asyncio.Task[None]] = set()
        """What runs until the end; the driver fails with any that fails."""

    async def open(self) -> None:
        """Set up, and ask for ``/version``."""
        raise NotImplementedError

    async def sync(self) -> None:
        """Start, and give back control when the cache holds everything. Handlers may be told later."""
        raise NotImplementedError

    def reads(self) -> Reads:
        """Raises UnsupportedError where there is no cache to read."""
        raise UnsupportedError(f"{type(self).__name__} has no cache to read")

    async def close(self) -> None:
        """Release what ``open`` acquired."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.add(asyncio.create_task(work))

    def tell(self, obj: Any) -> None:
        for handler in self.handlers:
            handler(obj)

    def require(self, **supported: Any) -> None:
        """Raises UnsupportedError unless the options have these values."""
        for name, value in supported.items():
            if (asked := getattr(self.options, name)) != value:
                raise UnsupportedError(f"{name} {asked} is not for {type(self).__name__}")
