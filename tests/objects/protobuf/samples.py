"""Protobuf written by hand, and the JSON that says the same."""

from __future__ import annotations

from typing import Any

from aioinformer import KubeObject
from aioinformer.cache import TypeMeta
from aioinformer.objects.codec import codec_for
from aioinformer.objects.protobuf import PIECE, form_of
from aioinformer.objects.protobuf.wire import VARINT, write_varint

POD = TypeMeta("v1", "Pod")


def field(number: int, value: str | bytes | int) -> bytes:
    """A field of a message, with its tag."""
    if isinstance(value, int):
        return write_varint(number << 3 | VARINT) + write_varint(value)
    piece = value.encode() if isinstance(value, str) else value
    return write_varint(number << 3 | PIECE) + write_varint(len(piece)) + piece


def message(*fields: tuple[int, str | bytes | int]) -> bytes:
    """Fields in the order that is given."""
    return b"".join(field(number, value) for number, value in fields)


def entry(key: str, value: str | bytes) -> bytes:
    """An entry of a map."""
    return message((1, key), (2, value))


def time(seconds: int) -> bytes:
    return message((1, seconds), (2, 0))


def metadata(
    name: str = "a", namespace: str = "ns", version: str = "1", *more: tuple[int, str | bytes | int]
) -> bytes:
    """An ObjectMeta as API servers write it: the first six fields, be they empty, and what else there is."""
    first = [name, "", namespace, "", f"uid-{name}", version]
    return message(*enumerate(first, 1), *more)


def pod_protobuf(
    name: str = "a", namespace: str = "ns", version: str = "1", *more: tuple[int, str | bytes | int]
) -> bytes:
    """A Pod with such metadata, and nothing else."""
    return message((1, metadata(name, namespace, version, *more)), (2, b""), (3, b""))


def kube_object(raw: bytes, type_meta: TypeMeta = POD) -> KubeObject:
    """The object that protobuf is."""
    return codec_for(KubeObject).decode(form_of(type_meta).object_of(raw))


_MANAGED = message(
    (1, "kubelet"),
    (2, "Update"),
    (3, "v1"),
    (4, time(1_700_000_000)),
    (6, "FieldsV1"),
    (7, field(1, '{"f:a":{}}')),
)
_OWNER = message((1, "ReplicaSet"), (3, "web-1"), (4, "uid-owner"), (5, "apps/v1"), (6, 1))
_PROBE = message(
    (1, message((2, message((1, "/healthz"), (2, message((1, 1), (2, 0), (3, "http"))))))), (4, 5)
)
_CONTAINER = message(
    (1, "app"),
    (2, "example.com/app:1"),
    (5, ""),
    (6, message((2, 0), (3, 8080))),
    (7, message((1, "A"), (2, ""))),
    (7, message((1, "B"), (2, "b"))),
    (8, message((1, entry("memory", field(1, "2Gi"))), (2, entry("cpu", field(1, "100m"))))),
    (10, _PROBE),
)
_SPEC = message(
    (1, message((1, "data"), (2, message((2, b""))))),
    (2, _CONTAINER),
    (3, "Always"),
    (4, 30),
    (7, entry("disk", "ssd")),
    (10, "node-1"),
    (22, message((2, "Exists"), (4, "NoExecute"), (5, 300))),
    (25, -1),
)
_STATUS = message(
    (1, "Running"),
    (2, message((1, "Ready"), (2, "True"), (3, b""), (4, time(1_700_000_060)))),
    (7, time(1_700_000_000)),
    (
        8,
        message(
            (1, "app"),
            (2, message((2, field(1, time(1_700_000_050))))),
            (3, b""),
            (4, 1),
            (5, 0),
            (6, "app:1"),
            (7, ""),
        ),
    ),
)

WHOLE = message(
    (
        1,
        metadata(
            "web-1",
            "default",
            "42",
            (7, 3),
            (8, time(1_700_000_000)),
            (9, time(1_700_000_100)),
            (10, 30),
            (11, entry("app", "web")),
            (11, entry("tier", "")),
            (12, entry("note", "ü" * 100)),
            (13, _OWNER),
            (14, "example.com/a"),
            (14, "example.com/b"),
            (17, _MANAGED),
        ),
    ),
    (2, _SPEC),
    (3, _STATUS),
)
"""A pod with much in it."""

WHOLE_JSON: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "default",
        "uid": "uid-web-1",
        "resourceVersion": "42",
        "generation": 3,
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "deletionTimestamp": "2023-11-14T22:15:00Z",
        "deletionGracePeriodSeconds": 30,
        "labels": {"app": "web", "tier": ""},
        "annotations": {"note": "ü" * 100},
        "ownerReferences": [
            {
                "kind": "ReplicaSet",
                "name": "web-1",
                "uid": "uid-owner",
                "apiVersion": "apps/v1",
                "controller": True,
            }
        ],
        "finalizers": ["example.com/a", "example.com/b"],
        "managedFields": [
            {
                "manager": "kubelet",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2023-11-14T22:13:20Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:a": {}},
            }
        ],
    },
    "spec": {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [
            {
                "name": "app",
                "image": "example.com/app:1",
                "ports": [{"containerPort": 8080}],
                "env": [{"name": "A"}, {"name": "B", "value": "b"}],
                "resources": {"limits": {"memory": "2Gi"}, "requests": {"cpu": "100m"}},
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "nodeSelector": {"disk": "ssd"},
        "nodeName": "node-1",
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "priority": -1,
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2023-11-14T22:14:20Z",
            }
        ],
        "startTime": "2023-11-14T22:13:20Z",
        "containerStatuses": [
            {
                "name": "app",
                "state": {"running": {"startedAt": "2023-11-14T22:14:10Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "app:1",
                "imageID": "",
            }
        ],
    },
}


def envelope(raw: bytes, type_meta: TypeMeta = POD) -> bytes:
    """A body, or the object of an event."""
    return b"k8s\0" + message(
        (1, message((1, type_meta.api_version), (2, type_meta.kind))), (2, raw), (3, ""), (4, "")
    )
