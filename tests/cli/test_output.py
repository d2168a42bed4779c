"""What is printed of an object."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Group

from aioinformer import KubeObject
from aioinformer.cli.output import Screen, Table, age_of, status_of


def cave(**fields: Any) -> KubeObject:
    return KubeObject.from_dict({"metadata": {"name": "deep", "namespace": "default"}, **fields})


def test_what_a_server_says_forges_no_row_and_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(namespaced=False, wide=False)
    table.event("ADDED", "default/evil", cave(status={"phase": "ok\nADDED\x1b[2J\x07\u202e é東"}), True)
    table.event("ADDED", "default/deep", cave(), True)
    _, evil, deep = capsys.readouterr().out.splitlines()
    said = r"ok\nADDED\x1b[2J\x07\u202e é東"
    assert evil.split(maxsplit=2) == ["ADDED", "evil", f"{said}  -"]
    assert evil.rindex("-") == deep.rindex("-"), "columns are as wide as what is shown"


def test_a_screen_shows_strings_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    said = "failed [/healthz] at [fd00::1]:2379 :ok: [red]"
    Screen().print(Group(said))
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "-"),
        ({"status": {"phase": "Running"}}, "Running"),
        ({"status": {"readyReplicas": 1}, "spec": {"replicas": 2}}, "1/2"),
        ({"status": {}, "spec": {"replicas": 2}}, "0/2"),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready"),
        ({"status": {"conditions": [5, {"type": "Ready", "status": "False"}]}}, "NotReady"),
        ({"status": {"conditions": [{"type": "Held", "status": "True"}]}}, "-"),
        ({"status": {"conditions": 5}}, "-"),
        ({"status": {"conditions": {"Ready": True}}}, "-"),
        ({"status": {"phase": 5}}, "-"),
        ({"status": [], "spec": 5}, "-"),
    ],
)
def test_the_status_of_whatever_a_custom_resource_holds(fields: dict[str, Any], status: str) -> None:
    assert status_of(cave(**fields)) == status


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=60), "6[0-9]s"),
        (timedelta(minutes=5.5), "5m"),
        (timedelta(hours=30.5), "30h"),
        (timedelta(days=12.5), "12d"),
    ],
)
def test_ages(age: timedelta, said: str) -> None:
    created = (datetime.now(UTC) - age).isoformat()
    obj = KubeObject.from_dict({"metadata": {"name": "deep", "creationTimestamp": created}})
    assert re.fullmatch(said, age_of(obj))
