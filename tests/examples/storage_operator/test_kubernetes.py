"""On the real server: the same story and the same deaths, many stories side by side."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Unpack

import pytest

from aioinformer import Client, LeaderElector
from aioinformer.reflector import ReflectorOptions
from examples.storage_operator import operator
from examples.storage_operator.model import Settings
from tests.e2e.api import JSON_PATCH, Resource
from tests.e2e.clusters import KubernetesCluster
from tests.e2e.conftest import REAL

from .invariants import Invariants
from .mortal import Death, Mortal, keep_running
from .objects import API_VERSIONS, Object, backend, cave, csi_pod
from .story import POINTS, Hands, before, death_at, story

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

RESOURCES = {plural: Resource(api_version, plural) for plural, api_version in API_VERSIONS.items()}
RECHECK = 0.3
PATIENCE = 60.0
LAST = {"caves": cave("last"), "backends": backend("last", "last"), "pods": csi_pod("last", "last")}
"""Who sees them has seen all that was before."""


class KubernetesHands(Hands):
    """Asks the API server, and thinks after each change, for times that come from a seed."""

    def __init__(self, cluster: KubernetesCluster, namespace: str, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self.namespace = namespace

    async def create(self, plural: str, obj: Object) -> None:
        await self._cluster.create(RESOURCES[plural], obj, self.namespace)
        await self._think()

    async def patch(self, plural: str, name: str, patch: Object) -> None:
        await self._cluster.patch(RESOURCES[plural], name, patch, self.namespace)
        await self._think()

    async def json_patch(self, plural: str, name: str, patch: list[Object]) -> None:
        path = RESOURCES[plural].path(self.namespace, name)
        await self._cluster.api.do("PATCH", path, patch, content_type=JSON_PATCH)
        await self._think()

    async def delete(self, plural: str, name: str) -> None:
        await self._cluster.delete(RESOURCES[plural], name, self.namespace)
        await self._think()

    async def list(self, plural: str) -> dict[str, Object]:
        objects = await self._cluster.list(RESOURCES[plural], self.namespace)
        return {obj["metadata"]["name"]: obj for obj in objects.values()}

    async def eventually(
        self, what: str, plural: str, condition: Callable[[dict[str, Object]], object]
    ) -> None:
        path = RESOURCES[plural].path(self.namespace)
        async with asyncio.timeout(PATIENCE):
            listed = await self._cluster.api.do("GET", path)
            objects = {obj["metadata"]["name"]: obj for obj in listed["items"]}
            since = {"resourceVersion": listed["metadata"]["resourceVersion"]}
            async with self._cluster.api.watch(path, since) as events:
                while not condition(objects):
                    event = await anext(events)
                    name = event["object"]["metadata"]["name"]
                    if event["type"] == "DELETED":
                        del objects[name]
                    else:
                        objects[name] = event["object"]

    async def a_while(self) -> None:
        await asyncio.sleep(2 * RECHECK)

    async def _think(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0, 0.005, 0.02, 0.1)))


def impatient(client: Client, lease: str, namespace: str) -> LeaderElector:
    return LeaderElector(client, lease, namespace, lease_duration=2.0, renew_deadline=1.5, retry_period=0.2)


async def operate(
    cluster: KubernetesCluster,
    namespace: str,
    deaths: Iterable[Death],
    died: list[Death | None],
    lease: str,
    user: str,
    options: ReflectorOptions,
) -> None:
    """The operator, which comes again each time that it has died."""

    async def run(client: Client) -> None:
        election = impatient(client, lease, namespace) if lease else None
        settings = Settings(recheck=RECHECK)
        await operator.manager(
            client, namespace=namespace, settings=settings, leader_election=election, **options
        ).run()

    for death in (*deaths, None):
        client = Client.from_kubeconfig(user, cluster.kubeconfig)
        await Mortal(client.transport, death).live(run)
        died.append(death)


@asynccontextmanager
async def record(hands: KubernetesHands, cluster: KubernetesCluster) -> AsyncIterator[None]:
    """Checks the invariants, afterwards: versions put the changes of all resources in their order."""
    changes: list[tuple[str, Object]] = []
    ended = asyncio.Event()
    missing = set(LAST)

    async def record(plural: str) -> None:
        async with cluster.api.watch(RESOURCES[plural].path(hands.namespace), {}) as events:
            async for event in events:
                changes.append((plural, event))
                if event["object"]["metadata"]["name"] == "last":
                    missing.discard(plural)
                    if not missing:
                        ended.set()

    async with keep_running(*(record(plural) for plural in RESOURCES)):
        yield
        for plural, last in LAST.items():
            await hands.create(plural, last)
        await asyncio.wait_for(ended.wait(), PATIENCE)
    invariants = Invariants()
    for plural, event in sorted(
        changes, key=lambda change: int(change[1]["object"]["metadata"]["resourceVersion"])
    ):
        invariants.observe(plural, event["object"], gone=event["type"] == "DELETED")
    invariants.check()
    assert invariants.released == 3
    assert invariants.opened >= 3


async def tell(
    cluster: KubernetesCluster,
    *deaths: Iterable[Death],
    seed: int,
    lease: str = "",
    user: str = "admin",
    namespace: str = "",
    **options: Unpack[ReflectorOptions],
) -> int:
    """The story in a namespace of its own, with an operator for each of the deaths; says how many happened."""
    died: list[Death | None] = []
    hands = KubernetesHands(cluster, namespace or await cluster.new_namespace(), seed)
    try:
        async with record(hands, cluster):
            await before(hands)
            async with keep_running(
                *(operate(cluster, hands.namespace, death, died, lease, user, options) for death in deaths)
            ):
                await story(hands)
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    return len(died)


async def tell_two(cluster: KubernetesCluster, seed: int, lease: str = "") -> int:
    """The story with two operators: one dies twice, the other one once."""
    dice = random.Random(seed)
    deaths = [Death(dice.randint(1, 40), dice.random() < 0.5) for _ in range(2)]
    return await tell(cluster, deaths, deaths[:1], seed=seed, lease=lease)


async def all_of(stories: Iterable[Coroutine[Any, Any, int]]) -> int:
    """Side by side, as most of a story is waiting; the first that fails ends the others."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in stories]
    return sum(task.result() for task in tasks)


@pytest.mark.parametrize("seeds", [range(first, first + 25) for first in range(0, POINTS, 25)], ids=str)
async def test_it_may_die_at_any_request(real: KubernetesCluster, seeds: range) -> None:
    died = await all_of(tell(real, [death_at(seed)], seed=seed) for seed in seeds)
    assert died > 0.7 * len(seeds)


async def test_two_may_compete(real: KubernetesCluster) -> None:
    assert await all_of(tell_two(real, seed) for seed in range(25)) > 25


async def test_one_of_two_may_lead(real: KubernetesCluster) -> None:
    assert await all_of(tell_two(real, seed, "storage-operator") for seed in range(5)) > 5
