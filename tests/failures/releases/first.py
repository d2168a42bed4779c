"""The first release: Websites have a host and a text."""

from __future__ import annotations

from typing import Annotated

import aiohttp
import msgspec
from msgspec import Meta

from aioinformer.operator import AdmissionReview, Context, Denied, GenerationChanged, Operator, Request
from aioinformer.typed import CamelStruct, Condition, CustomResource, MapOf
from examples.website.operator import HOST

TIMEOUT = 5.0
"""Seconds that a reconcile may take."""


class Settings(msgspec.Struct):
    dns_url: str


class Spec(CamelStruct, kw_only=True):
    host: Annotated[str, Meta(pattern=HOST, max_length=253)]
    html: str


class Status(CamelStruct, kw_only=True):
    conditions: Annotated[list[Condition], MapOf("type")] = msgspec.field(default_factory=list)


class Website(CustomResource, group="example.com", version="v1"):
    """A website."""

    spec: Spec
    status: Status | None = None


operator = Operator("websites", conditions=True, settings=Settings)


async def dns(method: str, host: str, context: Context) -> None:
    """Send a request to the DNS API."""
    async with aiohttp.request(method, f"{context.get(Settings).dns_url}/{host}") as answer:
        answer.raise_for_status()


async def remove_dns(request: Request[Website], context: Context) -> None:
    assert request.object is not None
    await dns("DELETE", request.object.spec.host, context)


@operator.controller(
    Website,
    owns=["configmaps", "deployments"],
    predicate=GenerationChanged(),
    finalizer="example.com/dns",
    cleanup=remove_dns,
    timeout=TIMEOUT,
)
async def reconcile(request: Request[Website], context: Context) -> None:
    site = request.object
    if site is None:
        return
    await context.apply_owned(site, "configmaps", {"data": {"index.html": site.spec.html}})
    labels = {"website": site.name}
    container = {"name": "web", "image": "nginx:1"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    await context.apply_owned(
        site, "deployments", {"spec": {"selector": {"matchLabels": labels}, "template": pod}}
    )
    await dns("PUT", site.spec.host, context)
    context.logger.info("published")


@operator.validate(Website)
async def check_host(review: AdmissionReview[Website], context: Context) -> None:
    for other in await context.resource(Website).list():
        if other.spec.host == review.object.spec.host and other.key != review.object.key:
            raise Denied(f"is taken by {other.key}", field="spec.host")
