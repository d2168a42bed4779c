"""Defaults that depend on other fields."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing.schema.builtin import conditional_defaults, node_of
from aioinformer.testing.schema.conditional_defaults import complete
from aioinformer.testing.schema.decode import read_object

Object = dict[str, Any]

ELSEWHERE = {
    "apiextensions/v1.CustomResourceDefinitionNames": "definition_rules",
    "apiextensions/v1.CustomResourceDefinitionStatus": "definition_rules",
    "meta/v1.ObjectMeta": "defaults, for the label of a namespace",
}
"""Types whose defaults other modules set."""


def with_defaults(api_version: str, kind: str, **obj: Any) -> Object:
    node = node_of(api_version, kind)
    assert node is not None
    read, _ = read_object(node, obj)
    complete(read, kind, obj)
    return read


def deployment(**strategy: Any) -> Object:
    return with_defaults("apps/v1", "Deployment", spec={"strategy": strategy})["spec"]["strategy"]  # type: ignore[no-any-return]


def daemon_set(**strategy: Any) -> Object:
    spec = {"updateStrategy": strategy}
    return with_defaults("apps/v1", "DaemonSet", spec=spec)["spec"]["updateStrategy"]  # type: ignore[no-any-return]


def stateful_set(**strategy: Any) -> Object:
    spec = {"updateStrategy": strategy}
    return with_defaults("apps/v1", "StatefulSet", spec=spec)["spec"]["updateStrategy"]  # type: ignore[no-any-return]


def job(**spec: Any) -> Object:
    return with_defaults("batch/v1", "Job", spec=spec)["spec"]  # type: ignore[no-any-return]


def pod_spec(**spec: Any) -> Object:
    return with_defaults("v1", "Pod", spec=spec)["spec"]  # type: ignore[no-any-return]


def container(**fields: Any) -> Object:
    return pod_spec(containers=[fields], hostNetwork=True)["containers"][0]  # type: ignore[no-any-return]


def service(type_: str = "LoadBalancer", **spec: Any) -> Object:
    spec |= {"type": type_, "ports": [{"port": 80}]}
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    return with_defaults("v1", "Service", spec=spec, status=status)


def limit_range(**limit: Any) -> Object:
    spec = {"limits": [{"type": "Container", **limit}]}
    return with_defaults("v1", "LimitRange", spec=spec)["spec"]["limits"][0]  # type: ignore[no-any-return]


def device_request(kind: str = "exactly", **fields: Any) -> Object:
    asked = {"exactly": fields} if kind == "exactly" else {"firstAvailable": [{"name": "a", **fields}]}
    spec = {"devices": {"requests": [{"name": "a", **asked}]}}
    read = with_defaults("resource.k8s.io/v1", "ResourceClaim", spec=spec)
    request = read["spec"]["devices"]["requests"][0]
    return request["exactly"] if kind == "exactly" else request["firstAvailable"][0]  # type: ignore[no-any-return]


EXAMPLES: dict[str, Object] = {
    "apps/v1.DaemonSetUpdateStrategy": daemon_set(),
    "apps/v1.DeploymentStrategy": deployment(),
    "apps/v1.RollingUpdateDaemonSet": daemon_set(rollingUpdate={})["rollingUpdate"],
    "apps/v1.RollingUpdateDeployment": deployment(rollingUpdate={})["rollingUpdate"],
    "apps/v1.RollingUpdateStatefulSetStrategy": stateful_set(rollingUpdate={})["rollingUpdate"],
    "apps/v1.StatefulSetUpdateStrategy": stateful_set(),
    "batch/v1.JobSpec": job(),
    "core/v1.Container": container(image="example.com/main:1"),
    "core/v1.ContainerPort": container(ports=[{"containerPort": 3}])["ports"][0],
    "core/v1.EphemeralContainer": pod_spec(ephemeralContainers=[{"image": "a:1"}])["ephemeralContainers"][0],
    "core/v1.ImageVolumeSource": pod_spec(volumes=[{"name": "a", "image": {"reference": "a:1"}}])["volumes"][
        0
    ]["image"],
    "core/v1.LimitRangeItem": limit_range(max={"a": "1"}),
    "core/v1.LoadBalancerIngress": service()["status"]["loadBalancer"]["ingress"][0],
    "core/v1.NodeStatus": with_defaults("v1", "Node", status={"capacity": {"a": "1"}})["status"],
    "core/v1.ReplicationControllerSpec": with_defaults(
        "v1", "ReplicationController", spec={"template": {"metadata": {"labels": {"a": "c:1"}}}}
    )["spec"],
    "core/v1.ResourceRequirements": container(resources={"limits": {"a": "1"}})["resources"],
    "core/v1.ServicePort": service()["spec"]["ports"][0],
    "core/v1.ServiceSpec": service(sessionAffinity="ClientIP")["spec"],
    "core/v1.Volume": pod_spec(volumes=[{"name": "a"}])["volumes"][0],
    "networking/v1.NetworkPolicySpec": with_defaults("networking.k8s.io/v1", "NetworkPolicy", spec={})[
        "spec"
    ],
    "rbac/v1.Subject": with_defaults(
        "rbac.authorization.k8s.io/v1", "RoleBinding", subjects=[{"kind": "User", "name": "a"}]
    )["subjects"][0],
    "resource/v1.DeviceSubRequest": device_request("firstAvailable"),
    "resource/v1.ExactDeviceRequest": device_request(),
}
"""Values that meet the conditions, by their types."""
OTHERWISE = {"targetPort": 80}
"""Values that depend on the example."""


@pytest.mark.parametrize("name", sorted(conditional_defaults().keys() - ELSEWHERE.keys()))
def test_every_default_with_a_condition_is_set(name: str) -> None:
    wanted = conditional_defaults()[name]
    assert {field: EXAMPLES[name].get(field) for field in wanted} == wanted | {
        field: value for field, value in OTHERWISE.items() if field in wanted
    }


def test_an_explicit_rolling_update_of_a_stateful_set_gets_no_partition() -> None:
    assert stateful_set(type="RollingUpdate") == {"type": "RollingUpdate"}
    assert stateful_set(type="RollingUpdate", rollingUpdate={})["rollingUpdate"] == {"partition": 0}


@pytest.mark.parametrize("strategy", [deployment, daemon_set, stateful_set])
def test_parameters_of_another_strategy_stay_for_the_validation(strategy: Any) -> None:
    assert strategy(type="OnDelete", rollingUpdate={}) == {"type": "OnDelete", "rollingUpdate": {}}


def test_only_an_exact_count_of_devices_has_a_default() -> None:
    assert "count" not in device_request(allocationMode="All")


def test_a_pod_requests_what_its_containers_need_at_once() -> None:
    def asking(cpu: str, **fields: Any) -> Object:
        return {"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}, **fields}

    spec = pod_spec(
        resources={"limits": {"cpu": "4", "memory": "1Gi"}},
        initContainers=[asking("1500m"), asking("100m", restartPolicy="Always"), asking("1")],
        containers=[asking("200m"), asking("1")],
    )
    assert spec["resources"]["requests"] == {"cpu": "1500m", "memory": "1Gi"}
    alone = pod_spec(resources={"limits": {"cpu": "4"}}, containers=[asking("200m"), asking("1")])
    assert alone["resources"]["requests"] == {"cpu": "1200m"}


def test_a_pod_limits_the_huge_pages_of_its_containers() -> None:
    resources = {"limits": {"hugepages-2Mi": "4Mi"}}
    spec = pod_spec(
        resources={"limits": {"cpu": "1"}}, containers=[{"name": "a", "image": "a", "resources": resources}]
    )
    assert spec["resources"] == {
        "limits": {"cpu": "1", "hugepages-2Mi": "4Mi"},
        "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("localhost:5000/nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        (f"nginx@sha256:{'a' * 64}", "IfNotPresent"),
        ("not valid!", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_the_latest_image_is_pulled_always(image: str, policy: str) -> None:
    assert container(image=image)["imagePullPolicy"] == policy


def test_an_empty_list_is_null_where_go_writes_one() -> None:
    assert with_defaults("rbac.authorization.k8s.io/v1", "Role", rules=[])["rules"] is None
