"""Objects of every built-in kind, in the states that `kubectl get` shows differently."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from .api import Object

OLD = "2020-01-01T00:00:00Z"
LATER = "2020-01-01T00:05:07Z"
CONTAINERS = [{"name": "main", "image": "example.com/main:1"}, {"name": "side", "image": "example.com/side"}]
TEMPLATE = {
    "metadata": {"labels": {"app": "web", "tier": "front"}},
    "spec": {"containers": CONTAINERS, "nodeSelector": {"disk": "fast"}},
}
SELECTOR = {
    "matchLabels": {"tier": "front", "app": "web"},
    "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["web", "other"]},
        {"key": "zone", "operator": "DoesNotExist"},
        {"key": "tier", "operator": "Exists"},
    ],
}
JOB_TEMPLATE = {"spec": {"containers": CONTAINERS[:1], "restartPolicy": "Never"}}


def ended_state(code: int, **more: Any) -> Object:
    return {"terminated": {"exitCode": code, "startedAt": OLD, "finishedAt": LATER, **more}}


def container(name: str = "main", state: Object | None = None, restarts: int = 0, **more: Any) -> Object:
    status = {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": restarts}
    return {**status, "state": state or {}, **more}


def pod_with_status(*containers: Object, init: tuple[Object, ...] = (), **status: Any) -> Object:
    spec: Object = {"containers": CONTAINERS}
    if init:
        always = {"sidecar"}
        spec["initContainers"] = [
            {"name": fields["name"], "image": "i"}
            | ({"restartPolicy": "Always"} if fields["name"] in always else {})
            for fields in init
        ]
        status["initContainerStatuses"] = list(init)
    return {"spec": spec, "status": {"phase": "Running", "containerStatuses": list(containers), **status}}


RUNS: Object = {"running": {"startedAt": OLD}}
READY = container("side", RUNS, ready=True)
COMPLETED = container(state=ended_state(0, reason="Completed"))


def true(*kinds: str, **more: str) -> list[Object]:
    return [{"type": kind, "status": "True", "lastTransitionTime": OLD, **more} for kind in kinds]


PODS: tuple[Object, ...] = (
    {"spec": {"containers": CONTAINERS}},
    pod_with_status(
        READY, container(state=RUNS, restarts=3, lastState=ended_state(1)), conditions=true("Ready")
    ),
    pod_with_status(
        READY,
        container(
            state={"waiting": {"reason": "CrashLoopBackOff"}},
            restarts=7,
            lastState=ended_state(1, reason="Error"),
        ),
    ),
    pod_with_status(container(state={"waiting": {"reason": "ImagePullBackOff"}}), phase="Pending"),
    pod_with_status(COMPLETED, phase="Succeeded"),
    pod_with_status(COMPLETED, READY),
    pod_with_status(COMPLETED, READY, conditions=true("Ready")),
    pod_with_status(COMPLETED, container("side", ended_state(3))),
    pod_with_status(container(state=ended_state(137, signal=9)), phase="Failed"),
    pod_with_status(container(state=ended_state(2)), phase="Failed"),
    pod_with_status(phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
    pod_with_status(
        phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    ),
    pod_with_status(phase="Pending", nominatedNodeName="node-2"),
    pod_with_status(init=(container("a", ended_state(0)), container("b", RUNS)), phase="Pending"),
    pod_with_status(init=(container("a", {"waiting": {"reason": "PodInitializing"}}),), phase="Pending"),
    pod_with_status(init=(container("a", {"waiting": {"reason": "ErrImagePull"}}, 2),), phase="Pending"),
    pod_with_status(
        init=(container("a", ended_state(1, reason="Error"), 2, lastState=ended_state(1)),), phase="Pending"
    ),
    pod_with_status(init=(container("a", ended_state(4)),), phase="Pending"),
    pod_with_status(init=(container("a", ended_state(4, signal=9)),), phase="Pending"),
    pod_with_status(
        READY,
        init=(container("sidecar", RUNS, 2, started=True, ready=True), container("b", ended_state(0), 5)),
    ),
    pod_with_status(container(state=RUNS), init=(container("a", RUNS),), conditions=true("Initialized")),
    {
        **pod_with_status(READY, podIPs=[{"ip": "10.1.1.1"}], podIP="10.1.1.1"),
        "spec": {
            "containers": CONTAINERS,
            "nodeName": "node-1",
            "readinessGates": [{"conditionType": "example.com/a"}, {"conditionType": "example.com/b"}],
        },
    },
)


def service(kind: str, **spec: Any) -> Object:
    return {"spec": {"type": kind, **spec}}


HTTP = [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
BALANCED = {
    "loadBalancer": {"ingress": [{"ip": "10.9.9.9"}, {"hostname": "a-long-name.balancers.example.com"}]}
}
SERVICES: tuple[Object, ...] = (
    service("ClusterIP", ports=HTTP, selector={"app": "web", "a": "b"}),
    service("ClusterIP", ports=HTTP, externalIPs=["192.0.2.7", "192.0.2.8"]),
    service("ClusterIP", clusterIP="None", selector={"app": "web"}),
    service("NodePort", ports=HTTP),
    service("LoadBalancer", ports=HTTP),
    {**service("LoadBalancer", ports=HTTP), "status": BALANCED},
    {**service("LoadBalancer", ports=HTTP, externalIPs=["192.0.2.7"]), "status": BALANCED},
    service("ExternalName", externalName="example.com"),
)

READY_NODE = [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "False"}]
NODE_INFO = {
    "kubeletVersion": "v1.36.3",
    "osImage": "Some Linux",
    "kernelVersion": "6.1",
    "architecture": "arm64",
    "containerRuntimeVersion": "containerd://2.0",
}
NODES: tuple[Object, ...] = (
    {},
    {
        "metadata": {
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/control-plane": "",
                "kubernetes.io/role": "x",
            }
        },
        "status": {
            "conditions": READY_NODE,
            "nodeInfo": NODE_INFO,
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.3"},
                {"type": "ExternalIP", "address": "192.0.2.3"},
            ],
        },
    },
    {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
)


def job(spec: Object | None = None, **status: Any) -> Object:
    return {"spec": {"template": JOB_TEMPLATE, **(spec or {})}, "status": status}


JOBS: tuple[Object, ...] = (
    job(),
    job({"parallelism": 3, "completions": 5}, startTime=OLD, active=3, succeeded=2),
    job({"parallelism": 3}, startTime=OLD, active=3),
    job({"suspend": True}, conditions=true("Suspended")),
    job(
        startTime=OLD,
        completionTime=LATER,
        succeeded=1,
        conditions=true("SuccessCriteriaMet", "Complete"),
    ),
    job(startTime=OLD, failed=1, conditions=true("FailureTarget", "Failed")),
    job(startTime=OLD, conditions=true("FailureTarget")),
    job(startTime=OLD, conditions=true("SuccessCriteriaMet")),
)
CRON = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}


def metric(kind: str, target: Object, **source: Any) -> Object:
    return {"type": kind, kind[0].lower() + kind[1:]: {**source, "target": target}}


CPU_80 = metric("Resource", {"type": "Utilization", "averageUtilization": 80}, name="cpu")
MEMORY = metric("Resource", {"type": "AverageValue", "averageValue": "1Gi"}, name="memory")
OF_CONTAINER = metric(
    "ContainerResource", {"type": "Utilization", "averageUtilization": 5}, name="cpu", container="main"
)
QUEUE = metric("External", {"type": "Value", "value": "30"}, metric={"name": "queue"})
QUEUE_EACH = metric("External", {"type": "AverageValue", "averageValue": "30"}, metric={"name": "queue"})
PACKETS = metric("Pods", {"type": "AverageValue", "averageValue": "1k"}, metric={"name": "packets"})
HITS = metric(
    "Object",
    {"type": "Value", "value": "10k"},
    metric={"name": "hits"},
    describedObject={"kind": "Ingress", "name": "main", "apiVersion": "networking.k8s.io/v1"},
)


def scaler(*metrics: Object, current: tuple[Object, ...] = (), **spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": list(current)}
    return {
        "spec": {"scaleTargetRef": target, "maxReplicas": 9, "metrics": list(metrics), **spec},
        "status": status,
    }


SCALERS: tuple[Object, ...] = (
    scaler(),
    scaler(
        CPU_80,
        current=(
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 42, "averageValue": "1"}},
            },
        ),
        minReplicas=3,
    ),
    scaler(MEMORY, QUEUE_EACH),
    scaler(QUEUE, PACKETS, HITS),
    scaler(OF_CONTAINER, HITS),
    scaler(
        QUEUE,
        current=({"type": "External", "external": {"metric": {"name": "queue"}, "current": {"value": "7"}}},),
    ),
)


def rules(*hosts: str) -> list[Object]:
    return [{"host": host} if host else {"http": {"paths": [PATH]}} for host in hosts]


PATH = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}
INGRESSES: tuple[Object, ...] = (
    {"spec": {"rules": rules("")}},
    {
        "spec": {"ingressClassName": "some", "rules": rules("a.example", "b.example"), "tls": [{}]},
        "status": BALANCED,
    },
    {"spec": {"rules": rules("a.example", "b.example", "", "c.example", "d.example")}},
)

ABOUT = {"kind": "Pod", "namespace": "NS", "name": "web", "fieldPath": "spec.containers{main}"}
EVENTS: tuple[Object, ...] = (
    {
        "involvedObject": ABOUT,
        "reason": "Pulled",
        "type": "Normal",
        "message": " Pulled the image\n",
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": OLD,
        "lastTimestamp": LATER,
        "count": 4,
    },
    {
        "involvedObject": {"kind": "Pod", "namespace": "NS"},
        "reason": "Odd",
        "type": "Warning",
        "message": "m",
    },
    {
        "involvedObject": ABOUT,
        "reason": "Many",
        "type": "Warning",
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "series": {"count": 5, "lastObservedTime": "2021-01-01T00:00:00.000000Z"},
        "reportingComponent": "example.com/controller",
        "reportingInstance": "controller-1",
        "action": "Watch",
    },
)
NEW_EVENT = {
    "regarding": ABOUT,
    "reason": "Seen",
    "type": "Normal",
    "note": "a note",
    "eventTime": "2020-01-01T00:00:00.000000Z",
    "reportingController": "example.com/controller",
    "reportingInstance": "controller-1",
    "action": "Watch",
}

SOME_CLAIM: Object = {
    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
    "resources": {"requests": {"storage": "1Gi"}},
}
CLAIMS: tuple[Object, ...] = (
    {"spec": SOME_CLAIM},
    {
        "spec": {**SOME_CLAIM, "volumeName": "v", "storageClassName": "fast", "volumeMode": "Block"},
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
    },
    {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec": SOME_CLAIM},
)
VOLUME: Object = {
    "capacity": {"storage": "5Gi"},
    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
    "hostPath": {"path": "/data"},
}
VOLUMES: tuple[Object, ...] = (
    {"spec": VOLUME},
    {
        "spec": {
            **VOLUME,
            "claimRef": {"namespace": "other", "name": "data"},
            "storageClassName": "fast",
            "persistentVolumeReclaimPolicy": "Delete",
        },
        "status": {"phase": "Failed", "reason": "Broken"},
    },
)


def signing_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "someone")])
    built = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, SHA256())
    return base64.b64encode(built.public_bytes(Encoding.PEM)).decode()


def binding(*subjects: Object, kind: str = "Role") -> Object:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "reader"}
    return {"roleRef": role, "subjects": list(subjects)}


RBAC = "rbac.authorization.k8s.io"
SUBJECTS: tuple[Object, ...] = (
    {"kind": "User", "name": "ann", "apiGroup": RBAC},
    {"kind": "User", "name": "bob", "apiGroup": RBAC},
    {"kind": "Group", "name": "devs", "apiGroup": RBAC},
    {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
)
ADMISSION = "admissionregistration.k8s.io"
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://example.com/a"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
ON_CAVES = {
    "resourceRules": [
        {
            "apiGroups": ["example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["caves"],
        }
    ]
}
OF_PARAMETERS = {"policyName": "p", "validationActions": ["Audit"]}
PARAMETERS = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
BY_LABEL = {
    "selector": {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}],
    },
    "parameterNotFoundAction": "Deny",
}
SET = {"selector": {"matchLabels": TEMPLATE["metadata"]["labels"]}, "template": TEMPLATE}  # type: ignore[index]
REPLICAS = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 1}
SLICE: Object = {"addressType": "IPv4"}
LEVEL = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}
QUEUED = {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 9}}
DEVICES = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu.example.com"}}]}}

OBJECTS: dict[str, tuple[Object, ...]] = {
    "v1/configmaps": ({}, {"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}}),
    "v1/endpoints": (
        {},
        {"subsets": [{"addresses": [{"ip": f"10.1.1.{n}"} for n in (1, 2, 3, 4)], "ports": [{"port": 80}]}]},
        {
            "subsets": [
                {"addresses": [{"ip": "10.1.1.1"}]},
                {
                    "addresses": [{"ip": "fd00::1"}],
                    "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}],
                },
            ]
        },
    ),
    "v1/events": EVENTS,
    "v1/limitranges": ({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}},),
    "v1/namespaces": ({},),
    "v1/nodes": NODES,
    "v1/persistentvolumeclaims": CLAIMS,
    "v1/persistentvolumes": VOLUMES,
    "v1/pods": PODS,
    "v1/podtemplates": ({"template": TEMPLATE},),
    "v1/replicationcontrollers": (
        {
            "spec": {"replicas": 3, "selector": {"app": "web", "tier": "front"}, "template": TEMPLATE},
            "status": REPLICAS,
        },
    ),
    "v1/resourcequotas": (
        {"spec": {"hard": {"pods": "5"}}},
        {
            "spec": {"hard": {"pods": "5", "limits.cpu": "4", "requests.cpu": "2"}},
            "status": {
                "hard": {"pods": "5", "limits.cpu": "4", "requests.cpu": "2"},
                "used": {"pods": "1", "limits.cpu": "500m", "requests.cpu": "0"},
            },
        },
    ),
    "v1/secrets": ({}, {"type": "example.com/key", "data": {"a": "AA==", "b": "AA=="}}),
    "v1/serviceaccounts": ({},),
    "v1/services": SERVICES,
    f"{ADMISSION}/v1/mutatingwebhookconfigurations": ({}, {"webhooks": [WEBHOOK]}),
    f"{ADMISSION}/v1/validatingwebhookconfigurations": ({"webhooks": [WEBHOOK]},),
    f"{ADMISSION}/v1/validatingadmissionpolicies": (
        {
            "spec": {
                "matchConstraints": ON_CAVES,
                "validations": [{"expression": "true"}, {"expression": "1 == 1"}],
            }
        },
        {
            "spec": {
                "matchConstraints": ON_CAVES,
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "validations": [{"expression": "true"}],
            }
        },
    ),
    f"{ADMISSION}/v1/validatingadmissionpolicybindings": (
        {"spec": OF_PARAMETERS},
        {"spec": OF_PARAMETERS | {"paramRef": PARAMETERS}},
        {
            "spec": OF_PARAMETERS
            | {"paramRef": {name: PARAMETERS[name] for name in ("name", "parameterNotFoundAction")}}
        },
        {"spec": OF_PARAMETERS | {"paramRef": BY_LABEL}},
    ),
    "apps/v1/controllerrevisions": (
        {"data": {}, "revision": 3},
        {
            "data": {},
            "revision": 1,
            "metadata": {
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "StatefulSet",
                        "name": "db",
                        "uid": "1",
                        "controller": True,
                    }
                ]
            },
        },
    ),
    "apps/v1/daemonsets": (
        {"spec": SET},
        {
            "spec": SET,
            "status": {
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberMisscheduled": 0,
                "numberReady": 3,
                "updatedNumberScheduled": 2,
                "numberAvailable": 1,
            },
        },
    ),
    "apps/v1/deployments": (
        {"spec": SET},
        {"spec": {**SET, "replicas": 3, "selector": SELECTOR}, "status": {**REPLICAS, "updatedReplicas": 2}},
    ),
    "apps/v1/replicasets": ({"spec": {**SET, "replicas": 3, "selector": SELECTOR}, "status": REPLICAS},),
    "apps/v1/statefulsets": (
        {"spec": {**SET, "replicas": 3}, "status": {"replicas": 3, "readyReplicas": 2}},
    ),
    "autoscaling/v2/horizontalpodautoscalers": SCALERS,
    "batch/v1/cronjobs": (
        {"spec": CRON},
        {
            "spec": {**CRON, "timeZone": "Etc/UTC", "suspend": True},
            "status": {"lastScheduleTime": OLD, "active": [{"kind": "Job", "name": "a"}]},
        },
    ),
    "batch/v1/jobs": JOBS,
    "certificates.k8s.io/v1/certificatesigningrequests": (
        {
            "spec": {
                "request": signing_request(),
                "signerName": "example.com/own",
                "usages": ["client auth"],
                "expirationSeconds": 7200,
            }
        },
    ),
    "coordination.k8s.io/v1/leases": ({}, {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 5}}),
    "discovery.k8s.io/v1/endpointslices": (
        SLICE | {"endpoints": [], "ports": []},
        SLICE
        | {
            "endpoints": [
                {"addresses": ["10.1.1.1", "10.1.1.2"]},
                {"addresses": ["10.1.1.3"]},
                {"addresses": ["10.1.1.4"]},
            ],
            "ports": [{"name": "a", "port": 80}, {"name": "b"}],
        },
        SLICE | {"endpoints": [], "ports": [{"name": f"p{n}", "port": n} for n in (1, 2, 3, 4)]},
    ),
    "events.k8s.io/v1/events": (NEW_EVENT,),
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": (
        {"spec": {"type": "Limited", "limited": LEVEL}},
        {"spec": {"type": "Limited", "limited": LEVEL | {"limitResponse": QUEUED}}},
    ),
    "networking.k8s.io/v1/ingressclasses": (
        {"spec": {"controller": "example.com/c"}},
        {
            "metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {
                "controller": "example.com/c",
                "parameters": {"apiGroup": "example.com", "kind": "Cave", "name": "a", "scope": "Cluster"},
            },
        },
    ),
    "networking.k8s.io/v1/ingresses": INGRESSES,
    "networking.k8s.io/v1/networkpolicies": (
        {"spec": {"podSelector": {}}},
        {"spec": {"podSelector": SELECTOR}},
    ),
    "node.k8s.io/v1/runtimeclasses": ({"handler": "runc"},),
    "policy/v1/poddisruptionbudgets": (
        {
            "spec": {"selector": SELECTOR, "minAvailable": 2},
            "status": {"disruptionsAllowed": 3, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        },
        {"spec": {"selector": SELECTOR, "maxUnavailable": "30%"}},
    ),
    f"{RBAC}/v1/clusterrolebindings": (binding(*SUBJECTS, kind="ClusterRole"), binding(kind="ClusterRole")),
    f"{RBAC}/v1/clusterroles": ({"rules": []},),
    f"{RBAC}/v1/rolebindings": (binding(*SUBJECTS),),
    f"{RBAC}/v1/roles": ({"rules": []},),
    "resource.k8s.io/v1/deviceclasses": ({"spec": {}},),
    "resource.k8s.io/v1/resourceclaims": ({"spec": DEVICES},),
    "resource.k8s.io/v1/resourceclaimtemplates": ({"spec": {"spec": DEVICES}},),
    "resource.k8s.io/v1/resourceslices": (
        {
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "node-1",
                "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                "devices": [],
            }
        },
    ),
    "scheduling.k8s.io/v1/priorityclasses": ({"value": 7}, {"value": -1, "preemptionPolicy": "Never"}),
    "storage.k8s.io/v1/csidrivers": (
        {"spec": {}},
        {
            "spec": {
                "attachRequired": False,
                "podInfoOnMount": True,
                "tokenRequests": [{"audience": "a"}],
                "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            }
        },
    ),
    "storage.k8s.io/v1/csinodes": (
        {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "1", "topologyKeys": []}]}},
    ),
    "storage.k8s.io/v1/csistoragecapacities": (
        {"storageClassName": "fast"},
        {"storageClassName": "fast", "capacity": "10Gi", "nodeTopology": {}},
    ),
    "storage.k8s.io/v1/storageclasses": (
        {"provisioner": "example.com/p"},
        {
            "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "example.com/p",
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": True,
        },
    ),
    "storage.k8s.io/v1/volumeattachments": (
        {
            "spec": {
                "attacher": "d.example.com",
                "nodeName": "node-1",
                "source": {"persistentVolumeName": "v"},
            },
            "status": {"attached": True},
        },
    ),
}
"""Objects by resource. Missing: kinds with names of a form of their own, and kinds that controllers change."""


def place(value: Any, namespace: str) -> Any:
    """Return an object with the namespace for NS."""
    if isinstance(value, dict):
        return {name: place(member, namespace) for name, member in value.items()}
    if isinstance(value, list):
        return [place(element, namespace) for element in value]
    return namespace if value == "NS" else value
