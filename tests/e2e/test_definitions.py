"""``--install-crds`` on both servers: newer definitions stay, and deleted ones come back."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import Client, ConfigError, Resource
from aioinformer.operator import CustomResource, Operator, Request, definitions
from aioinformer.operator.definitions import BeingDeletedError, install, keep_installed
from aioinformer.testing import eventually
from aioinformer.typed import CamelStruct

from .clusters import Cluster

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

Object = dict[str, Any]


class OldSpec(CamelStruct, kw_only=True):
    a: int = 0


class NewSpec(OldSpec, kw_only=True):
    secret_ref: str = ""


def jar(group: str, spec: type, **options: Any) -> type[CustomResource]:
    """Return a class of the kind Jar; each test has a group of its own, because tests share the real server."""
    names = {"group": group, "version": "v1", "kind": "Jar", "plural": "jars", **options}

    class Jar(CustomResource, **names):
        spec: spec  # type: ignore[valid-type]

    Jar.__annotations__["spec"] = spec
    return Jar


def operator_of(*kinds: type[CustomResource]) -> Operator:
    operator = Operator("jars", events=False)
    for kind in kinds:

        @operator.controller(kind, name=kind.__declaration__.names.version)  # type: ignore[union-attr]
        async def reconcile(request: Request[Any]) -> None: ...

    return operator


def raw(client: Client, group: str, version: str = "v1") -> Resource[Object]:
    return Resource(client, f"{group}/{version}", "jars", dict, kind="Jar")


@pytest.fixture
def group(cluster: Cluster) -> str:
    return f"{cluster.namespace}.example.com"


@pytest.fixture
def crds(client: Client) -> Resource[Object]:
    return Resource(client, "customresourcedefinitions", dict)


def fields_of(definition: Object, version: int = 0) -> Object:
    schema = definition["spec"]["versions"][version]["schema"]["openAPIV3Schema"]
    properties: Object = schema["properties"]["spec"]["properties"]
    return properties


async def test_an_older_operator_leaves_the_newer_definition(
    cluster: Cluster, client: Client, group: str, crds: Resource[Object], caplog: pytest.LogCaptureFixture
) -> None:
    older, newer = operator_of(jar(group, OldSpec)), operator_of(jar(group, NewSpec))
    await install(client, older)
    await install(client, newer)
    key = f"{cluster.namespace}/a"
    spec = {"a": 1, "secretRef": "s"}
    await eventually(lambda: create(raw(client, group), cluster, spec))
    assert "WARNING" not in {record.levelname for record in caplog.records}
    await install(client, older)
    assert f"jars.{group} was not installed, and the server's definition stays" in caplog.text
    assert "v1 spec.secretRef" in caplog.text
    assert "--force-crds" in caplog.text
    await raw(client, group).patch(key, {"metadata": {"labels": {"x": "y"}}})
    assert (await raw(client, group).get(key))["spec"] == spec
    await install(client, older, force=True)
    assert fields_of(await crds.get(f"jars.{group}")).keys() == {"a"}
    await install(client, newer)  # adds a field, though it was replaced before: only the last one knows why
    assert fields_of(await crds.get(f"jars.{group}")).keys() == {"a"}


async def create(resource: Resource[Object], cluster: Cluster, spec: Object) -> bool:
    """Create an object; a server may answer by the definition before for a moment."""
    made = await resource.apply(
        {"metadata": {"name": "a", "namespace": cluster.namespace}, "spec": spec}, force=True
    )
    return bool(made["spec"] == spec)


class TightSpec(CamelStruct, kw_only=True):
    a: int = 1


async def test_a_definition_that_was_replaced_does_not_come_back_by_itself(
    client: Client, group: str, crds: Resource[Object], caplog: pytest.LogCaptureFixture
) -> None:
    """The newer one has the same fields, and another default: nothing but its history says that it is newer."""
    older, newer = operator_of(jar(group, OldSpec)), operator_of(jar(group, TightSpec))
    for operator in (older, newer, newer, older):
        await install(client, operator)
    assert fields_of(await crds.get(f"jars.{group}"))["a"]["default"] == 1
    assert "the server's definition has replaced it before" in caplog.text


async def test_a_served_version_is_not_taken_away(
    client: Client, group: str, crds: Resource[Object], caplog: pytest.LogCaptureFixture
) -> None:
    v1, v2 = jar(group, OldSpec), jar(group, OldSpec, version="v2")
    await install(client, operator_of(v1, v2))
    await install(client, operator_of(v1))
    assert "the version v2, which storedVersions has" in caplog.text
    with pytest.raises(ConfigError, match=r"was not installed: .*the version v1.* run the newer operator"):
        await install(client, operator_of(jar(group, OldSpec, version="v3")))
    versions = (await crds.get(f"jars.{group}"))["spec"]["versions"]
    assert [version["name"] for version in versions] == ["v1", "v2"]


async def test_operators_that_install_at_once_leave_the_newer_definition(
    client: Client, group: str, crds: Resource[Object]
) -> None:
    older, newer = operator_of(jar(group, OldSpec)), operator_of(jar(group, NewSpec))
    await install(client, older)
    await asyncio.gather(*(install(client, operator) for operator in [older, newer] * 4))
    assert fields_of(await crds.get(f"jars.{group}")).keys() == {"a", "secretRef"}


async def test_a_definition_that_is_being_deleted_is_created_again(
    cluster: Cluster, client: Client, group: str, crds: Resource[Object], caplog: pytest.LogCaptureFixture
) -> None:
    operator, name = operator_of(jar(group, OldSpec)), f"jars.{group}"
    await install(client, operator)
    metadata = {"name": "a", "namespace": cluster.namespace, "finalizers": ["example.com/keep"]}
    await eventually(lambda: raw(client, group).apply({"metadata": metadata, "spec": {"a": 1}}, force=True))
    before = await crds.get(name)
    await crds.delete(name)
    installing = asyncio.create_task(install(client, operator))
    await eventually(lambda: f"{name} is being deleted" in caplog.text)
    assert not installing.done()
    await eventually(lambda: is_deleting(raw(client, group), f"{cluster.namespace}/a"))
    await raw(client, group).patch(f"{cluster.namespace}/a", {"metadata": {"finalizers": None}})
    await installing
    after = await crds.get(name)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]


async def is_deleting(resource: Resource[Object], key: str) -> bool:
    return "deletionTimestamp" in (await resource.get(key))["metadata"]


async def test_a_deletion_that_does_not_end_is_an_error_that_says_why(
    cluster: Cluster, client: Client, group: str, crds: Resource[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, name = operator_of(jar(group, OldSpec)), f"jars.{group}"
    await install(client, operator)
    key = f"{cluster.namespace}/a"
    metadata = {"name": "a", "namespace": cluster.namespace, "finalizers": ["example.com/keep"]}
    await eventually(lambda: raw(client, group).apply({"metadata": metadata, "spec": {"a": 1}}, force=True))
    await crds.delete(name)
    await eventually(lambda: is_deleting(raw(client, group), key))
    monkeypatch.setattr(definitions, "TIMEOUT", 0.5)
    with pytest.raises(BeingDeletedError, match=f"{name} is being deleted since .*finalizers keep them"):
        await install(client, operator)
    await raw(client, group).patch(key, {"metadata": {"finalizers": None}})


async def test_a_definition_that_is_deleted_while_the_operator_runs(
    client: Client,
    group: str,
    crds: Resource[Object],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The manager is not ready, the log names the definition, and what was asked for is installed again."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(definitions, "CHECK_EVERY", 0.1)
    operator, name = operator_of(jar(group, OldSpec)), f"jars.{group}"
    await install(client, operator)
    async with operator.running(client) as manager:
        await eventually(manager.ready)
        await crds.delete(name)
        await eventually(lambda: f"{name} is not served any more" in str(manager.ready()))
        assert "It was served before, so its definition was deleted" in caplog.text
        assert "Allow the verb watch" not in caplog.text
        assert not [informer for informer in manager.state.informers if informer.polling]
        keeping = asyncio.create_task(keep_installed(client, operator))
        try:
            await eventually(lambda: crds.get(name), within=30)
            assert f"{name}: deleted while the operator runs; installing it again" in caplog.text
            await eventually(manager.ready, within=60)
        finally:
            keeping.cancel()


async def test_versions_without_a_conversion_are_reported_and_lose_fields(
    cluster: Cluster, client: Client, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = jar(group, NewSpec, version="v1alpha1"), jar(group, OldSpec)
    await install(client, operator_of(old, new))
    assert f"jars.{group}: its versions have different fields and no conversion" in caplog.text
    assert "v1alpha1 spec.secretRef" in caplog.text
    spec = {"a": 2, "secretRef": "lost"}
    made = {"metadata": {"name": "a", "namespace": cluster.namespace}, "spec": spec}
    answer = await eventually(lambda: raw(client, group, "v1alpha1").apply(made, force=True))
    assert answer["spec"] == {"a": 2}
    for version in ("v1", "v1alpha1"):
        assert (await raw(client, group, version).get(f"{cluster.namespace}/a"))["spec"] == {"a": 2}
