# part: main
"""Websites with aioinformer: a Website is a ConfigMap, a Deployment, a Service and a DNS record.

    aioinformer run examples.website.operator:operator --tls-cert tls.crt --tls-key tls.key

``DNS_URL`` is an environment variable.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import aiohttp
import msgspec
from msgspec import Meta

from aioinformer import set_status_condition
from aioinformer.operator import AdmissionReview, Context, Denied, GenerationChanged, Operator, Request
from aioinformer.typed import CamelStruct, Condition, CustomResource, MapOf, Rule

operator = Operator("websites", failure_events=False)  # it records its own

# part: types and CRD
HOST = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$"


class WebsiteSpec(CamelStruct, kw_only=True):
    """The wanted state of a website."""

    host: Annotated[str, Meta(pattern=HOST, max_length=253), Rule("self == oldSelf", "host cannot change")]
    image: str
    html: str
    replicas: Annotated[int, Meta(ge=1, le=10)] = 2


class WebsiteStatus(CamelStruct, kw_only=True):
    """The observed state."""

    url: str = ""
    ready_replicas: int = 0
    conditions: Annotated[list[Condition], MapOf("type")] = msgspec.field(default_factory=list)


class Website(CustomResource, group="example.com", version="v1"):
    """A website."""

    spec: WebsiteSpec
    status: WebsiteStatus | None = None


# part: finalizer
async def remove_dns(request: Request[Website], context: Context) -> None:
    """Remove the DNS record of a Website that is being deleted."""
    assert request.object is not None
    await dns("DELETE", request.object, context)


async def dns(method: str, site: Website, context: Context) -> None:
    """Send a request to the DNS API. A failure is an Event, and is retried."""
    try:
        async with aiohttp.request(method, f"{os.environ['DNS_URL']}/{site.spec.host}") as answer:
            answer.raise_for_status()
    except aiohttp.ClientError as error:
        context.events.event(site, "Warning", "DNSFailed", str(error))
        raise


# part: reconcile
@operator.controller(
    Website,
    owns=["configmaps", "deployments", "services"],
    predicate=GenerationChanged(),
    finalizer="example.com/dns",
    cleanup=remove_dns,
)
async def reconcile(request: Request[Website], context: Context) -> None:
    """Make what a Website owns."""
    site = request.object
    if site is None:
        return  # what it owns is collected
    if site.status is None:
        context.events.event(site, "Normal", "Created", f"http://{site.spec.host} is being published")
    await context.apply_owned(site, "configmaps", {"data": {"index.html": site.spec.html}})
    deployment = await context.apply_owned(site, "deployments", {"spec": workload(site)})
    ports = {"selector": {"website": site.name}, "ports": [{"port": 80}]}
    await context.apply_owned(site, "services", {"spec": ports})
    await dns("PUT", site, context)
    await write_status(site, deployment["status"].get("readyReplicas", 0), context)


def workload(site: Website) -> dict[str, Any]:
    """Return the spec of the Deployment."""
    labels = {"website": site.name}
    container = {
        "name": "web",
        "image": site.spec.image,
        "ports": [{"containerPort": 80}],
        "volumeMounts": [{"name": "html", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "html", "configMap": {"name": site.name}}]}
    return {
        "replicas": site.spec.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


async def write_status(site: Website, ready: int, context: Context) -> None:
    """Write the status if it differs."""
    is_ready = ready >= site.spec.replicas
    old = site.status or WebsiteStatus()
    status = msgspec.structs.replace(old, url=f"http://{site.spec.host}", ready_replicas=ready)
    new, _ = set_status_condition(
        msgspec.structs.replace(site, status=status),
        "Ready",
        "True" if is_ready else "False",
        reason="Available" if is_ready else "Progressing",
        message=f"{ready} of {site.spec.replicas} replicas are ready",
    )
    if new.status != site.status:
        await context.resource(Website).update_status(new)


# part: webhook
@operator.validate(Website)
async def check_host(review: AdmissionReview[Website], context: Context) -> None:
    """Refuse two Websites with one host."""
    site = review.object
    for other in await context.resource(Website).list():
        if other.spec.host == site.spec.host and other.key != site.key:
            raise Denied(f"is taken by {other.key}", field="spec.host")


# part: end
