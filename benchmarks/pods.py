"""Pods like those of a real cluster: 150 different applications, 4 to 13 KB each, a third of it managedFields.

Each pod is made from its number and a seed. ``write_templates`` writes templates for the replay server, which gives
each copy its own name, uid and version, so that a million pods do not need a file of a million lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec

NAMESPACES = 50
NODES = 250
SENT = "benchmark.example.com/sent"
"""The annotation with an event's send time: CLOCK_MONOTONIC in nanoseconds, 19 digits."""

FIRST_VERSION = 1_000_000_000
"""Versions have ten digits, so that the server can replace them in place."""

# The marks that the replay server replaces in a template; they do not occur elsewhere in a pod.
NAME_MARK, UID_MARK, VERSION_MARK = "QQQQQ", "ffffffff-ffff-4fff-8fff-ffffffffffff", "9999999999"
SENT_MARK = "0" * 19

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_HEX = "0123456789abcdef"
_EPOCH = datetime(2026, 9, 1, tzinfo=UTC)
_WORDS = (
    "cart",
    "order",
    "stock",
    "price",
    "search",
    "mail",
    "image",
    "report",
    "audit",
    "login",
    "token",
    "quota",
    "batch",
    "index",
    "feed",
    "chat",
    "video",
    "ledger",
    "route",
    "proxy",
    "sync",
    "crawl",
    "score",
    "rank",
    "store",
    "meter",
    "alert",
    "trace",
)
_ROLES = ("api", "worker", "cron", "gateway", "cache", "web", "consumer", "indexer")
_NOUNS = (
    "DATABASE",
    "QUEUE",
    "CACHE",
    "BROKER",
    "TRACING",
    "LIMIT",
    "TIMEOUT",
    "REGION",
    "BUCKET",
    "TOPIC",
    "FEATURE",
    "LOG",
    "POOL",
)
_FACETS = ("URL", "HOST", "PORT", "LEVEL", "NAME", "SIZE", "TTL", "ENABLED", "RETRIES")


def name_suffix(number: int) -> str:
    """Return the five last characters of a pod's name, which are unique among 14 million numbers."""
    scrambled = number * 7_368_787 % 27**5
    letters = []
    for _ in range(5):
        scrambled, digit = divmod(scrambled, 27)
        letters.append(_ALPHABET[digit])
    return "".join(letters)


def uid(number: int) -> str:
    """Return the uid of a pod."""
    high, low = _mix(2 * number), _mix(2 * number + 1)
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"


