"""Who reaches the operator's pods: Services, a NetworkPolicy, and a PodMonitor for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from ..operator import Operator
from .installation import METRICS_SUFFIX, WEBHOOK_SUFFIX, Installation, Object

METRICS_PORT = 8080

MAY_SCRAPE = {"metrics": "enabled"}
"""The label of namespaces whose pods may read /metrics and /debug, as kubebuilder's projects have it."""


def services(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the Service of /metrics and /debug, and that of the webhooks."""
    yield _service(installation, METRICS_SUFFIX, "metrics", METRICS_PORT)
    if operator.has_webhooks:
        yield _service(installation, WEBHOOK_SUFFIX, "webhooks", 443)


def network_policy(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the NetworkPolicy of the pods, for what they receive.

    Pods of namespaces with the label MAY_SCRAPE read metrics. The API server calls webhooks from outside the network of
    pods, at addresses that no selector knows. What the operator sends is not limited. The kubelet's probes always pass.
    """
    if not installation.network_policy:
        return
    metrics = {"from": [{"namespaceSelector": {"matchLabels": MAY_SCRAPE}}], "ports": [_port("metrics")]}
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": installation.metadata(),
        "spec": {
            "podSelector": {"matchLabels": installation.labels},
            "policyTypes": ["Ingress"],
            "ingress": [metrics, *([{"ports": [_port("webhooks")]}] if operator.has_webhooks else [])],
        },
    }


def pod_monitor(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the PodMonitor, by which the Prometheus Operator lets Prometheus read /metrics of each pod."""
    if installation.pod_monitor:
        yield {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": installation.metadata(),
            "spec": {
                "selector": {"matchLabels": installation.labels},
                "podMetricsEndpoints": [{"port": "metrics"}],
            },
        }


def _port(name: str) -> Object:
    return {"protocol": "TCP", "port": name}


def _service(installation: Installation, suffix: str, name: str, port: int) -> Object:
    """Return a Service of the container's port of this name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": installation.metadata(suffix),
        "spec": {
            "selector": installation.labels,
            "ports": [{"name": name, "port": port, "targetPort": name}],
        },
    }
