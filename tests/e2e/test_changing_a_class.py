"""docs/changing-a-class.md on the real server: an operator is updated release by release, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aioinformer import AioInformerError, Client, Resource
from aioinformer.errors import TooManyRequestsError
from aioinformer.operator import Operator
from aioinformer.testing import eventually
from examples.changing_a_class import (
    release_1_0,
    release_1_1,
    release_1_2,
    release_2_0,
    release_2_1,
    release_3_0,
)

from ..operator.webhooks.certificates import Certificates
from .clusters import KubernetesCluster
from .rollouts import Deployment
from .test_cli import outcome

pytestmark = [
    pytest.mark.asyncio(loop_factories=["asyncio"]),
    pytest.mark.kubernetes,
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.timeout(400),
]

Object = dict[str, Any]
GROUP = "changing.example.com"
NAME = f"sites.{GROUP}"


class Users:
    """They create, change and delete sites all the time, in the version that they know.

    Attributes:
        sites: The hosts and replicas that they have asked for.
        refused: Requests that were not accepted.
        writes: How many were.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._random = Random(7)
        self._version, self._field = "v1", "domain"
        self._replicas = False
        self.sites: dict[str, tuple[str, int]] = {}
        self.refused: list[str] = []
        self.writes = 0

    def learn_replicas(self) -> None:
        self._replicas = True

    def learn_v2(self) -> None:
        self._version, self._field = "v2", "host"

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._work())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def write(self) -> None:
        """Create, change or delete one site."""
        sites: Resource[Object] = Resource(
            self._client, f"{GROUP}/{self._version}", "sites", dict, kind="Site"
        )
        self.writes += 1
        name, host = f"site-{self.writes}", f"host-{self.writes}.example"
        spec: Object = {self._field: host}
        replicas = 1
        if self._replicas and self._random.random() < 0.7:
            spec["replicas"] = replicas = self._random.randrange(2, 9)
        choice = self._random.random()
        if choice < 0.6 or not self.sites:
            metadata = {"name": name, "namespace": self._namespace}
            if self._replicas:
                spec.setdefault(
                    "replicas", None
                )  # which release 1.1 stores, and others replace by their default
            await sites.create({"metadata": metadata, "spec": spec})
            self.sites[name] = (host, replicas)
            return
        name = self._random.choice(sorted(self.sites))
        if choice < 0.9:
            await sites.patch(f"{self._namespace}/{name}", {"spec": spec})
            self.sites[name] = (host, spec.get("replicas", self.sites[name][1]))
        else:
            await sites.delete(f"{self._namespace}/{name}")
            del self.sites[name]

    async def _work(self) -> None:
        while True:
            try:
                await self.write()
            except TooManyRequestsError:  # the server opens the storage of a definition that has changed
                pass
            except AioInformerError as error:
                self.refused.append(str(error))
            await asyncio.sleep(0.1)


class World:
    """The operator's definition and pods, and its users."""

    def __init__(self, cluster: KubernetesCluster, client: Client, folder: Path) -> None:
        self._files = Certificates(folder)
        self.deployment = Deployment(cluster.kubeconfig, cluster.namespace, self._files)
        self.definitions: Resource[Object] = Resource(client, "customresourcedefinitions", dict)
        self.users = Users(client, cluster.namespace)

    async def release(self, operator: Operator, module: str) -> None:
        """Apply a release's definition, as its manifests have it, and replace the pods."""
        reached = {"url": f"https://127.0.0.1:{self.deployment.port}", "ca_bundle": self._files.ca}
        for definition in operator.definitions(**reached):  # type: ignore[arg-type]
            await self.definitions.apply(definition, force=True)
        await self.definitions.wait_for(NAME, "condition=Established", timeout=30)
        await self.deployment.roll_out(f"examples.changing_a_class.{module}")

    async def stored_versions(self) -> list[str]:
        versions: list[str] = (await self.definitions.get(NAME))["status"]["storedVersions"]
        return versions


async def test_a_class_changes_through_its_releases_and_nothing_is_lost(
    real: KubernetesCluster, tmp_path: Path
) -> None:
    async with real.client() as client:
        world = World(real, client, tmp_path)
        users = world.users
        async with world.deployment.serving():
            await world.release(release_1_0.operator, "release_1_0")
            await users.write()
            async with users.working():
                await world.release(release_1_1.operator, "release_1_1")
                users.learn_replicas()
                await world.release(release_1_2.operator, "release_1_2")
                await world.release(release_2_0.operator, "release_2_0")
                await world.release(release_2_1.operator, "release_2_1")
                users.learn_v2()
                assert await world.stored_versions() == ["v1", "v2"]
                options = ("--kubeconfig", str(real.kubeconfig), "--settle", "2", "--rate", "500")
                code, output, errors = await outcome(
                    "migrate", "examples.changing_a_class.release_2_1", *options
                )
                assert code == 0, errors
                assert "storedVersions: v1, v2 -> v2" in output
                stored = await real.control_plane.stored_objects(GROUP, "sites")
                assert {obj["apiVersion"] for obj in stored} == {f"{GROUP}/v2"}
                await world.release(release_3_0.operator, "release_3_0")
            assert users.refused == []
            assert len(users.sites) > 10, "they wrote meanwhile"
            await eventually(lambda: is_as_asked(client, users), within=30)
        assert {code for code, _ in world.deployment.ended} == {0}


async def is_as_asked(client: Client, users: Users) -> bool:
    sites = await Resource(client, release_3_0.Site).list()
    assert {site.metadata.name: (site.spec.host, site.spec.replicas) for site in sites} == users.sites
    return all(
        site.status is not None
        and site.status.serves == f"{site.spec.host} x{site.spec.replicas}"
        and site.metadata.labels.get("checked") == "yes"
        for site in sites
    )
