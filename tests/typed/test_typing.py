"""What type checkers know of typed resources: mypy and pyright check this file."""

from __future__ import annotations

from typing import Any, assert_type

from lightkube.models.core_v1 import Pod
from pydantic import BaseModel

from aioinformer import (
    CachedResource,
    Client,
    KubeObject,
    Resource,
    SharedIndexInformer,
    SharedInformerFactory,
    add_finalizer,
    remove_finalizer,
    remove_status_condition,
    set_status_condition,
)
from aioinformer.operator import Manager, Request
from aioinformer.typed import APIResource, CamelStruct, Condition, CustomResource, Metadata, crd


class SiteSpec(CamelStruct, kw_only=True):
    host: str
    min_ready: int = 1


class Site(CustomResource, group="example.com", version="v1", short_names=("st",)):
    spec: SiteSpec
    status: SiteSpec | None = None


class CaveStatus(CamelStruct):
    conditions: list[Condition] = []


class Cave(CustomResource, group="example.com", version="v1"):
    status: CaveStatus | None = None


class PageSpec(BaseModel):
    host: str
    min_ready: int = 1


class Page(CustomResource, group="example.com", version="v1"):
    spec: PageSpec
    status: PageSpec | None = None


async def test_types_of_calls() -> None:
    client = Client.from_url("http://127.0.0.1:1")
    factory, manager = SharedInformerFactory(client), Manager(client)
    resource = APIResource("example.com/v1", "sites", "Site", True)
    assert_type(factory.for_resource("pods"), SharedIndexInformer[KubeObject])
    assert_type(factory.for_resource("v1", "pods"), SharedIndexInformer[KubeObject])
    assert_type(
        factory.for_resource(api_version="v1", plural="pods", namespace="a"), SharedIndexInformer[KubeObject]
    )
    _: SharedIndexInformer[Pod] = factory.for_resource("v1", "pods")  # type: ignore[assignment]
    assert_type(factory.for_resource(Site), SharedIndexInformer[Site])
    assert_type(factory.for_resource("pods", Pod), SharedIndexInformer[Pod])
    assert_type(factory.for_resource("v1", "pods", Pod), SharedIndexInformer[Pod])
    assert_type(manager.for_resource(Pod), SharedIndexInformer[Pod])
    assert_type(manager.resource(Site, namespace="a"), CachedResource[Site])
    assert_type(manager.resource("pods"), CachedResource[KubeObject])
    assert_type(manager.resource("pods", Pod), CachedResource[Pod])
    assert_type(manager.resource("v1", "pods", object_type=Pod, kind="Pod"), CachedResource[Pod])
    assert_type(manager.resource(resource), CachedResource[KubeObject])
    assert_type(Resource(client, Site), Resource[Site])
    assert_type(Resource(client, "nodes"), Resource[KubeObject])
    assert_type(Resource(client, resource, Site), Resource[Site])
    assert_type(Resource(client, "example.com/v1", "sites", kind="Site"), Resource[KubeObject])
    assert_type(Resource(client, "example.com/v1", "sites", Site, timeout=5.0), Resource[Site])
    assert_type(crd(Site), dict[str, Any])
    assert_type(Resource(client, Page), Resource[Page])
    assert_type(factory.for_resource(Page), SharedIndexInformer[Page])


async def reconcile(request: Request[Site]) -> None:
    site = request.object
    if site is not None:
        assert_type(site.spec.min_ready, int)
        assert_type(site.metadata, Metadata)
        assert_type(site.key, str)


async def reconcile_page(request: Request[Page]) -> None:
    page = request.object
    if page is not None:
        assert_type(page.spec, PageSpec)
        assert_type(page.spec.min_ready, int)
        assert_type(page.status, PageSpec | None)


def test_types_of_objects() -> None:
    site = Site(SiteSpec(host="a"), metadata=Metadata(name="a", namespace="b"))
    assert_type(site.spec, SiteSpec)
    assert_type(site.metadata.labels, dict[str, str])
    assert (site.key, site.kind, site.api_version) == ("b/a", "Site", "example.com/v1")


def test_helpers_keep_a_narrowed_type() -> None:
    """A reconciler assigns their result to the variable that was ``T | None``."""
    request = Request[Site]("a", "b", Site(SiteSpec(host="a"), metadata=Metadata(name="b", namespace="a")))
    site = request.object
    assert site is not None
    site, added = add_finalizer(site, "example.com/f")
    assert site.metadata.finalizers == ["example.com/f"]
    site, removed = remove_finalizer(site, "example.com/f")
    assert site.metadata.finalizers == []
    assert added
    assert removed


def test_a_condition_keeps_a_narrowed_type() -> None:
    request = Request[Cave]("a", "b", Cave(metadata=Metadata(name="b", namespace="a")))
    cave = request.object
    assert cave is not None
    cave, changed = set_status_condition(cave, "Ready", "True", "Made")
    assert cave.status is not None
    assert changed
    cave, changed = remove_status_condition(cave, "Ready")
    assert cave.status is not None
