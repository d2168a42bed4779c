"""monitoring.py: what lets Prometheus read the metrics."""

from __future__ import annotations

import pytest

from aioinformer import ConfigError
from aioinformer.operator.manifests import manifests

from .test_manifests import Object, Site, declare, installation


def find(objects: list[Object], kind: str, name: str) -> Object:
    (match,) = (obj for obj in objects if obj["kind"] == kind and obj["metadata"]["name"] == name)
    return match


def test_metrics_that_ask_for_a_token_come_with_the_rights() -> None:
    made = manifests(declare(Site), installation(metrics_auth=True, service_monitor=True))
    assert find(made, "ClusterRole", "sites-metrics-auth")["rules"] == [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    (subject,) = find(made, "ClusterRoleBinding", "sites-metrics-auth")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "sites", "namespace": "sites"}
    assert find(made, "ClusterRole", "sites-metrics-reader")["rules"] == [
        {"nonResourceURLs": ["/metrics", "/debug.json"], "verbs": ["get"]}
    ]
    (container,) = find(made, "Deployment", "sites")["spec"]["template"]["spec"]["containers"]
    assert "--metrics-auth" in container["args"]
    (endpoint,) = find(made, "ServiceMonitor", "sites")["spec"]["endpoints"]
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"


def test_a_pod_monitor_cannot_send_a_token() -> None:
    with pytest.raises(ConfigError, match=r"a PodMonitor cannot send the token.*--service-monitor"):
        installation(metrics_auth=True, pod_monitor=True)


def test_a_service_monitor_selects_the_port_of_the_metrics() -> None:
    made = manifests(declare(Site), installation(service_monitor=True))
    spec = find(made, "ServiceMonitor", "sites")["spec"]
    assert spec["endpoints"] == [{"port": "metrics", "path": "/metrics"}]
    service = find(made, "Service", "sites-metrics")
    assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [port["name"] for port in service["spec"]["ports"]] == ["metrics"]


def test_without_the_options_there_are_no_further_rights() -> None:
    names = {obj["metadata"]["name"] for obj in manifests(declare(Site), installation())}
    assert names.isdisjoint({"sites-metrics-auth", "sites-metrics-reader"})
