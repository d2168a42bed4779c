"""A resource is named by its class, by a name, or by apiVersion and plural."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lightkube.models import apps_v1, autoscaling_v2, core_v1, events_v1, rbac_v1

from aioinformer import (
    CachedResource,
    Client,
    ConfigError,
    KubeObject,
    ListWatch,
    Resource,
    SharedInformerFactory,
)
from aioinformer.client.lookup import look_up, resource_of, resource_of_class
from aioinformer.operator import Manager
from aioinformer.testing import APIServer, ResourceType
from aioinformer.typed import APIResource, CustomResource


class Website(CustomResource, group="example.com", version="v1"):
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class Farm(CustomResource, group="example.com", version="v1", namespaced=False):
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class Settings(msgspec.Struct):
    metadata: dict[str, Any]


PODS = APIResource("v1", "pods", "Pod", True)
NODES = APIResource("v1", "nodes", "Node", False)
DEPLOYMENTS = APIResource("apps/v1", "deployments", "Deployment", True)
WEBSITES = APIResource("example.com/v1", "websites", "Website", True)


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("pods", PODS),
        ("pod", PODS),
        ("Pod", PODS),
        ("po", PODS),
        ("nodes", NODES),
        ("deploy", DEPLOYMENTS),
        ("deployments.apps", DEPLOYMENTS),
        ("deployments.v1.apps", DEPLOYMENTS),
        (Website, WEBSITES),
        (core_v1.Pod, PODS),
        (apps_v1.Deployment, DEPLOYMENTS),
        (WEBSITES, WEBSITES),
    ],
    ids=str,
)
async def test_resources_are_found_without_a_request(
    client: Client, name: Any, resource: APIResource
) -> None:
    assert resource_of(client, name) == resource
    assert look_up(client, name).resource == resource


@pytest.mark.parametrize(
    ("model", "api_version"),
    [
        (core_v1.Event, "v1"),
        (events_v1.Event, "events.k8s.io/v1"),
        (rbac_v1.ClusterRole, "rbac.authorization.k8s.io/v1"),
        (autoscaling_v2.HorizontalPodAutoscaler, "autoscaling/v2"),
    ],
)
def test_classes_of_lightkube_models_say_their_resource(model: type, api_version: str) -> None:
    assert resource_of_class(model).api_version == api_version


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("caves", r"'caves' is not the name of a built-in resource: .*client\.discovery\.find\('caves'\)"),
        ("apps/v1", r"'apps/v1' is not the name"),
        (
            Settings,
            r"Settings does not name its resource: give a name .*Kind\(\"pods\", Settings\); or .* if the kind is",
        ),
        (core_v1.PodSpec, r"PodSpec does not name its resource"),
        (KubeObject, r"KubeObject does not name its resource"),
        (7, r"a resource must be a name or a class, not 7"),
    ],
)
async def test_a_wrong_name_says_what_to_do(client: Client, wrong: Any, message: str) -> None:
    for ask in (ListWatch.for_resource, Resource):
        with pytest.raises(ConfigError, match=message):
            ask(client, wrong)


async def test_a_plural_after_a_class_is_refused(client: Client) -> None:
    for ask in (ListWatch.for_resource, Resource):
        with pytest.raises(ConfigError, match=r"api_version must be a string, like 'apps/v1', not .*Website"):
            ask(client, Website, "websites")


async def test_list_watches_are_named_shortly(client: Client) -> None:
    assert ListWatch.for_resource(client, "pods", namespace="a").description == "pods in a"
    assert ListWatch.for_resource(client, Website).description == "websites.example.com"
    assert (
        ListWatch.for_resource(client, "apps/v1", "deployments", "b").description == "deployments.apps in b"
    )
    with pytest.raises(ConfigError, match=r"nodes are cluster-scoped: read them without namespace='a'"):
        ListWatch.for_resource(client, "nodes", namespace="a")


async def test_all_names_of_a_collection_share_an_informer(client: Client) -> None:
    factory = SharedInformerFactory(client, "a")
    pods = factory.for_resource("pods")
    assert pods is factory.for_resource("v1", "pods") is factory.for_resource("po")
    assert factory.for_resource("pods", dict).object_type is dict
    assert factory.for_resource(Website).object_type is Website
    assert factory.for_resource("nodes").name == "nodes"
    assert factory.for_resource(Farm).name == "farms.example.com"
    with pytest.raises(ConfigError, match=r"nodes are cluster-scoped"):
        factory.for_resource("nodes", namespace="a")


async def test_a_manager_reads_and_writes_by_name(server: APIServer, client: Client) -> None:
    manager = Manager(client, namespace="default")
    maps, nodes = manager.resource("cm"), manager.resource("nodes", Settings)
    assert manager.for_resource("configmaps") is maps.informer
    async with manager:
        await maps.create({"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}})
        assert [config_map.key for config_map in await maps.list()] == ["default/a"]
        await nodes.create({"metadata": {"name": "n"}})
        assert (await nodes.get("n")).metadata["name"] == "n"


async def test_an_unknown_resource_is_found_by_discovery_once(server: APIServer, client: Client) -> None:
    with pytest.raises(ConfigError, match=r"has no resource 'caves'"):
        await client.discovery.find("caves")
    server.register(ResourceType("example.com", "v1", "caves", "Cave", short_names=("cv",)))
    cave = await client.discovery.find("cv")
    assert cave == APIResource("example.com/v1", "caves", "Cave", True)
    asked = len(server.requests)
    assert await client.discovery.find("cv") == cave
    assert Resource(client, "cv")._endpoint.kind == "Cave"
    assert len(server.requests) == asked
    assert await client.discovery.find("cv", refresh=True) == cave
    assert len(server.requests) > asked


async def test_resources_of_a_class_are_typed(server: APIServer, client: Client) -> None:
    server.register(ResourceType("example.com", "v1", "websites", "Website"))
    resource = Resource(client, Website)
    created = await resource.create({"metadata": {"name": "a", "namespace": "default"}, "spec": {"x": 1}})
    assert isinstance(created, Website)
    factory = SharedInformerFactory(client)
    cached = CachedResource(resource, factory.for_resource(Website))
    async with factory:
        obj = await cached.get("default/a")
        assert obj == created
        assert (obj.kind, obj.api_version, obj.spec) == ("Website", "example.com/v1", {"x": 1})
