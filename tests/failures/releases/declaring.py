"""What is the same in all releases: a Website is a ConfigMap, a Deployment and a DNS record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import aiohttp
import msgspec
from msgspec import Meta

from aioinformer import CachedResource
from aioinformer.operator import AdmissionReview, Context, Denied, GenerationChanged, Operator, Request, Uses
from aioinformer.typed import CamelStruct, Condition, CustomResource, MapOf
from examples.website.operator import HOST

TIMEOUT = 5.0
"""Seconds that a reconcile may take."""

W = TypeVar("W", bound=CustomResource)
Host = Annotated[str, Meta(pattern=HOST, max_length=253)]


class Settings(msgspec.Struct):
    dns_url: str


class Status(CamelStruct, kw_only=True):
    conditions: Annotated[list[Condition], MapOf("type")] = msgspec.field(default_factory=list)


async def call_dns(method: str, host: str, context: Context) -> None:
    """Send a request to the DNS API."""
    async with aiohttp.request(method, f"{context.get(Settings).dns_url}/{host}") as answer:
        answer.raise_for_status()


def declare(
    kind: type[W],
    read: Callable[[W], tuple[str, dict[str, str]]],
    *,
    reviewed: type[CustomResource] | None = None,
) -> Operator:
    """Return the operator.

    Args:
        kind: The class of Websites.
        read: Returns a Website's host and the data of its ConfigMap.
        reviewed: The class whose objects the webhook reviews and reads, if it is another one.
    """
    reviewed = reviewed or kind
    operator = Operator("websites", conditions=True, settings=Settings, uses=[Uses(reviewed)])

    async def remove_dns(request: Request[Any], context: Context) -> None:
        if isinstance(request.object, kind):
            await call_dns("DELETE", read(request.object)[0], context)

    @operator.controller(
        kind,
        owns=["configmaps", "deployments"],
        predicate=GenerationChanged(),
        finalizer="example.com/dns",
        cleanup=remove_dns,
        timeout=TIMEOUT,
    )
    async def reconcile(request: Request[Any], context: Context) -> None:
        site = request.object
        if site is None:
            return
        host, data = read(site)
        await context.apply_owned(site, "configmaps", {"data": data})
        labels = {"website": site.name}
        pod = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
        }
        await context.apply_owned(
            site, "deployments", {"spec": {"selector": {"matchLabels": labels}, "template": pod}}
        )
        await call_dns("PUT", host, context)
        context.logger.info("published")

    @operator.validate(reviewed)
    async def check_host(review: AdmissionReview[Any], context: Context) -> None:
        sites: CachedResource[Any] = context.resource(reviewed)
        for other in await sites.list():
            if other.spec.host == review.object.spec.host and other.key != review.object.key:
                raise Denied(f"is taken by {other.key}", field="spec.host")

    return operator
