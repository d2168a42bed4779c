"""lightkube-models as object types: named by their class, typed, and updated without losing fields."""

from __future__ import annotations

import pytest
from lightkube.models.apps_v1 import Deployment, DeploymentSpec
from lightkube.models.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta

from aioinformer import CachedResource, Client, ListWatch, Resource, SharedIndexInformer
from aioinformer.operator import owner_reference

from . import api
from .clusters import Cluster

DEPLOYMENTS = api.Resource("apps/v1", "deployments")


def deployment(cluster: Cluster) -> Deployment:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}),
        spec=PodSpec(containers=[Container(name="web", image="example.com/web")]),
    )
    return Deployment(
        metadata=ObjectMeta(name="web", namespace=cluster.namespace),
        spec=DeploymentSpec(
            selector=LabelSelector(matchLabels={"app": "web"}), template=template, replicas=2
        ),
    )


async def test_models_are_read_and_written(cluster: Cluster, client: Client) -> None:
    list_watch = ListWatch.for_resource(client, Deployment, namespace=cluster.namespace)
    async with SharedIndexInformer(list_watch, Deployment) as informer:
        deployments = CachedResource(Resource(client, Deployment), informer)
        created = await deployments.create(deployment(cluster))
        read = await deployments.get(cluster.key("web"))
        assert read == created
        assert (read.apiVersion, read.kind) == ("apps/v1", "Deployment")
        assert owner_reference(read)["kind"] == "Deployment"
        assert read.spec is not None
        read.spec.replicas = 3
        updated = await deployments.update(read)
        assert updated.spec is not None
        assert updated.spec.replicas == 3
        assert updated.spec.template.spec is not None
        assert updated.spec.template.spec.containers[0].image == "example.com/web"


@pytest.mark.parametrize("field", ["kept", "changed"])
async def test_an_update_keeps_what_the_model_lacks(cluster: Cluster, client: Client, field: str) -> None:
    maps = Resource(client, ConfigMap)
    metadata = {"name": "a", "namespace": cluster.namespace, "annotations": {"x": "y"}}
    created = await maps.create({"metadata": metadata, "data": {"kept": "1", "changed": "1"}})
    assert created.data is not None
    created.data[field] = "2"
    await maps.update(created)
    stored = (await cluster.list(api.CONFIGMAPS))[cluster.key("a")]
    assert stored["data"] == {"kept": "1", "changed": "1", field: "2"}
    assert stored["metadata"]["annotations"] == {"x": "y"}
