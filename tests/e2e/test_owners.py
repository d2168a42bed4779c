"""``apply_owned`` takes nothing from others: on the embedded server and on the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import Client, ForbiddenError, KubeObject, Resource, TerminalError
from aioinformer.errors import AlreadyOwnedError, OwnerError
from aioinformer.operator import Context, Controller, Operator, Request, Uses, owner_reference
from aioinformer.testing import eventually

from .clusters import Cluster
from .conftest import REAL

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

Object = dict[str, Any]

KINDS: dict[str, Object] = {
    "secrets": {},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "pods": {"spec": {"containers": [{"name": "web", "image": "example.com/web"}]}},
}
"""Kinds whose storage differs upstream, with the fields that they need."""


REAL_ALONE = [pytest.param("kubernetes", marks=REAL)]


class Lenders:
    """ConfigMaps that each name a child: the operator that applies it, and what happened.

    Args:
        plural: The child's resource.
        adopt: As for ``apply_owned``.
        is_cached: Whether the operator has a cache of the children.
    """

    def __init__(self, plural: str = "secrets", *, adopt: bool = False, is_cached: bool = True) -> None:
        self.applied: list[str] = []
        self.errors: list[Exception] = []
        self.operator = Operator("lenders", events=False, uses=[] if is_cached else [Uses(plural, ("get",))])

        @self.operator.controller("configmaps", owns=[plural] if is_cached else [])
        async def reconcile(request: Request[KubeObject], context: Context) -> None:
            owner = request.object
            if owner is None or "child" not in (owner.get("data") or {}):
                return
            fields = {
                **KINDS[plural],
                "metadata": {"name": owner["data"]["child"], "labels": {"by": owner.name}},
            }
            try:
                await context.apply_owned(owner, plural, fields, adopt=adopt)
            except Exception as error:
                self.errors.append(error)
                raise
            self.applied.append(owner.name)

    @asynccontextmanager
    async def run_controller(self, client: Client, namespace: str) -> AsyncIterator[Controller[Any]]:
        async with self.operator.running(client, namespace=namespace) as manager:
            yield manager.controllers[0]


def owner(cluster: Cluster, name: str, child: str = "shared") -> Object:
    return {"metadata": {"name": name, "namespace": cluster.namespace}, "data": {"child": child}}


async def controller_name(children: Resource[Object], key: str) -> str:
    references = (await children.get(key))["metadata"].get("ownerReferences") or [{}]
    return str(references[0].get("name", ""))


@pytest.mark.parametrize("plural", KINDS)
async def test_two_owners_do_not_take_a_child_from_each_other(
    cluster: Cluster, client: Client, plural: str
) -> None:
    lenders, key = Lenders(plural), f"{cluster.namespace}/shared"
    owners, children = Resource(client, "configmaps"), Resource(client, plural, dict)
    async with lenders.run_controller(client, cluster.namespace) as controller:
        await owners.create(owner(cluster, "a"))
        await eventually(lambda: lenders.applied)
        before = await children.get(key)
        await owners.create(owner(cluster, "b"))
        await eventually(lambda: len(lenders.errors) > 3)
        assert set(lenders.applied) == {"a"}
        assert (await children.get(key))["metadata"]["labels"] == {"by": "a"}
        assert await controller_name(children, key) == "a"
        assert controller.state.failing == 1
        assert (await children.get(key))["metadata"]["uid"] == before["metadata"]["uid"]
    error = lenders.errors[0]
    assert isinstance(error, AlreadyOwnedError)
    assert error.key == key
    assert error.controller is not None
    assert error.controller.name == "a"
    assert f"{key} is controlled by ConfigMap a (uid" in str(error)


async def test_owners_that_race_for_a_new_child_leave_it_to_the_first(
    cluster: Cluster, client: Client
) -> None:
    lenders, children = Lenders(), Resource(client, "secrets", dict)
    owners = Resource(client, "configmaps")
    names = [f"owner-{number}" for number in range(8)]
    await asyncio.gather(*(owners.create(owner(cluster, name)) for name in names))
    async with asyncio.TaskGroup() as tasks:
        stop = asyncio.Event()

        async def run() -> None:
            async with lenders.run_controller(client, cluster.namespace):
                await stop.wait()

        for _ in range(2):  # two processes of one operator, as when a leader has lost its lease
            tasks.create_task(run())
        await eventually(lambda: len(lenders.errors) > 20)
        stop.set()
    assert len(set(lenders.applied)) == 1
    assert await controller_name(children, f"{cluster.namespace}/shared") == lenders.applied[0]


@pytest.mark.parametrize("is_cached", [True, False], ids=["cached", "uncached"])
async def test_an_object_of_others_is_adopted_only_if_asked(
    cluster: Cluster, client: Client, is_cached: bool
) -> None:
    key = f"{cluster.namespace}/shared"
    children, owners = (
        Resource(client, "secrets", dict),
        Resource(client, "configmaps"),
    )
    await children.create({"metadata": {"name": "shared", "namespace": cluster.namespace}})
    await owners.create(owner(cluster, "a"))
    refusing = Lenders(is_cached=is_cached)
    async with refusing.run_controller(client, cluster.namespace):
        await eventually(lambda: refusing.errors)
    text = str(refusing.errors[0])
    assert "exists without a controller; others made it" in text
    assert "adopt=True" in text
    assert await controller_name(children, key) == ""
    adopting = Lenders(adopt=True, is_cached=is_cached)
    async with adopting.run_controller(client, cluster.namespace):
        await eventually(lambda: adopting.applied)
    assert await controller_name(children, key) == "a"
    assert adopting.errors == []


async def test_an_orphan_that_the_operator_applied_is_its_own(cluster: Cluster, client: Client) -> None:
    lenders, key = Lenders(), f"{cluster.namespace}/shared"
    owners, children = Resource(client, "configmaps"), Resource(client, "secrets", dict)
    async with lenders.run_controller(client, cluster.namespace):
        await owners.create(owner(cluster, "a"))
        await eventually(lambda: lenders.applied)
    await children.patch(key, {"metadata": {"ownerReferences": None}})  # as kubectl delete --cascade=orphan
    lenders.applied.clear()
    async with lenders.run_controller(client, cluster.namespace):
        await eventually(lambda: lenders.applied)
    assert lenders.errors == []
    assert await controller_name(children, key) == "a"


@pytest.mark.parametrize("cluster", REAL_ALONE, indirect=True)  # the embedded one collects garbage at once
async def test_a_child_of_an_earlier_owner_of_the_name_is_left_to_the_garbage_collector(
    cluster: Cluster, client: Client
) -> None:
    lenders, key = Lenders(), f"{cluster.namespace}/shared"
    owners, children = Resource(client, "configmaps"), Resource(client, "secrets", dict)
    earlier = owner_reference(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "earlier"}}
    )
    child = {"metadata": {"name": "shared", "namespace": cluster.namespace, "ownerReferences": [earlier]}}
    await children.create(child)
    async with lenders.run_controller(client, cluster.namespace):
        await owners.create(owner(cluster, "a"))
        await eventually(lambda: lenders.errors)
        assert "an earlier object of the owner's name" in str(lenders.errors[0])
        await children.delete(key)
        await eventually(lambda: lenders.applied)
    assert (await children.get(key))["metadata"]["ownerReferences"][0]["uid"] != "earlier"


async def test_a_child_that_others_change_meanwhile_is_applied_to_its_newest_version(
    cluster: Cluster, client: Client
) -> None:
    """Each write of others makes the cached version stale, which must not fail the reconcile."""
    lenders, key = Lenders(), f"{cluster.namespace}/shared"
    owners, children = Resource(client, "configmaps"), Resource(client, "secrets", dict)
    async with lenders.run_controller(client, cluster.namespace):
        await owners.create(owner(cluster, "a"))
        await eventually(lambda: lenders.applied)
        for number in range(20):
            patch, seen = {"metadata": {"annotations": {"n": str(number)}}}, len(lenders.applied)
            await asyncio.gather(children.patch(key, patch), owners.patch(f"{cluster.namespace}/a", patch))
            await eventually(lambda: len(lenders.applied) > seen)  # noqa: B023 - awaited at once
    assert lenders.errors == []


@pytest.mark.parametrize("namespace", ["", "kube-system"], ids=["cluster-scoped", "another namespace"])
async def test_an_impossible_owner_is_refused_without_a_request_or_a_retry(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    operator, errors = Operator("lenders", events=False), list[Exception]()
    plural = "secrets" if namespace else "clusterroles"

    @operator.controller("configmaps", uses=[Uses(plural, ("patch",))])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        if request.object is None or request.name != "a":
            return
        metadata = {"name": "shared", **({"namespace": namespace} if namespace else {})}
        try:
            await context.apply_owned(request.object, plural, {"metadata": metadata})
        except Exception as error:
            errors.append(error)
            raise

    async with operator.running(client, namespace=cluster.namespace) as manager:
        await Resource(client, "configmaps").create(owner(cluster, "a"))
        await eventually(lambda: manager.controllers[0].state.failed == 1)
        await asyncio.sleep(0.2)
    (error,) = errors
    assert isinstance(error, OwnerError)
    assert isinstance(error, TerminalError)
    assert "owner" in str(error)
    assert "Kubernetes deletes" in str(error)


@pytest.mark.parametrize("cluster", REAL_ALONE, indirect=True)
async def test_without_the_right_to_read_it_says_which_verb_is_missing(cluster: Cluster) -> None:
    async with await cluster.forbid() as powerless:
        context_operator = Operator("lenders", events=False, uses=[Uses("configmaps", ("patch",))])
        context = context_operator.manager(powerless).context  # type: ignore[attr-defined]
        made = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**owner(cluster, "a")["metadata"], "uid": "u"},
        }
        with pytest.raises(ForbiddenError, match="add get to the verbs"):
            await context.apply_owned(made, "configmaps", {})