def _mix(number: int) -> int:
    """Return SplitMix64's output for a number, as the replay server does."""
    z = (number + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ z >> 31


def pod(number: int, resource_version: int | None = None, *, seed: int = 0) -> dict[str, Any]:
    """Return a pod as a real API server writes the object of a watch event.

    Args:
        number: The pod's number.
        resource_version: A number of ten digits; None for the version in the initial list.
        seed: The cluster's seed.
    """
    version = FIRST_VERSION + number if resource_version is None else resource_version
    fields = template(number, seed=seed)
    metadata = fields["metadata"]
    metadata["name"] = metadata["name"].replace(NAME_MARK, name_suffix(number))
    metadata["uid"] = uid(number)
    metadata["resourceVersion"] = str(version)
    return {"kind": "Pod", "apiVersion": "v1", **fields}


def write_templates(path: Path, count: int, *, seed: int = 0) -> None:
    """Write a line of JSON for each pod, with marks instead of name, uid and version."""
    encode = msgspec.json.Encoder().encode
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.writelines(encode(template(number, seed=seed)) + b"\n" for number in range(count))
    partial.rename(path)


@dataclass(frozen=True)
class _Application:
    """The common fields of an application's pods."""

    name: str
    namespace: str
    hash: str
    owner_uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    containers: list[dict[str, Any]]
    volumes: list[dict[str, Any]]
    images: list[str]
    priority: str
    bare: bool
    """Without a service account token and a controller's managedFields: the small pods of a cluster."""


def _hex(random: Random, length: int) -> str:
    return "".join(random.choices(_HEX, k=length))


def _application(index: int, random: Random) -> _Application:
    word, role = random.choice(_WORDS), random.choice(_ROLES)
    name = f"{word}-{role}" if random.random() < 0.7 else f"{word}-{role}-v{random.randint(2, 9)}"
    version = f"{random.randint(0, 9)}.{random.randint(0, 40)}.{random.randint(0, 20)}"
    template_hash = _hex(random, 10)
    labels = {"app": f"{name}-{index}", "pod-template-hash": template_hash}
    if random.random() < 0.6:
        labels |= {
            "app.kubernetes.io/instance": name,
            "app.kubernetes.io/managed-by": random.choice(["Helm", "argocd"]),
            "app.kubernetes.io/name": word,
            "app.kubernetes.io/version": version,
        }
    if random.random() < 0.5:
        labels["tier"] = random.choice(["frontend", "backend", "data"])
    annotations: dict[str, str] = {}
    if random.random() < 0.5:
        annotations |= {"prometheus.io/port": "9090", "prometheus.io/scrape": "true"}
    if random.random() < 0.5:
        annotations["checksum/config"] = _hex(random, 64)
    containers = [
        _container(word if n == 0 else random.choice(["proxy", "agent", "logger"]) + f"-{n}", version, random)
        for n in range(random.choices([1, 2, 3], [65, 27, 8])[0])
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": f"{name}-config", "defaultMode": 420}}
    ]
    if random.random() < 0.5:
        volumes.append({"name": "tls", "secret": {"secretName": f"{name}-tls", "defaultMode": 420}})
    if random.random() < 0.4:
        volumes.append({"name": "data", "emptyDir": {"sizeLimit": "1Gi"}})
    return _Application(
        name,
        f"team-{index % NAMESPACES}",
        template_hash,
        uid(10**9 + index),
        dict(sorted(labels.items())),
        annotations,
        containers,
        volumes,
        [f"{container['image'].partition(':')[0]}@sha256:{_hex(random, 64)}" for container in containers],
        random.choice(["", "", "", "high", "low"]),
        bare=random.random() < 0.25,
    )


def _container(name: str, version: str, random: Random) -> dict[str, Any]:
    registry = random.choice(["registry.example.com", "mirror.example.net/hub", "images.example.org"])
    container: dict[str, Any] = {
        "name": name,
        "image": f"{registry}/{random.choice(['platform', 'shop', 'infra'])}/{name}:{version}-{_hex(random, 7)}",
    }
    if random.random() < 0.3:
        container["args"] = [
            f"--{random.choice(_WORDS)}={random.randint(1, 999)}" for _ in range(random.randint(1, 5))
        ]
    container["ports"] = [
        {"name": port_name, "containerPort": random.randint(3000, 9999), "protocol": "TCP"}
        for port_name in random.sample(["http", "metrics", "grpc"], random.randint(1, 2))
    ]
    variables = {
        f"{random.choice(_NOUNS)}_{random.choice(_FACETS)}"
        for _ in range(random.choice([0, 0, 1, 2, 3, 5, 8, 12]))
    }
    if variables:
        container["env"] = [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            *({"name": variable, "value": _value(random)} for variable in sorted(variables)),
        ]
    memory = random.choice([64, 128, 256, 512, 1024, 4096])
    container["resources"] = {
        "limits": {"memory": f"{2 * memory}Mi"},
        "requests": {"cpu": f"{random.choice([10, 50, 100, 250, 1000])}m", "memory": f"{memory}Mi"},
    }
    container["volumeMounts"] = [{"name": "config", "readOnly": True, "mountPath": f"/etc/{name}"}]
    if random.random() < 0.6:
        port = container["ports"][0]["name"]
        probe = {"httpGet": {"path": f"/{random.choice(_WORDS)}/healthz", "port": port, "scheme": "HTTP"}}
        timing = {
            "timeoutSeconds": random.randint(1, 9),
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        }
        container["livenessProbe"] = probe | {"initialDelaySeconds": random.randint(5, 60)} | timing
        container["readinessProbe"] = probe | timing
    return container | {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _value(random: Random) -> str:
    kind = random.randrange(4)
    if kind == 0:
        return str(random.randint(1, 65535))
    if kind == 1:
        return random.choice(["true", "false", "info", "debug", "eu-west-1", "us-east-2"])
    if kind == 2:
        return f"{random.choice(_WORDS)}-{_hex(random, 8)}"
    return f"https://{random.choice(_WORDS)}.{random.choice(_WORDS)}.svc.cluster.local:{random.randint(80, 9999)}/v1"


@lru_cache(maxsize=4)
def _applications(seed: int) -> list[_Application]:
    random = Random(f"applications {seed}")
    return [_application(index, random) for index in range(3 * NAMESPACES)]


def template(number: int, *, seed: int = 0) -> dict[str, Any]:
    """Return a pod without kind, as in a list, with the marks of the replay server."""
    random = Random(f"{seed} {number}")
    applications = _applications(seed)
    # Every application has some pods, and some have many.
    spread = random.random() ** 2 if number >= len(applications) else number / len(applications)
    application = applications[int(spread * len(applications))]
    created = _EPOCH + timedelta(seconds=random.randrange(8_000_000))
    name = f"{application.name}-{application.hash}-{NAME_MARK}"
    token = "kube-api-access-" + "".join(random.choices(_ALPHABET, k=5))
    address = f"10.{random.randint(64, 127)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
    node = random.randrange(NODES)
    annotations = {SENT: SENT_MARK, **application.annotations}
    if random.random() < 0.3:
        annotations["kubectl.kubernetes.io/restartedAt"] = _time(created)
    pending = random.random() < 0.04
    return {
        "metadata": {
            "name": name,
            "generateName": f"{application.name}-{application.hash}-",
            "namespace": application.namespace,
            "uid": UID_MARK,
            "resourceVersion": VERSION_MARK,
            "generation": 1,
            "creationTimestamp": _time(created),
            "labels": application.labels,
            "annotations": dict(sorted(annotations.items())),
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{application.name}-{application.hash}",
                    "uid": application.owner_uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": _managed_fields(application, created, pending, address),
        },
        "spec": _spec(application, token, node),
        "status": _status(application, created, pending, address, node, random),
    }


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _spec(application: _Application, token: str, node: int) -> dict[str, Any]:
    mount = {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                ]
            }
        },
    ]
    token_volume = {"name": token, "projected": {"sources": sources, "defaultMode": 420}}
    spec: dict[str, Any] = {
        "volumes": [
            *application.volumes,
            *([] if application.bare else [token_volume]),
        ],
        "containers": [
            container
            if application.bare
            else container | {"volumeMounts": [*container["volumeMounts"], mount]}
            for container in application.containers
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": application.name,
        "serviceAccount": application.name,
        "nodeName": f"ip-10-0-{node // 100}-{node % 100}.example.internal",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for taint in ("not-ready", "unreachable")
        ],
    }
    if application.priority:
        spec["priorityClassName"] = application.priority
    return spec | {"priority": 0, "enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority"}


