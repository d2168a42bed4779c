"""What is beside the Deployment: budgets, spreading, the network, monitoring, and roles of users."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import ConfigError
from aioinformer.operator import CustomResource, Operator, Request
from aioinformer.operator.manifests import FromKey, Installation, Mount, manifests
from aioinformer.typed import Scale

from .test_manifests import container, declare, installation, make_guarded

Object = dict[str, Any]


class Replicas(msgspec.Struct):
    replicas: int = 0


def find(objects: list[Object], kind: str) -> list[Object]:
    return [obj for obj in objects if obj["kind"] == kind]


def pod_of(objects: list[Object]) -> Object:
    return objects[-1]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("shards", [0, 64])
@pytest.mark.parametrize(("replicas", "has_budget"), [(0, False), (1, False), (2, True)])
def test_several_pods_have_a_budget_and_are_spread(replicas: int, has_budget: bool, shards: int) -> None:
    objects = manifests(declare("configmaps"), installation(replicas=replicas, shards=shards))
    budgets = find(objects, "PodDisruptionBudget")
    assert [budget["spec"]["maxUnavailable"] for budget in budgets] == [1] * has_budget
    spread = pod_of(objects).get("topologySpreadConstraints", [])
    assert [constraint["topologyKey"] for constraint in spread] == (
        ["kubernetes.io/hostname", "topology.kubernetes.io/zone"] if has_budget else []
    )
    for selector in [budget["spec"]["selector"] for budget in budgets] + [
        constraint["labelSelector"] for constraint in spread
    ]:
        assert selector == objects[-1]["spec"]["selector"]


def test_the_network_policy_opens_metrics_to_labelled_namespaces_and_webhooks_to_the_api_server() -> None:
    (policy,) = find(manifests(make_guarded(), installation()), "NetworkPolicy")
    metrics, webhooks = policy["spec"]["ingress"]
    assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]
    assert (metrics["ports"][0]["port"], webhooks) == (
        "metrics",
        {"ports": [{"protocol": "TCP", "port": "webhooks"}]},
    )
    (policy,) = find(manifests(declare("configmaps"), installation()), "NetworkPolicy")
    assert policy["spec"]["ingress"] == [metrics]
    assert not find(manifests(declare("configmaps"), installation(network_policy=False)), "NetworkPolicy")


def test_a_pod_monitor_is_there_if_it_is_asked_for() -> None:
    assert not find(manifests(declare("configmaps"), installation()), "PodMonitor")
    objects = manifests(declare("configmaps"), installation(pod_monitor=True))
    (monitor,) = find(objects, "PodMonitor")
    assert monitor["spec"]["selector"] == objects[-1]["spec"]["selector"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in container(objects)["ports"]]


def test_users_get_roles_for_the_kinds_of_the_operator() -> None:
    class Farm(
        CustomResource,
        group="example.com",
        version="v1",
        scale=Scale(),
    ):
        spec: Replicas
        status: Replicas | None = None

    class Cave(CustomResource, group="caves.example.com", version="v1", namespaced=False):
        spec: int = 0

    roles = {
        role["metadata"]["name"]: role
        for role in find(manifests(declare(Farm, Cave, "pods"), installation()), "ClusterRole")
    }
    for name in ("view", "edit", "admin"):
        labels = roles[f"sites-{name}"]["metadata"]["labels"]
        assert labels[f"rbac.authorization.k8s.io/aggregate-to-{name}"] == "true"
    assert roles["sites-view"]["rules"] == [
        {
            "apiGroups": ["example.com"],
            "resources": ["farms", "farms/status"],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": ["caves.example.com"],
            "resources": ["caves", "caves/status"],
            "verbs": ["get", "list", "watch"],
        },
        {"apiGroups": ["example.com"], "resources": ["farms/scale"], "verbs": ["get"]},
    ]
    edit = ["create", "update", "patch", "delete", "deletecollection"]
    assert roles["sites-edit"]["rules"] == [
        {"apiGroups": ["example.com"], "resources": ["farms"], "verbs": edit},
        {"apiGroups": ["caves.example.com"], "resources": ["caves"], "verbs": edit},
        {"apiGroups": ["example.com"], "resources": ["farms/scale"], "verbs": ["update", "patch"]},
    ]


def test_an_operator_without_kinds_of_its_own_has_no_roles_for_users() -> None:
    assert [
        role["metadata"]["name"] for role in find(manifests(declare("pods"), installation()), "ClusterRole")
    ] == ["sites"]


def test_an_installation_holds_settings_and_files() -> None:
    operator = Operator("sites")

    @operator.controller("configmaps")
    async def reconcile(request: Request[Any]) -> None: ...

    with pytest.raises(ConfigError, match="sites has no setting 'host'; it has none: pass settings="):
        manifests(operator, installation(settings={"host": FromKey("secret", "a", "b")}))
    installed: Installation = installation(mounts=(Mount("secret", "dns", "/etc/dns"),))
    assert pod_of(manifests(operator, installed))["volumes"][1] == {
        "name": "settings-0",
        "secret": {"secretName": "dns"},
    }
