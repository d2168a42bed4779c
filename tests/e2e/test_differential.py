"""The embedded and the real server give the same answers, except for the rules in differences.py."""

from __future__ import annotations

import asyncio
import difflib
import json
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import APIServer
from tests.kubernetes.controlplane import ControlPlane

from .api import API
from .clusters import EmbeddedCluster, KubernetesCluster
from .conftest import REAL
from .differences import compare
from .recording import AnswerRecorder, Recorded, Scenario
from .scenarios import SCENARIOS
from .scenarios.random import random_requests

pytestmark = [*REAL, pytest.mark.asyncio(loop_factories=["asyncio"])]  # no code of ours asks


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_fixed_requests(scenario: Scenario, control_plane: ControlPlane, tmp_path: Path) -> None:
    await alike(scenario, control_plane, tmp_path)


@pytest.mark.parametrize("seed", range(5))
async def test_random_requests(seed: int, control_plane: ControlPlane, tmp_path: Path) -> None:
    await alike(random_requests(seed), control_plane, tmp_path)


async def alike(scenario: Scenario, control_plane: ControlPlane, folder: Path) -> None:
    """Send a scenario to both servers and fail with all differences."""
    async with (
        APIServer(token="administrator", seed=1, control_plane=False) as server,
        API(server.url, server.token, None) as to_embedded,
        API(control_plane.url, control_plane.token, control_plane.ssl_context()) as to_real,
    ):
        embedded, real = await asyncio.gather(
            record_scenario(scenario, EmbeddedCluster(server, to_embedded, folder)),
            record_scenario(scenario, KubernetesCluster(control_plane, to_real, folder)),
        )
    assert [record.request for record in embedded] == [record.request for record in real]
    differing = [
        text for ours, theirs in zip(embedded, real, strict=True) for text in difference(ours, theirs)
    ]
    assert not differing, f"{len(differing)} of {len(real)} differ:\n" + "\n".join(differing)


async def record_scenario(scenario: Scenario, cluster: EmbeddedCluster | KubernetesCluster) -> list[Recorded]:
    recorder = AnswerRecorder(cluster.api, await cluster.new_namespace())
    await scenario(recorder)
    return recorder.recorded


def difference(embedded: Recorded, real: Recorded) -> list[str]:
    """Return a readable difference, or an empty text."""
    ours, theirs = compare(embedded, real)
    if ours == theirs:
        return []
    lines = difflib.unified_diff(_lines(ours), _lines(theirs), "embedded", "real", n=2, lineterm="")
    return ["\n".join([f"--- {embedded.request} {embedded.sent[:300]}", *list(lines)[2:]])]


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True).splitlines()