def _status(
    application: _Application, created: datetime, pending: bool, address: str, node: int, random: Random
) -> dict[str, Any]:
    host = f"10.0.{node // 100}.{node % 100 + 1}"
    started = created + timedelta(seconds=random.randint(1, 90))

    def condition(kind: str, moment: datetime, true: bool = True) -> dict[str, Any]:
        given: dict[str, Any] = {
            "type": kind,
            "status": "True" if true else "False",
            "lastProbeTime": None,
            "lastTransitionTime": _time(moment),
        }
        if not true:
            names = " ".join(container["name"] for container in application.containers)
            given |= {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
        return given

    conditions = [
        condition("PodReadyToStartContainers", started, not pending),
        condition("Initialized", created),
        condition("Ready", started, not pending),
        condition("ContainersReady", started, not pending),
        condition("PodScheduled", created),
    ]
    statuses = []
    for container, image in zip(application.containers, application.images, strict=True):
        state: dict[str, Any] = {"running": {"startedAt": _time(started)}}
        last: dict[str, Any] = {}
        restarts = random.choices([0, random.randint(1, 40)], [85, 15])[0]
        if pending:
            state = {"waiting": {"reason": "ContainerCreating"}}
        elif restarts:
            ended = created + timedelta(seconds=random.randrange(500_000))
            last = {
                "terminated": {
                    "exitCode": random.choice([1, 137, 255]),
                    "reason": "OOMKilled" if restarts % 2 else "Error",
                    "startedAt": _time(started),
                    "finishedAt": _time(ended),
                    "containerID": f"containerd://{_hex(random, 64)}",
                }
            }
        statuses.append(
            {
                "name": container["name"],
                "state": state,
                "lastState": last,
                "ready": not pending,
                "restartCount": restarts,
            }
            | {"image": container["image"], "imageID": "" if pending else image}
            | ({} if pending else {"containerID": f"containerd://{_hex(random, 64)}"})
            | {"started": not pending}
        )
    addresses = {} if pending else {"podIP": address, "podIPs": [{"ip": address}]}
    return {
        "phase": "Pending" if pending else "Running",
        "conditions": conditions,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        **addresses,
        "startTime": _time(created),
        "containerStatuses": statuses,
        "qosClass": "Burstable",
    }


def _field_names(names: Any) -> dict[str, Any]:
    return {".": {}} | {f"f:{name}": {} for name in sorted(names)}


def _managed_fields(
    application: _Application, created: datetime, pending: bool, address: str
) -> list[dict[str, Any]]:
    containers = {}
    for container in application.containers:
        fields = _field_names(container.keys() - {"env", "ports"})
        if "env" in container:
            fields["f:env"] = {".": {}} | {
                f'k:{{"name":"{variable["name"]}"}}': _field_names(variable) for variable in container["env"]
            }
        fields["f:ports"] = {".": {}} | {
            f'k:{{"containerPort":{port["containerPort"]},"protocol":"TCP"}}': _field_names(port)
            for port in container["ports"]
        }
        containers[f'k:{{"name":"{container["name"]}"}}'] = fields
    controller = {
        "f:metadata": {
            "f:annotations": _field_names(application.annotations),
            "f:generateName": {},
            "f:labels": _field_names(application.labels),
            "f:ownerReferences": {".": {}, f'k:{{"uid":"{application.owner_uid}"}}': {}},
        },
        "f:spec": {
            "f:containers": containers,
            "f:dnsPolicy": {},
            "f:enableServiceLinks": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": {},
            "f:serviceAccount": {},
            "f:serviceAccountName": {},
            "f:terminationGracePeriodSeconds": {},
            "f:volumes": {".": {}}
            | {f'k:{{"name":"{volume["name"]}"}}': {".": {}, "f:name": {}} for volume in application.volumes},
        },
    }
    conditions = ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
    kubelet = {
        "f:status": {
            "f:conditions": {
                f'k:{{"type":"{kind}"}}': _field_names(
                    ("lastProbeTime", "lastTransitionTime", "status", "type")
                )
                for kind in conditions
            },
            "f:containerStatuses": {},
            "f:hostIP": {},
            "f:hostIPs": {},
            **(
                {}
                if pending
                else {"f:podIP": {}, "f:podIPs": {".": {}, f'k:{{"ip":"{address}"}}': _field_names(["ip"])}}
            ),
            "f:phase": {},
            "f:startTime": {},
        }
    }
    by_kubelet = _managed_entry("kubelet", created + timedelta(seconds=61), kubelet) | {
        "subresource": "status"
    }
    if application.bare:
        return [by_kubelet]
    return [_managed_entry("kube-controller-manager", created, controller), by_kubelet]


def _managed_entry(manager: str, moment: datetime, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _time(moment),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
