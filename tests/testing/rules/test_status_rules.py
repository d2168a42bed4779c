"""What the server says against statuses, as kube-apiserver 1.36.3 does."""

from __future__ import annotations

from functools import partial

import pytest

from aioinformer.testing import StatusError
from aioinformer.testing.apply.patches import merge_patch
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.objects import Object

from .test_spec_rules import KINDS, ONCE, SELECTED, STRICT

TIME = "2026-01-01T00:00:00Z"
SPECS: dict[str, Object] = {"Job": {"template": ONCE}, "StatefulSet": SELECTED | {"serviceName": "a"}}


def true(*types: str) -> list[Object]:
    return [{"type": kind, "status": "True"} for kind in types]


def faults(kind: str, *statuses: Object) -> list[str]:
    """Return the causes of the refusal of the last of several statuses; the Python API writes the others."""
    cluster, resource = Cluster(), KINDS[kind]
    cluster.create(
        resource, "default", {"metadata": {"name": "x"}, "spec": SPECS.get(kind, SELECTED)}, STRICT
    )
    try:
        for number, status in enumerate(statuses, 1):
            change = partial(merge_patch, patch={"status": status})
            options = WriteOptions(subresource="status", strict=number == len(statuses))
            cluster.modify(resource, "default", "x", change, options)
    except StatusError as refused:
        return [f"{cause['field']}: {cause['message']}" for cause in refused.status["details"]["causes"]]
    return []


@pytest.mark.parametrize(
    ("kind", "status", "causes"),
    [
        ("Deployment", {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}, []),
        (
            "Deployment",
            {"readyReplicas": 1},
            ["readyReplicas: Invalid value: 1: cannot be greater than status.replicas"],
        ),
        (
            "ReplicaSet",
            {"replicas": 1, "availableReplicas": 1},
            ["availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"],
        ),
        (
            "StatefulSet",
            {"replicas": 1, "currentReplicas": 2, "observedGeneration": -1},
            [
                "observedGeneration: Invalid value: -1: must be greater than or equal to 0",
                "currentReplicas: Invalid value: 2: cannot be greater than status.replicas",
            ],
        ),
        ("DaemonSet", {"numberReady": 5}, []),
        (
            "DaemonSet",
            {"numberReady": -1},
            ["numberReady: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ("Job", {"succeeded": 1, "active": 1, "ready": 1, "conditions": true("Suspended")}, []),
        ("Job", {"ready": 1}, ["ready: Invalid value: 1: cannot set more ready pods than active"]),
        (
            "Job",
            {"startTime": TIME, "completionTime": TIME, "conditions": true("SuccessCriteriaMet", "Complete")},
            [],
        ),
        ("Job", {"startTime": TIME, "conditions": true("FailureTarget", "Failed")}, []),
        (
            "Job",
            {"conditions": true("Complete")},
            [
                "completionTime: Required value: completionTime is required for Complete jobs",
                "conditions: Invalid value: cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true condition",
                "startTime: Required value: startTime is required for finished job",
            ],
        ),
        (
            "Job",
            {"startTime": TIME, "active": 1, "conditions": true("Failed", "FailureTarget")},
            ["active: Invalid value: 1: active>0 is invalid for finished job"],
        ),
        (
            "Job",
            {"completionTime": TIME},
            [
                f'completionTime: Invalid value: "{TIME}": cannot set completionTime when there is no Complete=True '
                "condition"
            ],
        ),
    ],
)
def test_status_is_refused_with_causes(kind: str, status: Object, causes: list[str]) -> None:
    assert faults(kind, status) == [f"status.{cause}" for cause in causes]


def test_mistakes_that_a_status_had_before_are_not_refused() -> None:
    finished = {"conditions": true("Complete")}
    assert faults("Job", finished, {"succeeded": 1}) == []
    assert faults("Job", finished, {"ready": 1}) == [
        "status.ready: Invalid value: 1: cannot set more ready pods than active"
    ]
