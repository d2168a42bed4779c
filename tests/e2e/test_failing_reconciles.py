"""What the owner of an object sees when its reconcile fails, on both servers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

from aioinformer import Client, Resource, UndecodableObject
from aioinformer.operator import CustomResource, Operator, Request
from aioinformer.operator.definitions import install
from aioinformer.operator.unfit import describe_unfit_objects
from aioinformer.testing import eventually
from aioinformer.typed import CamelStruct, Condition, MapOf

from .clusters import Cluster

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

GROUP = "failing.example.com"
FINALIZER = "example.com/site"
PATIENCE = 30.0


class SiteSpec(CamelStruct):
    host: str


class SiteStatus(CamelStruct):
    conditions: Annotated[list[Condition], MapOf("type")] = []  # noqa: RUF012 - a Struct copies it


class Site(CustomResource, group=GROUP, version="v1"):
    spec: SiteSpec
    status: SiteStatus | None = None


class NextSpec(SiteSpec):
    plan: str


class NextSite(CustomResource, group=GROUP, version="v1", kind="Site", plural="sites"):
    """The same kind in the next release, which requires a field."""

    spec: NextSpec
    status: SiteStatus | None = None


async def wait_for_event(client: Client, namespace: str, reason: str) -> dict[str, Any]:
    events = Resource(client, "events.k8s.io/v1", "events", dict)
    async with asyncio.timeout(PATIENCE):
        while True:
            for event in await events.list(namespace):
                if event["reason"] == reason and event["regarding"]["kind"] == "Site":
                    return event
            await asyncio.sleep(0.05)


async def test_owner_sees_failures_recovery_and_a_class_that_the_object_does_not_fit(
    cluster: Cluster,
) -> None:
    operator, key = Operator("sites", conditions=True), f"{cluster.namespace}/a"
    is_failing, cleaned = True, list[Any]()

    @operator.controller(Site)
    async def reconcile(request: Request[Site]) -> None:
        if is_failing:
            raise ValueError("no quota")

    following = Operator("sites", conditions=True)

    async def cleanup(request: Request[NextSite]) -> None:
        cleaned.append(request.object)

    @following.controller(NextSite, finalizer=FINALIZER, cleanup=cleanup)
    async def reconcile_next(request: Request[NextSite]) -> None: ...

    async with cluster.client() as client:
        await install(client, operator)
        sites = Resource(client, Site)
        metadata = {"name": "a", "namespace": cluster.namespace, "finalizers": [FINALIZER]}
        await sites.create({"metadata": metadata, "spec": {"host": "x"}})
        async with operator.running(client, namespace=cluster.namespace) as manager:
            site = await sites.wait_for(key, "condition=Ready=False", timeout=PATIENCE)
            assert site.status is not None
            (condition,) = site.status.conditions
            assert (condition.reason, condition.message) == ("ReconcileFailed", "ValueError: no quota")
            assert condition.observed_generation == site.metadata.generation == 1
            event = await wait_for_event(client, cluster.namespace, "ReconcileFailed")
            assert (event["type"], event["note"]) == ("Warning", "ValueError: no quota")
            assert event["regarding"]["uid"] == site.metadata.uid
            is_failing = False
            ready = await sites.wait_for(key, "condition=Ready", timeout=PATIENCE)
            event = await wait_for_event(client, cluster.namespace, "Recovered")
            assert event["type"] == "Normal"
            (controller,) = manager.controllers
            await eventually(lambda: controller.informer.lister.get(key).status == ready.status)
            reconciles = controller.state.reconciles
            await asyncio.sleep(0.5)  # its own writes cause no reconciles, and no more writes
            assert controller.state.reconciles == reconciles
            assert (await sites.get(key)).metadata.resource_version == ready.metadata.resource_version
        text = await describe_unfit_objects(client, NextSite)
        assert f"1 of 1 objects do not fit the class NextSite and are not reconciled: {key}: " in text
        assert "missing required field `plan`" in text
        assert await describe_unfit_objects(client, Site) == ""
        async with following.running(client, namespace=cluster.namespace) as manager:
            event = await wait_for_event(client, cluster.namespace, "ObjectDoesNotFit")
            assert "missing required field `plan`" in event["note"]
            await sites.wait_for(key, "condition=Ready=False", timeout=PATIENCE)
            assert any("missing required field `plan`" in warning for warning in manager.ready().warnings)
            assert f'aioinformer_unfit_objects{{controller="sites.{GROUP}"}} 1' in manager.metrics()
            await sites.delete(key)
            await sites.wait_for(key, "delete", timeout=PATIENCE)
        (obj,) = cleaned
        assert isinstance(obj, UndecodableObject)
        assert obj["spec"] == {"host": "x"}
