"""A custom resource from a class: its CustomResourceDefinition, typed objects, and what a change changed.

    python examples/custom_resource.py

It runs on an API server inside this process.
"""

from __future__ import annotations

import asyncio
import copy
from typing import Annotated, Any

from msgspec import Meta, field

from aioinformer import CachedResource, Client, Resource, SharedInformerFactory
from aioinformer.testing import APIServer
from aioinformer.typed import (
    APIResource,
    CamelStruct,
    Change,
    Column,
    Condition,
    CustomResource,
    IntOrString,
    MapOf,
    Metadata,
    PreserveUnknown,
    Quantity,
    Rule,
    Scale,
    SetOf,
    crd,
    diff,
)


class Port(CamelStruct):
    name: str
    target: IntOrString = 80


class WebsiteSpec(CamelStruct, kw_only=True):
    """The wanted state of a website."""

    host: Annotated[str, Meta(max_length=100), Rule("self == oldSelf", message="host cannot change")]
    replicas: Annotated[int, Meta(ge=0)] = 1
    memory: Quantity = "64Mi"
    ports: Annotated[list[Port], MapOf("name")] = field(default_factory=list)
    aliases: Annotated[list[str], SetOf] = field(default_factory=list)
    settings: Annotated[dict[str, Any], PreserveUnknown] = field(default_factory=dict)


class WebsiteStatus(CamelStruct, kw_only=True):
    replicas: int = 0
    conditions: Annotated[list[Condition], MapOf("type")] = field(default_factory=list)


class Website(
    CustomResource,
    group="example.com",
    version="v1",
    short_names=("web",),
    scale=Scale(),
    columns=[Column("Host", ".spec.host"), Column("Replicas", ".spec.replicas")],
):
    """A website."""

    spec: WebsiteSpec
    status: WebsiteStatus | None = None


async def main() -> list[Change]:
    async with APIServer() as server, Client.from_url(server.url) as client:
        await Resource(client, "crds").create(crd(Website))
        resource: APIResource = await client.discovery.find("web")
        print(f"the server has {resource}, version {resource.version}")

        factory = SharedInformerFactory(client)
        websites = CachedResource(Resource(client, Website), factory.for_resource(Website))
        async with factory:
            metadata = Metadata(name="shop", namespace="default")
            await websites.create(Website(WebsiteSpec(host="shop.example"), metadata=metadata))

            cached = await websites.get("default/shop")
            edited = copy.deepcopy(cached)  # other readers share the cached object
            edited.spec.replicas = 3
            edited.spec.ports.append(Port("http", "web"))
            updated = await websites.update(edited)

            changes = diff(cached.spec, updated.spec)
            for change in changes:
                print(change)
            return changes


if __name__ == "__main__":
    asyncio.run(main())
