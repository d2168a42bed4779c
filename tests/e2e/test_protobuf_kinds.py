"""Every built-in kind that the real API server serves says the same by protobuf and by JSON."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import KubeObject, ListOptions, ListWatch
from aioinformer.objects.protobuf import ProtobufForm, is_known

from .api import API, Object, Resource
from .clusters import KubernetesCluster

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.asyncio(loop_factories=["asyncio"]),  # about bytes, not about sockets
]

NOT_KNOWN = {"customresourcedefinitions", "apiservices"}
"""Types of API servers that are aggregated, or might be: read as JSON."""

CONTAINER = {
    "name": "app",
    "image": "example.com/app:1",
    "env": [
        {"name": "A", "value": "ü"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ],
    "ports": [{"containerPort": 8080, "name": "http"}],
    "livenessProbe": {"httpGet": {"port": "http", "path": "/healthz"}, "periodSeconds": 5},
    "resources": {"requests": {"cpu": "1000m", "memory": "0.5Gi"}},
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"app": "web"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}

OBJECTS: dict[Resource, Object] = {
    Resource("v1", "pods"): {
        "metadata": {"name": "a", "annotations": {"note": "ü" * 500}},
        "spec": TEMPLATE["spec"],
    },
    Resource("v1", "secrets"): {"metadata": {"name": "a"}, "data": {"binary": "AAEC/w==", "empty": ""}},
    Resource("v1", "configmaps"): {"metadata": {"name": "a"}, "data": {"a": ""}, "binaryData": {"b": "AA=="}},
    Resource("v1", "services"): {
        "metadata": {"name": "a"},
        "spec": {
            "ports": [
                {"name": "h", "port": 80, "targetPort": "http"},
                {"name": "n", "port": 81, "targetPort": 8081},
            ]
        },
    },
    Resource("v1", "persistentvolumeclaims"): {"metadata": {"name": "a"}, "spec": CLAIM},
    Resource("apps/v1", "deployments"): {
        "metadata": {"name": "a"},
        "spec": {"selector": SELECTOR, "template": TEMPLATE},
    },
    Resource("apps/v1", "statefulsets"): {
        "metadata": {"name": "a"},
        "spec": {
            "serviceName": "a",
            "selector": SELECTOR,
            "template": TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
        },
    },
    Resource("apps/v1", "controllerrevisions"): {
        "metadata": {"name": "a"},
        "revision": 7,
        "data": {"spec": {"a": [1.5]}},
    },
    Resource("batch/v1", "cronjobs"): {
        "metadata": {"name": "a"},
        "spec": {
            "schedule": "* * * * *",
            "suspend": True,
            "jobTemplate": {
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}
            },
        },
    },
    Resource("rbac.authorization.k8s.io/v1", "roles"): {"metadata": {"name": "a"}},
    Resource("networking.k8s.io/v1", "networkpolicies"): {
        "metadata": {"name": "a"},
        "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}, {"port": "http"}]}, {}]},
    },
    Resource("policy/v1", "poddisruptionbudgets"): {
        "metadata": {"name": "a"},
        "spec": {"maxUnavailable": "25%", "selector": SELECTOR},
    },
    Resource("coordination.k8s.io/v1", "leases"): {
        "metadata": {"name": "a"},
        "spec": {"renewTime": "2026-01-02T03:04:05.123456Z", "leaseDurationSeconds": 5},
    },
    Resource("autoscaling/v2", "horizontalpodautoscalers"): {
        "metadata": {"name": "a"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "0.1"}},
                }
            ],
        },
    },
}


async def list_served(api: API) -> list[Resource]:
    """Every built-in collection that can be watched: the server registers these on start; what other tests define comes
    and goes."""
    registered = await api.do(
        "GET",
        "/apis/apiregistration.k8s.io/v1/apiservices"
        "?labelSelector=kube-aggregator.kubernetes.io/automanaged%3Donstart",
    )
    specs = [item["spec"] for item in registered["items"]]
    versions = ["/".join(filter(None, (spec.get("group"), spec["version"]))) for spec in specs]
    resources: list[Resource] = []
    for version in versions:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        resources += [
            Resource(version, resource["name"], resource["namespaced"])
            for resource in (await api.do("GET", root))["resources"]
            if "watch" in resource["verbs"] and "/" not in resource["name"]
        ]
    return resources


async def read_list(list_watch: ListWatch) -> dict[str, KubeObject]:
    result = await list_watch.list()
    return by_key(
        [
            item if isinstance(item, KubeObject) else KubeObject.from_bytes(item, result.type_meta)
            for item in result.items
        ]
    )


async def read_stream(list_watch: ListWatch) -> dict[str, KubeObject]:
    """The same, as a WatchList."""
    options = ListOptions(
        send_initial_events=True,
        allow_watch_bookmarks=True,
        resource_version_match="NotOlderThan",
        timeout_seconds=30,
    )
    stream: Any = await list_watch.watch(options)
    objects: list[Any] = []
    try:
        async for batch in stream:
            objects += [event.object for event in batch if event.type != "BOOKMARK"]
            if any(event.type == "BOOKMARK" for event in batch):
                break
    finally:
        await stream.aclose()
    return by_key([obj if isinstance(obj, KubeObject) else KubeObject.from_bytes(obj) for obj in objects])


def by_key(objects: list[KubeObject]) -> dict[str, KubeObject]:
    return {obj.key: obj for obj in objects}


@pytest.mark.timeout(300)
async def test_every_kind_is_equal_in_json_and_protobuf(real: KubernetesCluster) -> None:
    for resource, obj in OBJECTS.items():
        await real.create(resource, obj)
    async with real.client() as client:
        kinds = 0
        for resource in await list_served(real.api):
            known = is_known(resource.api_version, resource.plural)
            assert known is (resource.plural not in NOT_KNOWN), resource
            as_json, as_protobuf = (
                ListWatch.for_resource(client, resource.api_version, resource.plural, protobuf=protobuf)
                for protobuf in (False, True)
            )
            expected = await read_list(as_json)
            for objects in (
                await read_list(as_protobuf),
                await read_stream(as_protobuf),
                await read_stream(as_json),
            ):
                for key, read in objects.items():
                    if key in expected and read.resource_version == expected[key].resource_version:
                        assert read == expected[key], (resource, key)
            assert all(
                isinstance(obj._form, ProtobufForm) is known
                for obj in (await read_list(as_protobuf)).values()
            )
            kinds += known
        assert kinds > 50


@pytest.mark.parametrize("resource", OBJECTS, ids=lambda resource: resource.plural)
async def test_written_protobuf_is_read_back(real: KubernetesCluster, resource: Resource) -> None:
    """The object that the server gave in JSON, field by field."""
    created = await real.create(resource, OBJECTS[resource])
    async with real.client() as client:
        list_watch = real.list_watch(client, resource, protobuf=True)
        for objects in (await read_list(list_watch), await read_stream(list_watch)):
            obj = objects[real.key("a")]
            assert isinstance(obj._form, ProtobufForm)
            if obj.resource_version == created["metadata"]["resourceVersion"]:
                assert obj.to_dict() == created
