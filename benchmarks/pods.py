"""Pods as real clusters have them: 6.6 KB of JSON, a third of it managedFields."""

from __future__ import annotations

from typing import Any


def pod(number: int, resource_version: int, node: str = "") -> dict[str, Any]:
    """One pod, as a real API server writes a watch event's object."""
    name = f"web-{number:06d}"
    labels = {"app": "web", "tier": f"tier-{number % 7}", "pod-template-hash": f"{number % 97:010x}"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": "web-",
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(resource_version),
            "generation": 1,
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "labels": labels,
            "annotations": {f"example.com/annotation-{n}": f"{number}-{n}" for n in range(3)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": f"11111111-0000-4000-8000-{number % 97:012d}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                _managed("kube-controller-manager", "", _CONTROLLERS_FIELDS),
                _managed("kubelet", "status", _KUBELETS_FIELDS),
            ],
        },
        "spec": {
            "volumes": [{"name": f"volume-{n}", "configMap": {"name": f"settings-{n}"}} for n in range(4)],
            "containers": [_container(n) for n in range(3)],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "nodeName": node or f"node-{number % 50}",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{k}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for k in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-11-01T08:00:05Z",
                }
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.1.0.7",
            "podIP": f"10.2.{number // 250 % 250}.{number % 250}",
            "startTime": "2026-11-01T08:00:00Z",
            "containerStatuses": [
                {
                    "name": f"container-{n}",
                    "state": {"running": {"startedAt": "2026-11-01T08:00:03Z"}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": f"registry.example.com/web/container-{n}:1.2.3",
                    "imageID": f"registry.example.com/web/container-{n}@sha256:{'a' * 64}",
                    "containerID": f"containerd://{'b' * 64}",
                    "started": True,
                }
                for n in range(3)
            ],
            "qosClass": "Burstable",
        },
    }


def _container(n: int) -> dict[str, Any]:
    return {
        "name": f"container-{n}",
        "image": f"registry.example.com/web/container-{n}:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080 + n, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{e}", "value": f"value-{e}"} for e in range(5)],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": f"volume-{n}", "readOnly": True, "mountPath": f"/etc/settings-{n}"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _managed(manager: str, subresource: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-01T08:00:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "subresource": subresource,
    }


def _each(*names: str) -> dict[str, Any]:
    return {".": {}} | {f"f:{name}": {} for name in names}


_CONTROLLERS_FIELDS = {
    "f:metadata": {
        "f:generateName": {},
        "f:labels": _each("app", "tier", "pod-template-hash"),
        "f:ownerReferences": {".": {}, 'k:{"uid":"11111111-0000-4000-8000-000000000000"}': {}},
    },
    "f:spec": {
        "f:containers": {
            f'k:{{"name":"container-{n}"}}': _each(
                "image", "imagePullPolicy", "name", "terminationMessagePath"
            )
            | {
                "f:ports": {
                    ".": {},
                    'k:{"containerPort":8080,"protocol":"TCP"}': _each("containerPort", "protocol"),
                }
            }
            for n in range(3)
        },
        "f:dnsPolicy": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
    },
}

_KUBELETS_FIELDS = {
    "f:status": {
        "f:conditions": {
            f'k:{{"type":"{kind}"}}': _each("lastProbeTime", "lastTransitionTime", "status", "type")
            for kind in ("ContainersReady", "Initialized", "Ready")
        },
        "f:containerStatuses": {},
        "f:hostIP": {},
        "f:phase": {},
        "f:podIP": {},
        "f:startTime": {},
    },
}
