"""resources/wait_conditions.py: which objects meet which condition."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject, field
from aioinformer.resources.wait_conditions import wait_condition

POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "default", "generation": 3},
    "spec": {"replicas": 2, "paused": False},
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "observedGeneration": 3},
            {"type": "Old", "status": "True", "observedGeneration": 2},
            {"type": "Failed", "status": "False"},
        ],
    },
}


@pytest.mark.parametrize("as_type", [dict, KubeObject.from_dict])
@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("condition=Ready", True),
        ("condition=Ready=true", True),
        ("condition=Ready=False", False),
        ("condition=Old", False),  # of an older generation
        ("condition=Failed=False", True),
        ("condition=Missing", False),
        ("create", True),
        ("delete", False),
        ("jsonpath={.status.phase}=Running", True),
        ("jsonpath=.status.phase=Running", True),
        ("jsonpath={$.status.phase}=Pending", False),
        ("jsonpath={.status.phase}", True),
        ("jsonpath={.status.podIP}", False),
        ("jsonpath={.spec.replicas}=2", True),
        ("jsonpath={.spec.paused}=false", True),
        ("jsonpath={.status.conditions[*].type}", True),
        (field("status.phase").equals("Running", "Succeeded"), True),
        (field("status.phase").equals("Failed"), False),
    ],
)
def test_conditions(condition: Any, is_met: bool, as_type: Any) -> None:
    assert wait_condition(condition).is_met(as_type(POD)) is is_met


def test_observed_generation_of_the_status_counts_where_the_condition_has_none() -> None:
    condition = {"type": "Available", "status": "True"}
    status = {"observedGeneration": 1, "conditions": [condition]}
    available = wait_condition("condition=Available")
    assert not available.is_met({"metadata": {"generation": 2}, "status": status})
    assert available.is_met({"metadata": {"generation": 1}, "status": status})


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "Ready",
        "deleted",
        "condition=",
        "condition",
        "jsonpath",
        "jsonpath={.items[?(@.a==1)]}",
        "jsonpath={",
        None,
        7,
    ],
)
def test_unknown_forms_are_refused(condition: Any) -> None:
    with pytest.raises(ConfigError, match=r"a condition to wait for is|is no path of a field"):
        wait_condition(condition)
