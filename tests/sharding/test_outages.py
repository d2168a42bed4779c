"""Replicas while the real server restarts, gets its feature gate or loses it, and forgets its history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aioinformer import Client, KubeObject, Resource
from aioinformer.sharding.slots import slot_of
from aioinformer.testing.waiting import eventually
from tests.kubernetes.controlplane import ControlPlane

from .test_operator import SLOTS, Recorder

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes"), pytest.mark.timeout(600)]

GATE = "ShardedListAndWatch"
WITHIN = 60.0


class Pair:
    """Two replicas that share ConfigMaps."""

    def __init__(self, client: Client) -> None:
        self.configmaps: Resource[KubeObject] = Resource(client, "v1", "configmaps")
        self.replicas = Recorder(client), Recorder(client)
        self._round = 0

    async def write(self) -> None:
        """Change all objects, and let one come back under its name with another uid."""
        self._round += 1
        for number in range(30):
            metadata = {"name": f"c{number}", "namespace": "default"}
            if self._round > 1 and number == self._round:
                await self.configmaps.delete(f"default/c{number}")
            config = {"metadata": metadata, "data": {"round": str(self._round)}}
            await self.configmaps.apply(config, force=True)

    async def wait_shared(self) -> None:
        """Wait until the replicas own half the slots each, and their caches are the objects in these."""
        objects = [obj for obj in await self.configmaps.list("default") if "round" in obj.get("data", {})]
        await eventually(
            lambda: all(len(replica.slots) == SLOTS // 2 for replica in self.replicas), within=WITHIN
        )
        for replica in self.replicas:
            wanted = {
                obj.key: obj.resource_version for obj in objects if slot_of(obj.uid, SLOTS) in replica.slots
            }
            await eventually(lambda r=replica, w=wanted: self._cached(r) == w, within=WITHIN)  # type: ignore[misc]

    @staticmethod
    def _cached(replica: Recorder) -> dict[str, str]:
        store = replica.manager.informers[0].store
        return {obj.key: obj.resource_version for obj in store.list() if "round" in obj.get("data", {})}

    def selects(self) -> set[bool]:
        """Return whether the replicas say that the server selects."""
        states = [replica.sharding.state.is_filtered_by_server for replica in self.replicas]
        return {selects for state in states for selects in state.values()}


@pytest.fixture
async def plane(kubernetes_binaries: object) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(feature_gates={GATE: False}) as running:
        yield running


async def test_objects_stay_shared_while_the_server_gets_and_loses_its_gate(plane: ControlPlane) -> None:
    async with Client.from_kubeconfig(path=plane.kubeconfig) as client:
        pair = Pair(client)
        await pair.write()
        async with pair.replicas[0].manager, pair.replicas[1].manager:
            await pair.wait_shared()
            assert pair.selects() == {False}
            for is_on in (True, False):
                await plane.restart(feature_gates={GATE: is_on})
                await pair.write()
                await pair.wait_shared()


async def test_objects_stay_shared_while_etcd_restarts_and_forgets_its_history_in_a_move(
    plane: ControlPlane,
) -> None:
    async with Client.from_kubeconfig(path=plane.kubeconfig) as client:
        pair = Pair(client)
        await pair.write()
        first, second = pair.replicas
        async with first.manager:
            await eventually(lambda: len(first.slots) == SLOTS, within=WITHIN)
            async with second.manager:
                await eventually(lambda: len(first.slots) < SLOTS, within=WITHIN)  # slots move now
                plane.kill_etcd()
                await asyncio.sleep(0.5)
                await plane.restart_etcd()
                await pair.write()
                await plane.compact()
                await plane.restart()
                await pair.write()
                await pair.wait_shared()
