"""A Transport that answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from aioinformer import TransportError

from ..listwatch.streams import Chunks

Answer = bytes | Exception | None
"""The answer to a request; None for no answer."""

REFUSED = TransportError("refused")
SERVER = "https://server"


class Server:
    """A Transport whose answers the test chooses.

    Attributes:
        asked: ``(path, loop time)`` of each request.
        answer: Returns the next answer.
        asking: The number of requests that wait for their answer.
        is_there: Whether the server is reachable.
    """

    namespace = "default"
    server = SERVER

    def __init__(self, answers: Iterable[Answer] = (), then: Answer = b"ok") -> None:
        self.asked: list[tuple[str, float]] = []
        self.asking = 0
        answered = iter(answers)
        self.answer: Callable[[], Answer] = lambda: next(answered, then)
        self.is_there = True

    def goes_away(self) -> None:
        self.is_there, self.answer = False, lambda: REFUSED

    def comes_back(self) -> None:
        self.is_there, self.answer = True, lambda: b"ok"

    def times(self) -> list[float]:
        return [time - self.asked[0][1] for _, time in self.asked]

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def get(self, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
        self.asked.append((path, asyncio.get_running_loop().time()))
        self.asking += 1
        try:
            await asyncio.sleep(0)
            answer = self.answer()
            if answer is None:
                await asyncio.get_running_loop().create_future()
        finally:
            self.asking -= 1
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer

    async def send(self, change: Any, path: str, query: Any = (), *, timeout: float = 1) -> bytes:
        return await self.get(path, query, timeout=timeout)

    async def stream(
        self, path: str, query: Any = (), *, idle_timeout: float | None = None, accept: str = ""
    ) -> Chunks:
        return Chunks([await self.get(path)])
