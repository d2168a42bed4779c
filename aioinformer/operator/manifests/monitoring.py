"""What lets Prometheus read the metrics: a ServiceMonitor of the Prometheus operator, and the rights for a token."""

from __future__ import annotations

from collections.abc import Iterator

from ..operator import Operator
from .installation import Installation, Object

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""Where a pod of Prometheus finds its own token."""

READER_SUFFIX = "-metrics-reader"
"""Of the name of the ClusterRole that permits to read the metrics."""


def service_monitor(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the ServiceMonitor. With ``metrics_auth``, Prometheus sends the token of its own account."""
    if not installation.service_monitor:
        return
    endpoint: Object = {"port": "metrics", "path": "/metrics"}
    if installation.metrics_auth:
        endpoint["bearerTokenFile"] = TOKEN
    yield {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": installation.metadata(),
        "spec": {"endpoints": [endpoint], "selector": {"matchLabels": installation.labels}},
    }


def reader_role(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the ClusterRole that permits to read metrics and debug data, to bind to the account of Prometheus."""
    if not installation.metrics_auth:
        return
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": installation.metadata(READER_SUFFIX, ""),
        "rules": [{"nonResourceURLs": ["/metrics", "/debug.json"], "verbs": ["get"]}],
    }
