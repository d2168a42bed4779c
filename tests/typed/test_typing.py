"""What type checkers know of typed resources: mypy and pyright check this file."""

from __future__ import annotations

from typing import Any, assert_type

from lightkube.models.core_v1 import Pod

from aioinformer import (
    CachedResource,
    Client,
    KubeObject,
    Resource,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.operator import Manager, Request
from aioinformer.typed import APIResource, CamelStruct, CustomResource, Metadata, crd


class SiteSpec(CamelStruct, kw_only=True):
    host: str
    min_ready: int = 1


class Site(CustomResource, group="example.com", version="v1", short_names=("st",)):
    spec: SiteSpec
    status: SiteSpec | None = None


async def test_types_of_calls() -> None:
    client = Client.from_url("http://127.0.0.1:1")
    factory, manager = SharedInformerFactory(client), Manager(client)
    found = APIResource("example.com/v1", "sites", "Site", True)
    assert_type(factory.for_resource("pods"), SharedIndexInformer[KubeObject])
    assert_type(factory.for_resource("v1", "pods"), SharedIndexInformer[KubeObject])
    assert_type(factory.for_resource(Site), SharedIndexInformer[Site])
    assert_type(factory.for_resource("pods", Pod), SharedIndexInformer[Pod])
    assert_type(factory.for_resource("v1", "pods", Pod), SharedIndexInformer[Pod])
    assert_type(manager.for_resource(Pod), SharedIndexInformer[Pod])
    assert_type(manager.resource(Site, namespace="a"), CachedResource[Site])
    assert_type(manager.resource("pods"), CachedResource[KubeObject])
    assert_type(manager.resource("pods", Pod), CachedResource[Pod])
    assert_type(manager.resource(found), CachedResource[KubeObject])
    assert_type(Resource(client, Site), Resource[Site])
    assert_type(Resource(client, "nodes"), Resource[KubeObject])
    assert_type(Resource(client, found, Site), Resource[Site])
    assert_type(crd(Site), dict[str, Any])


async def reconcile(request: Request[Site]) -> None:
    site = request.object
    if site is not None:
        assert_type(site.spec.min_ready, int)
        assert_type(site.metadata, Metadata)
        assert_type(site.key, str)


def test_types_of_objects() -> None:
    site = Site(SiteSpec(host="a"), metadata=Metadata(name="a", namespace="b"))
    assert_type(site.spec, SiteSpec)
    assert_type(site.metadata.labels, dict[str, str])
    assert (site.key, site.kind, site.api_version) == ("b/a", "Site", "example.com/v1")
