"""Replicas as processes on the real server; ``make replicas`` runs this with 2,000 objects and 50 events."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import sharded_operator
from tests.kubernetes.controlplane import ControlPlane

from .processes import rehearse
from .replica import LEASE_DURATION

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes"), pytest.mark.timeout(600)]


async def test_replicas_that_join_stop_and_are_killed_share_the_work(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    result = await rehearse(control_plane, tmp_path, objects=100, replicas=3, events=5, seed=3)
    assert result.kills >= 1
    assert not result.overlaps
    assert (
        max(takeover.seconds for takeover in result.takeovers) < LEASE_DURATION + 10.0
    )  # on a machine that has other work


async def test_example_with_replicas_that_are_killed(
    kubernetes_binaries: object, capfd: pytest.CaptureFixture[str]
) -> None:
    with ControlPlane(feature_gates={"ShardedListAndWatch": True}) as running:
        await sharded_operator.main(str(running.kubeconfig), kills=2, seconds=2.0)
    assert capfd.readouterr().out.splitlines()[-1].startswith("round 2 is done")
