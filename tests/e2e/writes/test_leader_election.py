"""Electors compete for a Lease, on either server, with short durations."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from aioinformer import Client, LeaderElector, NotFoundError, Resource
from aioinformer._core.tasks import finish
from aioinformer.errors import LeadershipLostError

from ..clusters import Cluster

SHORT: dict[str, Any] = {"lease_duration": 30.0, "renew_deadline": 20.0, "retry_period": 0.3}
PATIENCE = 20.0


class Candidate:
    """Lead repeatedly and record simultaneous leaders."""

    def __init__(
        self, client: Client, cluster: Cluster, name: str, leading: set[str], news: asyncio.Event
    ) -> None:
        self.name = name
        self.elector = LeaderElector(client, "operator", cluster.namespace, name, **SHORT)
        self.leading = leading
        self.news = news
        self.terms = 0

    async def lead(self) -> None:
        self.leading.add(self.name)
        assert self.leading == {self.name}
        self.news.set()
        self.terms += 1
        try:
            await asyncio.sleep(3600)
        finally:
            self.leading.remove(self.name)

    async def campaign(self) -> None:
        while True:
            try:
                await self.elector.run(self.lead)
            except LeadershipLostError:
                continue


async def test_one_leads_and_another_takes_over(cluster: Cluster) -> None:
    leading: set[str] = set()
    async with AsyncExitStack() as stack:
        candidates, news = [], asyncio.Event()
        for name in ("one", "two", "three"):
            client = await stack.enter_async_context(cluster.client())
            candidates.append(Candidate(client, cluster, name, leading, news))
        leases = Resource(client, "coordination.k8s.io/v1", "leases", dict)
        tasks = {candidate.name: asyncio.create_task(candidate.campaign()) for candidate in candidates}
        for turn in range(3):
            async with asyncio.timeout(PATIENCE):
                await news.wait()
            news.clear()
            (leader,) = leading
            lease = await leases.get(cluster.key("operator"))
            assert lease["spec"]["holderIdentity"] == leader
            assert lease["spec"]["leaseTransitions"] == turn
            assert lease["spec"]["leaseDurationSeconds"] == 30
            await finish(tasks[leader])
        assert (await leases.get(cluster.key("operator")))["spec"]["holderIdentity"] == ""
        assert [candidate.terms for candidate in candidates] == [1, 1, 1]


async def test_a_lease_that_is_deleted_is_made_again(cluster: Cluster, client: Client) -> None:
    elector = LeaderElector(client, "operator", cluster.namespace, "one", **SHORT)
    leases = Resource(client, "coordination.k8s.io/v1", "leases", dict)
    async with elector:
        await leases.delete(cluster.key("operator"))
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(NotFoundError):
                    lease = await leases.get(cluster.key("operator"))
                    break
                await asyncio.sleep(0.05)
        assert lease["spec"]["holderIdentity"] == "one"
        elector.require_leadership()


async def test_candidate_stops_when_the_lease_is_taken(cluster: Cluster, client: Client) -> None:
    elector = LeaderElector(client, "operator", cluster.namespace, "one", **SHORT)
    leases = Resource(client, "coordination.k8s.io/v1", "leases", dict)
    with pytest.raises(LeadershipLostError, match=r"thief holds it"):
        async with asyncio.timeout(PATIENCE), elector:
            await leases.patch(cluster.key("operator"), {"spec": {"holderIdentity": "thief"}})
            await asyncio.sleep(3600)
