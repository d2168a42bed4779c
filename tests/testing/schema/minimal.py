"""Objects with few fields of most kinds that have defaults: by plural."""

from __future__ import annotations

from typing import Any

_META = {"name": "minimal"}
_LABELS = {"app": "minimal"}
_CONTAINER = {
    "name": "a",
    "image": "a",
    "ports": [{"containerPort": 80}],
    "livenessProbe": {"httpGet": {"port": 80}},
    "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
}
_POD = {
    "serviceAccountName": "default",
    "containers": [_CONTAINER],
    "volumes": [
        {"name": "a", "secret": {"secretName": "a"}},
        {"name": "b", "configMap": {"name": "a"}},
        {"name": "c", "hostPath": {"path": "/a"}},
        {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "a"}}]}},
        {"name": "e", "downwardAPI": {}},
        {"name": "f", "iscsi": {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
    ],
}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD}
_SELECTED = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
_JOB_POD = {"template": {"spec": _POD | {"restartPolicy": "Never"}}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_STORED = {"metadata": _META, "spec": _CLAIM}
_WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "a", "name": "a"}},
    "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
_BEHAVIOR: dict[str, Any] = {"scaleUp": {}, "scaleDown": {}}
_RBAC = "rbac.authorization.k8s.io"
_WEBHOOKS = "admissionregistration.k8s.io/v1"


def _of(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": _META, **fields}


_BACKEND = {"service": {"name": "a", "port": {"number": 80}}}
_ROLE = {"kind": "Role", "name": "a"}
_CLUSTER_ROLE = {"kind": "ClusterRole", "name": "a"}
_DEFINITION = {
    "group": "minimal.example.com",
    "scope": "Namespaced",
    "names": {"plural": "caves", "kind": "Cave"},
    "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    ],
}

MINIMAL: dict[str, dict[str, Any]] = {
    "pods": _of("v1", "Pod", spec=_POD),
    "services": _of("v1", "Service", spec={"ports": [{"port": 80}]}),
    "secrets": _of("v1", "Secret"),
    "endpoints": _of(
        "v1", "Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]
    ),
    "persistentvolumeclaims": _of("v1", "PersistentVolumeClaim", spec=_CLAIM),
    "persistentvolumes": _of(
        "v1",
        "PersistentVolume",
        spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}},
    ),
    "namespaces": _of("v1", "Namespace"),
    "nodes": _of("v1", "Node"),
    "replicationcontrollers": _of("v1", "ReplicationController", spec={"template": _TEMPLATE}),
    "deployments": _of("apps/v1", "Deployment", spec=_SELECTED),
    "statefulsets": _of(
        "apps/v1", "StatefulSet", spec=_SELECTED | {"serviceName": "a", "volumeClaimTemplates": [_STORED]}
    ),
    "daemonsets": _of("apps/v1", "DaemonSet", spec=_SELECTED),
    "replicasets": _of("apps/v1", "ReplicaSet", spec=_SELECTED),
    "jobs": _of("batch/v1", "Job", spec=_JOB_POD),
    "cronjobs": _of("batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": {"spec": _JOB_POD}}),
    "horizontalpodautoscalers": _of(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        spec={"scaleTargetRef": _TARGET, "maxReplicas": 3, "behavior": _BEHAVIOR},
    ),
    "ingresses": _of("networking.k8s.io/v1", "Ingress", spec={"defaultBackend": _BACKEND}),
    "ingressclasses": _of(
        "networking.k8s.io/v1",
        "IngressClass",
        spec={"controller": "a.com/a", "parameters": {"kind": "A", "name": "a"}},
    ),
    "networkpolicies": _of(
        "networking.k8s.io/v1", "NetworkPolicy", spec={"ingress": [{"ports": [{"port": 80}]}]}
    ),
    "poddisruptionbudgets": _of("policy/v1", "PodDisruptionBudget", spec={"selector": {}}),
    "roles": _of(f"{_RBAC}/v1", "Role"),
    "clusterroles": _of(f"{_RBAC}/v1", "ClusterRole"),
    "rolebindings": _of(
        f"{_RBAC}/v1", "RoleBinding", roleRef=_ROLE, subjects=[{"kind": "User", "name": "a"}]
    ),
    "clusterrolebindings": _of(f"{_RBAC}/v1", "ClusterRoleBinding", roleRef=_CLUSTER_ROLE),
    "mutatingwebhookconfigurations": _of(_WEBHOOKS, "MutatingWebhookConfiguration", webhooks=[_WEBHOOK]),
    "validatingwebhookconfigurations": _of(_WEBHOOKS, "ValidatingWebhookConfiguration", webhooks=[_WEBHOOK]),
    "flowschemas": _of(
        "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", spec={"priorityLevelConfiguration": {"name": "a"}}
    ),
    "prioritylevelconfigurations": _of(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        spec={"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}},
    ),
    "priorityclasses": _of("scheduling.k8s.io/v1", "PriorityClass", value=1),
    "storageclasses": _of("storage.k8s.io/v1", "StorageClass", provisioner="a.com/a"),
    "csidrivers": _of("storage.k8s.io/v1", "CSIDriver"),
    "endpointslices": _of(
        "discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[], ports=[{"port": 80}]
    ),
    "customresourcedefinitions": _of("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=_DEFINITION)
    | {"metadata": {"name": "caves.minimal.example.com"}},
    "apiservices": _of(
        "apiregistration.k8s.io/v1",
        "APIService",
        spec={
            "group": "a.com",
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "a", "name": "a"},
        },
    )
    | {"metadata": {"name": "v1.a.com"}},
}
