"""``aioinformer migrate`` on both servers: objects are stored in the new version, and the old one can go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest

from aioinformer import Client, ConfigError, ForbiddenError, Resource
from aioinformer.operator import migration
from aioinformer.operator.migration import Migration, MigrationError
from aioinformer.operator.stored_versions import PROGRESS
from aioinformer.testing import eventually

from .clusters import Cluster, EmbeddedCluster, KubernetesCluster
from .definitions import define, definition
from .test_cli import hopeless, outcome

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

Object = dict[str, Any]
NAMES = ["a", "b", "c", "d", "e", "f"]


class Lamps:
    """A kind with two versions, whose first objects were stored when it had one."""

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self.cluster = cluster
        self.group = f"{cluster.namespace}.example.com"
        self.name = f"lamps.{self.group}"
        self.definitions: Resource[Object] = Resource(client, "customresourcedefinitions", dict)
        self.v1: Resource[Object] = Resource(client, f"{self.group}/v1", "lamps", dict, kind="Lamp")
        self.v2: Resource[Object] = Resource(client, f"{self.group}/v2", "lamps", dict, kind="Lamp")

    async def begin(self) -> None:
        await define(self.cluster.api, definition(self.group, "Lamp"))
        for name in NAMES:
            await self.create(self.v1, name)
        await self.store_as("v2")
        await eventually(lambda: self.create(self.v2, "new"))

    async def create(self, resource: Resource[Object], name: str) -> Object:
        metadata = {"name": name, "namespace": self.cluster.namespace}
        return await resource.create({"metadata": metadata, "spec": {"watts": 5}})

    async def store_as(self, storage: str) -> None:
        present = await self.definitions.get(self.name)
        first = present["spec"]["versions"][0]
        versions = [{**deepcopy(first), "name": name, "storage": name == storage} for name in ("v1", "v2")]
        await self.definitions.patch(self.name, {"spec": {"versions": versions}})

    async def stored_versions(self) -> list[str]:
        versions: list[str] = (await self.definitions.get(self.name))["status"]["storedVersions"]
        return versions

    async def progress(self) -> str:
        metadata = (await self.definitions.get(self.name))["metadata"]
        return str((metadata.get("annotations") or {}).get(PROGRESS, ""))

    async def in_etcd(self) -> dict[str, str]:
        """Return the versions of the stored objects, by name; nothing on the embedded server, which has no etcd."""
        if not isinstance(self.cluster, KubernetesCluster):
            return {}
        objects = await self.cluster.control_plane.stored_objects(self.group, "lamps")
        return {obj["metadata"]["name"]: obj["apiVersion"].partition("/")[2] for obj in objects}


@pytest.fixture
async def lamps(cluster: Cluster, client: Client) -> Lamps:
    lamps = Lamps(cluster, client)
    await lamps.begin()
    return lamps


async def test_objects_are_stored_in_the_storage_version_and_the_old_one_can_be_removed(
    cluster: Cluster, lamps: Lamps
) -> None:
    before = {key: obj["spec"] for key, obj in await listed(lamps)}
    assert await lamps.stored_versions() == ["v1", "v2"]
    if isinstance(cluster, KubernetesCluster):
        assert await lamps.in_etcd() == {**dict.fromkeys(NAMES, "v1"), "new": "v2"}
    options = ("migrate", "--definition", lamps.name, "--kubeconfig", str(cluster.kubeconfig))
    code, output, errors = await outcome(*options, "--settle", "0", "--rate", "1000")
    assert (code, errors) == (0, "")
    assert output.startswith(f"{lamps.name}: all 7 objects are stored as v2, ")
    assert output.endswith(" rewritten now; storedVersions: v1, v2 -> v2\n")
    if isinstance(cluster, KubernetesCluster):
        assert ", 6 of them rewritten" in output
        assert await lamps.in_etcd() == dict.fromkeys([*NAMES, "new"], "v2")
    assert await lamps.stored_versions() == ["v2"]
    assert await lamps.progress() == ""
    versions = [
        version
        for version in (await lamps.definitions.get(lamps.name))["spec"]["versions"]
        if version["name"] == "v2"
    ]
    await lamps.definitions.patch(lamps.name, {"spec": {"versions": versions}})
    assert {key: obj["spec"] for key, obj in await listed(lamps)} == before
    assert (await outcome(*options)).output == f"{lamps.name}: nothing to do: storedVersions is v2 alone\n"


async def listed(lamps: Lamps) -> list[tuple[str, Object]]:
    return [(obj["metadata"]["name"], obj) for obj in await lamps.v2.list()]


async def test_a_dry_run_stores_nothing(cluster: Cluster, lamps: Lamps) -> None:
    before = await listed(lamps)
    options = ("--definition", lamps.name, "--kubeconfig", str(cluster.kubeconfig), "--dry-run")
    code, output, _ = await outcome("migrate", *options)
    assert (code, output) == (
        0,
        f"{lamps.name}: the server would accept all 7 objects as v2; nothing was stored\n",
    )
    assert await listed(lamps) == before
    assert await lamps.stored_versions() == ["v1", "v2"]
    if isinstance(cluster, KubernetesCluster):
        assert (await lamps.in_etcd())["a"] == "v1"


async def test_an_interrupted_migration_continues_after_the_last_saved_key(
    client: Client, lamps: Lamps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "PAGE_SIZE", 2)
    first = asyncio.create_task(Migration(client, lamps.name, rate=5, settle=0).run())
    await eventually(lambda: has_progress(lamps))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    key = (await lamps.progress()).partition(" ")[2]
    versions = {name: obj["metadata"]["resourceVersion"] for name, obj in await listed(lamps)}
    done = [name for name in versions if lamps.cluster.key(name) <= key]
    assert len(done) in (2, 4, 6)
    second = Migration(client, lamps.name, rate=1000, settle=3600)  # which it does not wait for again
    async with asyncio.timeout(30):
        assert (await second.run()).objects == 7
    assert await lamps.stored_versions() == ["v2"]
    assert set((await lamps.in_etcd()).values()) <= {"v2"}
    after = {name: obj["metadata"]["resourceVersion"] for name, obj in await listed(lamps)}
    assert {name: after[name] for name in done} == {name: versions[name] for name in done}


async def has_progress(lamps: Lamps) -> bool:
    return bool(await lamps.progress())


async def test_a_change_of_the_definition_meanwhile_ends_the_migration_and_is_not_resumed(
    client: Client, lamps: Lamps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "PAGE_SIZE", 2)
    running = asyncio.create_task(Migration(client, lamps.name, rate=5, settle=0).run())
    await eventually(lambda: has_progress(lamps))
    await lamps.store_as("v1")
    with pytest.raises(ConfigError, match=r"has changed, from generation .* storage version from v2 to v1"):
        await running
    assert await lamps.stored_versions() == ["v1", "v2"]
    await eventually(lambda: lamps.create(lamps.v1, "late"))
    result = await Migration(client, lamps.name, rate=1000, settle=0).run()
    assert (result.storage, result.objects) == ("v1", 8)
    assert await lamps.stored_versions() == ["v1"]
    assert set((await lamps.in_etcd()).values()) <= {"v1"}


async def test_objects_that_change_or_go_meanwhile_are_no_error(client: Client, lamps: Lamps) -> None:
    moving = Migration(client, lamps.name, rate=5, settle=0)
    running = asyncio.create_task(moving.run())
    await eventually(lambda: " 1 of 7 objects" in str(moving))
    await lamps.v2.patch(lamps.cluster.key("f"), {"spec": {"watts": 60}})
    await lamps.v2.delete(lamps.cluster.key("new"))
    assert (await running).objects == 7
    assert await lamps.stored_versions() == ["v2"]
    assert set((await lamps.in_etcd()).values()) <= {"v2"}
    assert (await lamps.v2.get(lamps.cluster.key("f")))["spec"] == {"watts": 60}


async def test_a_refused_object_is_named_and_storedversions_stays(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next run comes to it again, though the objects after it were rewritten."""
    monkeypatch.setattr(migration, "PAGE_SIZE", 2)
    async with embedded.client() as client:
        lamps = Lamps(embedded, client)
        await lamps.begin()
        refused = embedded.server.faults.fail(
            422,
            verb="patch",
            resource="lamps",
            matching=lambda request: request.name in ("b", "e"),
            times=None,
            message="too bright",
        )
        with pytest.raises(
            MigrationError, match=rf"refuses to store 2 of 7 .* {lamps.cluster.key('b')}.*too bright"
        ):
            await Migration(client, lamps.name, rate=1000, settle=0).run()
        assert await lamps.stored_versions() == ["v1", "v2"]
        assert await lamps.progress() == ""
        refused.remove()
        await Migration(client, lamps.name, rate=1000, settle=0).run()
        assert await lamps.stored_versions() == ["v2"]


