"""An operator that does everything that its declarations permit, and its life with one Website."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from aioinformer import AlreadyExistsError, Client, NotFoundError, Resource
from aioinformer.objects.kube_object import KubeObject
from aioinformer.operator import (
    Context,
    CustomResource,
    Operator,
    Owned,
    Request,
    Uses,
    Watched,
    owner_reference,
)
from aioinformer.operator.rights import WRITE

FINALIZER = "example.com/dns"
PATIENCE = 30.0


class WebsiteSpec(msgspec.Struct):
    html: str


class WebsiteStatus(msgspec.Struct):
    phase: str = ""
    colour: str = ""


class Website(CustomResource, group="rights.example.com", version="v1"):
    """A page that is served.

    It has a second paragraph.
    """

    spec: WebsiteSpec
    status: WebsiteStatus | None = None


operator = Operator(
    "websites", uses=[Uses("namespaces", verbs=("get",)), Uses("pods/eviction", verbs=("create",))]
)


async def websites_of(secret: KubeObject, context: Context) -> list[Request[Website]]:
    return [Request.of(website.key) for website in await context.resource(Website).list(secret.namespace)]


async def remove_dns(request: Request[Website]) -> None: ...


@operator.controller(
    Website,
    owns=[Owned("configmaps", verbs=WRITE)],
    watches=[Watched("secrets", websites_of)],
    finalizer=FINALIZER,
    cleanup=remove_dns,
)
async def reconcile(request: Request[Website], context: Context) -> None:
    site = request.object
    if site is None:
        return
    maps, sites = context.resource("configmaps"), context.resource(Website)
    namespace = await context.uncached("namespaces").get(site.namespace)
    secret = await context.uncached("secrets").get(f"{site.namespace}/style")
    metadata = {"name": site.name, "namespace": site.namespace, "ownerReferences": [owner_reference(site)]}
    await maps.apply({"metadata": metadata, "data": {"html": site.spec.html, "namespace": namespace.uid}})
    if site.status is None:
        await _go_through_a_draft(site, context)
        with suppress(NotFoundError):  # an earlier try evicted it
            await context.uncached("pods").evict(f"{site.namespace}/old")
        site = await sites.patch_status(site, {"status": {"phase": "Published"}})
    colour = secret["data"]["colour"]
    if site.status is not None and site.status.colour != colour:
        context.events.event(
            site, "Normal", "Coloured", "it has its colour"
        )  # the second one patches the first
        current = await context.uncached(Website).get(site.key)
        status = WebsiteStatus("Published", colour)
        await sites.update_status(msgspec.structs.replace(current, status=status))


async def _go_through_a_draft(site: Website, context: Context) -> None:
    maps = context.resource("configmaps")
    key = f"{site.namespace}/draft"
    with suppress(AlreadyExistsError):  # an earlier try created it
        await maps.create({"metadata": {"name": "draft", "namespace": site.namespace}})
    draft = await context.uncached("configmaps").get(key)
    draft = await maps.update({**draft, "data": {"html": site.spec.html}})
    await maps.patch(key, {"data": {"html": "final"}})
    await maps.delete(key)


async def create(admin: Client, namespace: str) -> None:
    """Create a Website, and what its reconciler reads."""
    container = {"name": "web", "image": "example.com/web:1"}
    pod = {"metadata": {"name": "old"}, "spec": {"containers": [container]}}
    for plural, kind, obj in (
        ("secrets", "Secret", {"metadata": {"name": "style"}, "data": {"colour": "Ymx1ZQ=="}}),
        ("pods", "Pod", pod),
    ):
        obj["metadata"]["namespace"] = namespace  # type: ignore[index]
        await Resource(admin, "v1", plural, kind=kind).create(obj)
    site = {"metadata": {"name": "home", "namespace": namespace}, "spec": {"html": "hi"}}
    await Resource(admin, Website).create(site)


async def live(admin: Client, namespace: str) -> None:
    """Create a Website, change its Secret, and delete it; wait each time until the operator has followed."""
    sites, key = Resource(admin, Website), f"{namespace}/home"
    await create(admin, namespace)
    async with asyncio.timeout(PATIENCE):
        await _until(sites, key, lambda site: site is not None and _colour(site) == "Ymx1ZQ==")
        secrets = Resource(admin, "v1", "secrets", kind="Secret")
        await secrets.patch(f"{namespace}/style", {"data": {"colour": "cmVk"}})
        await _until(sites, key, lambda site: site is not None and _colour(site) == "cmVk")
        await sites.delete(key)
        await _until(sites, key, lambda site: site is None)


def _colour(site: Website) -> str:
    return site.status.colour if site.status is not None else ""


async def _until(sites: Resource[Website], key: str, condition: Any) -> None:
    while True:
        try:
            site: Website | None = await sites.get(key)
        except NotFoundError:
            site = None
        if condition(site):
            return
        await asyncio.sleep(0.02)
