"""On the real server: the same story, with fewer deaths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import pytest
import yaml

from aioinformer import Client, EventRecorder, LeaderElector
from examples.storage_operator import operator
from tests.e2e.api import JSON_PATCH, Resource
from tests.e2e.clusters import KubernetesCluster
from tests.e2e.conftest import REAL

from .invariants import Invariants
from .mortal import Death, Mortal, living
from .objects import API_VERSIONS, FOLDER, Object
from .story import Hands, before, story

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]

RESOURCES = {plural: Resource(api_version, plural) for plural, api_version in API_VERSIONS.items()}
RBAC = "rbac.authorization.k8s.io"
RECHECK = 0.3
PATIENCE = 60.0
DEATHS = [Death(request, arrives=bool(request % 2)) for request in range(1, 57, 4)]


class KubernetesHands(Hands):
    """Asks the API server."""

    def __init__(self, cluster: KubernetesCluster, namespace: str) -> None:
        self._cluster = cluster
        self.namespace = namespace

    async def create(self, plural: str, obj: Object) -> None:
        await self._cluster.create(RESOURCES[plural], obj, self.namespace)

    async def patch(self, plural: str, name: str, patch: Object) -> None:
        await self._cluster.patch(RESOURCES[plural], name, patch, self.namespace)

    async def json_patch(self, plural: str, name: str, patch: list[Object]) -> None:
        path = RESOURCES[plural].path(self.namespace, name)
        await self._cluster.api.do("PATCH", path, patch, content_type=JSON_PATCH)

    async def delete(self, plural: str, name: str) -> None:
        await self._cluster.delete(RESOURCES[plural], name, self.namespace)

    async def list(self, plural: str) -> dict[str, Object]:
        found = await self._cluster.list(RESOURCES[plural], self.namespace)
        return {obj["metadata"]["name"]: obj for obj in found.values()}

    async def eventually(
        self, what: str, plural: str, condition: Callable[[dict[str, Object]], object]
    ) -> None:
        path = RESOURCES[plural].path(self.namespace)
        async with asyncio.timeout(PATIENCE):
            listed = await self._cluster.api.do("GET", path)
            found = {obj["metadata"]["name"]: obj for obj in listed["items"]}
            since = {"resourceVersion": listed["metadata"]["resourceVersion"]}
            async with self._cluster.api.watch(path, since) as events:
                while not condition(found):
                    event = await anext(events)
                    name = event["object"]["metadata"]["name"]
                    if event["type"] == "DELETED":
                        del found[name]
                    else:
                        found[name] = event["object"]

    async def a_while(self) -> None:
        await asyncio.sleep(2 * RECHECK)


def impatient(client: Client, lease: str, namespace: str) -> LeaderElector:
    return LeaderElector(client, lease, namespace, lease_duration=2.0, renew_deadline=1.5, retry_period=0.2)


async def operate(
    cluster: KubernetesCluster,
    namespace: str,
    deaths: Iterable[Death],
    died: list[Death | None],
    lease: str,
    user: str,
) -> None:
    """The operator, which comes again each time that it has died."""

    async def run(client: Client) -> None:
        election = impatient(client, lease, namespace) if lease else None
        events = EventRecorder(client, operator.NAME, flush_timeout=RECHECK)
        await operator.run(
            client, events=events, namespace=namespace, recheck=RECHECK, leader_election=election
        )

    for death in (*deaths, None):
        client = Client.from_kubeconfig(user, cluster.kubeconfig)
        await Mortal(client.transport, death).live(run)
        died.append(death)


@asynccontextmanager
async def recorded(hands: KubernetesHands, cluster: KubernetesCluster) -> AsyncIterator[None]:
    """Checks the invariants, afterwards: versions put the changes of all resources in their order."""
    changes: list[tuple[str, Object]] = []

    async def record(plural: str) -> None:
        async with cluster.api.watch(RESOURCES[plural].path(hands.namespace), {}) as events:
            async for event in events:
                changes.append((plural, event))  # noqa: PERF401 - what came before the end counts

    async with living(*(record(plural) for plural in RESOURCES)):
        yield
        await asyncio.sleep(RECHECK)  # for the last of them
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
    lease: str = "",
    user: str = "admin",
    namespace: str = "",
) -> int:
    """The story in a namespace of its own, with an operator for each of the deaths; says how many happened."""
    died: list[Death | None] = []
    hands = KubernetesHands(cluster, namespace or await cluster.new_namespace())
    async with recorded(hands, cluster):
        await before(hands)
        async with living(*(operate(cluster, hands.namespace, each, died, lease, user) for each in deaths)):
            await story(hands)
    return len(died)


async def test_it_may_die_at_any_request(real: KubernetesCluster) -> None:
    half = len(DEATHS) // 2
    died = 0
    for deaths in (DEATHS[:half], DEATHS[half:]):
        died += sum(await asyncio.gather(*(tell(real, [death]) for death in deaths)))
    assert died > 10


async def test_two_may_compete(real: KubernetesCluster) -> None:
    await tell(real, DEATHS[3:6], DEATHS[5:7])


async def test_one_of_two_may_lead(real: KubernetesCluster) -> None:
    await tell(real, DEATHS[3:6], DEATHS[5:7], lease="storage-operator")


async def test_its_rights_suffice(real: KubernetesCluster) -> None:
    """rbac.yaml, for a user who may do nothing else."""
    role = yaml.safe_load((FOLDER / "rbac.yaml").read_text())
    binding = {
        "metadata": {"name": "storage-operator"},
        "subjects": [{"kind": "User", "name": "powerless", "apiGroup": RBAC}],
        "roleRef": {"kind": "ClusterRole", "name": role["metadata"]["name"], "apiGroup": RBAC},
    }
    namespace = await real.new_namespace()
    await real.create(Resource(f"{RBAC}/v1", "clusterroles", namespaced=False), role)
    await real.create(Resource(f"{RBAC}/v1", "rolebindings"), binding, namespace)
    events = Resource("events.k8s.io/v1", "events")
    await tell(real, [], lease="storage-operator", user="powerless", namespace=namespace)
    reasons = {event["reason"] for event in (await real.list(events, namespace)).values()}
    assert reasons >= {"Protected", "StillMounted", "Released", "Mounted", "WaitingForCave"}
