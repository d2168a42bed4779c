"""A process that dies between two requests: what it does from then on does not reach the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

from aioinformer import Client, TransportError
from aioinformer._core.tasks import finish
from aioinformer.client.transport import (
    JSON,
    READ_TIMEOUT,
    ByteStream,
    Change,
    Query,
    Transport,
)

from ...transports import Forwarding

T = TypeVar("T")


class Death(NamedTuple):
    """When a process dies.

    Attributes:
        request: At which of its requests, counted from 1.
        arrives: Whether that one still reaches the server; its answer is lost either way.
    """

    request: int
    arrives: bool


class Mortal(Forwarding):
    """The transport of a process that dies.

    Args:
        transport: What its requests go over.
        death: When; None for never.

    Attributes:
        asked: Its requests.
        died: Set when it is dead.
    """

    def __init__(self, transport: Transport, death: Death | None = None) -> None:
        super().__init__(transport)
        self._death = death
        self.asked: list[str] = []
        self.died = asyncio.Event()

    async def live(self, run: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        """Run what it does, with a client of its own, until it dies or is cancelled."""
        client = Client(self)
        running = asyncio.create_task(run(client))
        dying = asyncio.create_task(self.died.wait())
        try:
            await asyncio.wait({running, dying}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            try:
                await finish(running, dying)
            finally:
                await client.close()
        if not running.cancelled():
            running.result()

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        return await self._ask(f"GET {path}", lambda: self._transport.get(path, query, timeout=timeout))

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        return await self._ask(
            f"{change.method} {path}", lambda: self._transport.send(change, path, query, timeout=timeout)
        )

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        return await self._ask(
            f"STREAM {path}",
            lambda: self._transport.stream(path, query, idle_timeout=idle_timeout, accept=accept),
            lambda body: body.aclose(),
        )

    async def _ask(
        self,
        what: str,
        request: Callable[[], Awaitable[T]],
        lose: Callable[[T], Awaitable[None]] | None = None,
    ) -> T:
        if self.died.is_set():
            raise TransportError("this process is dead")
        self.asked.append(what)
        if self._death is None or len(self.asked) < self._death.request:
            return await request()
        try:
            if self._death.arrives:
                answer = await request()
                if lose is not None:
                    await lose(answer)
        finally:
            self.died.set()
        raise TransportError("this process has just died")


@asynccontextmanager
async def keep_running(*processes: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """They run while this is entered.

    Raises:
        Exception: What ended one of them.
    """
    tasks = [asyncio.create_task(process) for process in processes]
    try:
        yield
    finally:
        await finish(*tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
