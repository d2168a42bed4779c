"""Candidates in a simulation, and the links between each of them and the server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from aioinformer import ApiError, Client, LeaderElector, Transport, TransportError
from aioinformer.client.transport import (
    JSON,
    READ_TIMEOUT,
    ByteStream,
    Change,
    Query,
)
from aioinformer.errors import LeadershipLostError
from aioinformer.testing import Simulation

from ..transports import Forwarding

LEASE = ("coordination.k8s.io/v1", "leases", "operator", "default")


class Link(Forwarding):
    """A Transport that can be cut before a request, or before its answer: then the request was processed.

    Attributes:
        there: Whether requests arrive.
        back: Whether answers arrive.
        seconds: Extra seconds of a request.
        seconds_back: Extra seconds of an answer.
        failure: What requests raise instead.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.there = self.back = True
        self.seconds = self.seconds_back = 0.0
        self.failure: Exception | None = None

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        return await self._both_ways(self._transport.get(path, query, timeout=timeout), timeout)

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        return await self._both_ways(self._transport.send(change, path, query, timeout=timeout), timeout)

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        raise AssertionError("electors stream nothing")

    async def _both_ways(self, asking: Coroutine[Any, Any, bytes], timeout: float) -> bytes:
        try:
            if self.failure is not None:
                raise self.failure
            async with asyncio.timeout(timeout):
                await self._pass(self.there, self.seconds)
                try:
                    answer = await asking
                except ApiError:  # an answer as well
                    await self._pass(self.back, self.seconds_back)
                    raise
                await self._pass(self.back, self.seconds_back)
                return answer
        except TimeoutError as error:
            raise TransportError(f"no answer within {timeout:g} s") from error
        finally:
            asking.close()

    async def _pass(self, is_open: bool, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if not is_open:
            await asyncio.get_running_loop().create_future()


class Candidate:
    """An elector that leads repeatedly and records when."""

    def __init__(self, world: Simulation, name: str, **options: Any) -> None:
        self.world = world
        self.name = name
        self.link = Link(world.new_client().transport)
        self.leaders: list[str] = []
        self.elector = LeaderElector(
            Client(self.link),
            "operator",
            "default",
            name,
            on_new_leader=self.leaders.append,
            random=world.random,
            **{"wall": lambda: 1_750_000_000.0 + world.now, **options},
        )
        self.leads = False
        self.terms: list[tuple[float, float]] = []
        self.lost: list[tuple[float, LeadershipLostError]] = []
        self.cleanup = 0.0

    async def lead(self, seconds: float = 1e9) -> None:
        """Lead for some seconds, and record it."""
        began, self.leads = self.world.now, True
        self.world.note(self.name, "leads")
        try:
            await asyncio.sleep(seconds)
        finally:
            try:
                await asyncio.sleep(self.cleanup)
            finally:
                self.leads = False
                self.terms.append((began, self.world.now))
                self.world.note(self.name, "leads no more")

    async def campaign(self, seconds: float = 1e9) -> None:
        """Run again after each end."""
        while True:
            try:
                await self.elector.run(lambda: self.lead(seconds))
            except LeadershipLostError as error:
                self.lost.append((self.world.now, error))


def never_two(world: Simulation, candidates: Iterable[Candidate]) -> None:
    """Check that two candidates never lead at once."""
    all_candidates = list(candidates)

    def check() -> None:
        leading = [candidate.name for candidate in all_candidates if candidate.leads]
        assert len(leading) <= 1, leading
        for candidate in all_candidates:
            assert not candidate.elector.is_leader or candidate.leads or candidate.elector._is_entered

    world.always(check)


def spec(world: Simulation) -> dict[str, Any]:
    """Return the Lease's spec."""
    fields: dict[str, Any] = world.server.get(*LEASE)["spec"]
    return fields


def verbs(world: Simulation) -> list[str]:
    """Return the requests about Leases."""
    return [request.verb for request in world.server.requests if request.resource == "leases"]