async def test_an_outage_is_waited_for(embedded: EmbeddedCluster) -> None:
    async with embedded.client() as client:
        lamps = Lamps(embedded, client)
        await lamps.begin()
        embedded.server.faults.fail(503, verb="patch", resource="lamps", times=3)
        await Migration(client, lamps.name, rate=1000, settle=0).run()
        assert await lamps.stored_versions() == ["v2"]


@asynccontextmanager
async def may_get_definitions(admin: Client, name: str) -> AsyncIterator[None]:
    """Let the user powerless get definitions, and no more."""
    roles: Resource[Object] = Resource(admin, "clusterroles", dict)
    bindings: Resource[Object] = Resource(admin, "clusterrolebindings", dict)
    group = "rbac.authorization.k8s.io"
    rule = {
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "verbs": ["get"],
    }
    await roles.create({"metadata": {"name": name}, "rules": [rule]})
    binding = {
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": "powerless", "apiGroup": group}],
        "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": group},
    }
    await bindings.create(binding)
    try:
        yield
    finally:
        await bindings.delete(name)
        await roles.delete(name)


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_missing_rights_are_named_before_anything_is_rewritten(real: KubernetesCluster) -> None:
    async with real.client() as admin, await real.forbid() as powerless:
        lamps = Lamps(real, admin)
        await lamps.begin()
        with pytest.raises(ForbiddenError, match=f"get customresourcedefinitions.* {lamps.name}.*powerless"):
            await Migration(powerless, lamps.name, settle=0).run()
        async with may_get_definitions(admin, lamps.name):
            with pytest.raises(ConfigError) as raised:
                await Migration(powerless, lamps.name, settle=0).run()
        text = str(raised.value)
        assert text.startswith("powerless may not ")
        assert f"list, patch lamps.{lamps.group} in all namespaces" in text
        assert "patch customresourcedefinitions.apiextensions.k8s.io" in text
        assert "patch customresourcedefinitions/status.apiextensions.k8s.io" in text


async def test_bad_usage_and_unknown_definitions(embedded: EmbeddedCluster) -> None:
    server = ("--kubeconfig", str(embedded.kubeconfig))
    assert (await outcome("migrate", *server)).code == 2
    hopeless(await outcome("migrate", "--definition", "none.example.com", *server), "none.example.com")
