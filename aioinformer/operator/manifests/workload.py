"""The Deployment that runs an operator, and its disruption budget."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ...errors import ConfigError
from ..operator import Operator
from ..runs import CANCEL_GRACE
from .installation import AUTHORITY_SUFFIX, WEBHOOK_SUFFIX, Installation, Object
from .network import METRICS_PORT
from .settings import environment, volumes

PROBE_PORT = 8081
"""Its own, so that a NetworkPolicy can limit who reads /metrics and /debug."""

WEBHOOK_PORT = 9443
CERTIFICATES = "/certs"
"""Where the Secret of the webhooks' certificate is mounted."""
AUTHORITY = "/certs-ca"
"""Where the ConfigMap of its authority is mounted."""

USER = 65532
"""The user of distroless images. A number, because the kubelet cannot tell whether a user's name is root's."""

GRACE_PERIOD = 20
"""Seconds for running reconciles to end."""

SINGLE: Object = {"type": "Recreate"}
"""The strategy of a single pod, which ends before the next one works."""
SEVERAL: Object = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
"""The strategy of pods of which several may run. It names the numbers, because defaults would remain when it becomes
SINGLE."""

_SLACK = 5
"""Seconds for the last Events, and to release the Lease."""

_MOVE = 10
"""Seconds more to give back the slots."""


def deployment(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the Deployment. It satisfies the Pod Security Standard "restricted".

    Raises:
        ConfigError: The operator lacks a setting of the installation, a value is invalid, or two volumes have one path.
    """
    container = _container(operator, installation)
    if variables := environment(operator, installation):
        container["env"] = variables
    mounted, mounts = volumes(installation.mounts)
    container["volumeMounts"] += mounts
    pod_volumes: list[Object] = [{"name": "tmp", "emptyDir": {}}, *mounted]
    if operator.has_webhooks:
        pod_volumes += _add_webhooks(container, operator, installation)
    _require_distinct_paths(mount["mountPath"] for mount in container["volumeMounts"])
    pod: Object = {
        "serviceAccountName": installation.name,
        "enableServiceLinks": False,  # their variables would look like settings: NAME_METRICS_PORT
        "terminationGracePeriodSeconds": GRACE_PERIOD
        + int(CANCEL_GRACE)
        + (_MOVE if installation.shards else 0)
        + _SLACK,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": pod_volumes,
    }
    if installation.has_several:
        pod["topologySpreadConstraints"] = _spread(installation)
    spec: Object = {
        "replicas": installation.replicas,
        "strategy": SEVERAL if installation.replaces_gradually else SINGLE,
        "selector": {"matchLabels": installation.labels},
        "template": {"metadata": {"labels": installation.labels}, "spec": pod},
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": installation.metadata(),
        "spec": spec,
    }


def _require_distinct_paths(paths: Iterable[str]) -> None:
    seen: set[str] = set()
    for path in map(os.path.normpath, paths):
        if path in seen:
            raise ConfigError(
                f"two volumes would be mounted at {path}: give each --mount another folder, and none that the "
                f"Deployment uses itself: /tmp, and with webhooks {CERTIFICATES} and {AUTHORITY}"
            )
        seen.add(path)


def _add_webhooks(container: Object, operator: Operator, installation: Installation) -> list[Object]:
    """Add to the container what serves and registers the webhooks. Return its volumes, for which the pod waits."""
    container["args"] += [
        f"--webhook-port={WEBHOOK_PORT}",
        f"--tls-cert={CERTIFICATES}/tls.crt",
        f"--tls-key={CERTIFICATES}/tls.key",
    ]
    container["ports"].append({"name": "webhooks", "containerPort": WEBHOOK_PORT})
    container["volumeMounts"].append({"name": "webhook", "mountPath": CERTIFICATES, "readOnly": True})
    container["readinessProbe"]["periodSeconds"] = 2  # webhooks are called in ready pods only
    secret = {"name": "webhook", "secret": {"secretName": f"{installation.name}{WEBHOOK_SUFFIX}"}}
    if installation.static_webhooks or not operator.admission_kinds:
        return [secret]
    has_own_authority = installation.ca_bundle is not None
    container["args"] += [
        f"--webhook-service={installation.home}/{installation.name}{WEBHOOK_SUFFIX}",
        f"--webhook-ca={AUTHORITY if has_own_authority else CERTIFICATES}/ca.crt",
    ]
    if installation.name != operator.name:
        container["args"].append(f"--webhook-configuration={installation.name}")
    if not has_own_authority:
        return [secret]
    container["volumeMounts"].append({"name": "webhook-ca", "mountPath": AUTHORITY, "readOnly": True})
    authority = {"name": "webhook-ca", "configMap": {"name": f"{installation.name}{AUTHORITY_SUFFIX}"}}
    return [secret, authority]


def disruption_budget(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the PodDisruptionBudget: of several pods, a drain of nodes evicts one at a time."""
    if installation.has_several:
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": installation.metadata(),
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchLabels": installation.labels},
                "unhealthyPodEvictionPolicy": "AlwaysAllow",  # pods that fail must not block a drain
            },
        }


def _spread(installation: Installation) -> list[Object]:
    """Return the constraints that put several pods on different nodes and into different zones."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": installation.labels},
            "matchLabelKeys": ["pod-template-hash"],  # pods of another release do not count
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]


def _container(operator: Operator, installation: Installation) -> Object:
    arguments = ["run", installation.target]
    arguments += [f"--namespace={name}" for name in installation.namespaces]
    if installation.elects:
        arguments.append("--leader-elect")
    if installation.shards:
        arguments.append(f"--shards={installation.shards}")
    if (installation.elects or installation.shards) and installation.name != operator.name:
        arguments.append(f"--lease-name={installation.name}")
    arguments += [f"--metrics-port={METRICS_PORT}", f"--probe-port={PROBE_PORT}"]
    if installation.metrics_auth:
        arguments.append("--metrics-auth")
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
