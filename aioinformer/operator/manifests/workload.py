"""The Deployment that runs an operator, and Services of its ports."""

from __future__ import annotations

from ..runs import CANCEL_GRACE
from .installation import WEBHOOK_SUFFIX, Installation, Object

METRICS_PORT = 8080
PROBE_PORT = 8081
"""Its own, so that a NetworkPolicy can limit who reads /metrics and /debug."""

WEBHOOK_PORT = 9443
CERTIFICATES = "/certs"
"""Where the Secret of the webhooks' certificate is mounted."""

USER = 65532
"""The user of distroless images. A number, because the kubelet cannot tell whether a user's name is root's."""

GRACE_PERIOD = 20
"""Seconds for running reconciles to end."""

_SLACK = 5
"""Seconds for the last Events, and to release the Lease."""


def deployment(installation: Installation, *, serves_webhooks: bool) -> Object:
    """Return the Deployment. It satisfies the Pod Security Standard "restricted"."""
    container = _container(installation)
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    if serves_webhooks:
        container["args"] += [
            f"--webhook-port={WEBHOOK_PORT}",
            f"--tls-cert={CERTIFICATES}/tls.crt",
            f"--tls-key={CERTIFICATES}/tls.key",
        ]
        container["ports"].append({"name": "webhooks", "containerPort": WEBHOOK_PORT})
        container["volumeMounts"].append({"name": "webhook", "mountPath": CERTIFICATES, "readOnly": True})
        container["readinessProbe"]["periodSeconds"] = 2  # webhooks are called in ready pods only
        # The pod waits for the Secret.
        volumes.append({"name": "webhook", "secret": {"secretName": f"{installation.name}{WEBHOOK_SUFFIX}"}})
    pod = {
        "serviceAccountName": installation.name,
        "enableServiceLinks": False,  # their variables would look like settings: NAME_METRICS_PORT
        "terminationGracePeriodSeconds": GRACE_PERIOD + int(CANCEL_GRACE) + _SLACK,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    spec: Object = {
        "replicas": installation.replicas,
        "selector": {"matchLabels": installation.labels},
        "template": {"metadata": {"labels": installation.labels}, "spec": pod},
    }
    if not installation.elects:  # the old pod ends before the new one works
        spec["strategy"] = {"type": "Recreate"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": installation.metadata(),
        "spec": spec,
    }


def service(installation: Installation, suffix: str, name: str, port: int) -> Object:
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


def _container(installation: Installation) -> Object:
    arguments = ["run", installation.target]
    if installation.watched is not None:
        arguments.append(f"--namespace={installation.watched}")
    if installation.elects:
        arguments.append("--leader-elect")
    arguments += [f"--metrics-port={METRICS_PORT}", f"--probe-port={PROBE_PORT}"]
    return {
        "name": "operator",
        "image": installation.image,
        "args": [*arguments, f"--grace-period={GRACE_PERIOD}", "--log-format=json"],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "probes", "containerPort": PROBE_PORT},
        ],
        "livenessProbe": {**_probe("/healthz"), "failureThreshold": 6},
        "readinessProbe": _probe("/readyz"),
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},  # a CPU limit would only slow the first lists down
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # for tempfile
    }


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "probes"}, "periodSeconds": 10, "timeoutSeconds": 5}
