"""What other objects and versions make of an object: LimitRanges, autoscaling/v1, the resizing of pods."""

from __future__ import annotations

from aioinformer.testing import APIServer

from .client import APIClient

PODS = "/api/v1/namespaces/default/pods"
AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


async def test_a_limit_range_completes_containers(api: APIClient, server: APIServer) -> None:
    limits = {
        "type": "Container",
        "default": {"cpu": "1"},
        "defaultRequest": {"cpu": "100m", "memory": "1Mi"},
    }
    server.create("v1", "limitranges", {"metadata": {"name": "limits"}, "spec": {"limits": [limits]}})
    container = {"name": "main", "image": "a", "resources": {"requests": {"memory": "2Mi"}}}
    answer = await api.post(PODS, {"metadata": {"name": "web"}, "spec": {"containers": [container]}})
    assert answer.body["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "2Mi"},
        "limits": {"cpu": "1"},
    }
    assert answer.body["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container main; cpu limit for "
        "container main"
    }
    assert answer.body["status"]["qosClass"] == "Burstable"


async def test_an_autoscaler_is_the_same_in_both_versions(api: APIClient) -> None:
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    spec = {
        "scaleTargetRef": target,
        "minReplicas": 1,
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 50,
    }
    made = await api.post(AUTOSCALERS.format("v1"), {"metadata": {"name": "web"}, "spec": spec})
    assert (made.status, made.body["spec"]) == (201, spec)
    path = AUTOSCALERS.format("v2") + "/web"
    second = (await api.get(path)).body
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    assert second["spec"]["metrics"] == [{"type": "Resource", "resource": cpu}]
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}
    second["spec"]["metrics"].append({"type": "Resource", "resource": memory})
    assert (await api.put(path, second)).status == 200
    first = (await api.get(AUTOSCALERS.format("v1") + "/web")).body
    assert first["spec"] == spec
    assert "memory" in first["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]
    assert (await api.put(AUTOSCALERS.format("v1") + "/web", first)).status == 200
    assert len((await api.get(path)).body["spec"]["metrics"]) == 2


async def test_a_resize_changes_resources_alone(api: APIClient) -> None:
    container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    await api.post(PODS, {"metadata": {"name": "web"}, "spec": {"containers": [container]}})
    resized = {**container, "image": "b", "resources": {"requests": {"cpu": "2"}}}
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [resized]}}
    answer = await api.patch(f"{PODS}/web/resize", patch, "application/strategic-merge-patch+json")
    (only,) = answer.body["spec"]["containers"]
    assert (only["image"], only["resources"]) == ("a", {"requests": {"cpu": "2"}})
    assert "labels" not in answer.body["metadata"]
    guaranteed = {
        **container,
        "resources": {"limits": {"cpu": "2", "memory": "1"}, "requests": {"memory": "1"}},
    }
    patch = {"spec": {"containers": [guaranteed]}}
    refused = await api.patch(f"{PODS}/web/resize", patch, "application/strategic-merge-patch+json")
    assert "Pod QOS Class may not change as a result of resizing" in refused.body["message"]
