"""The short form of the comparison: no difference appears that docs/conformance.md does not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.controlplane import ControlPlane

from . import kubectl, requests
from .page import KNOWN, identity_of
from .results import DIFFERS, Case
from .servers import embedded, real, target_of

AREAS = ("apply", "configmaps", "custom", "network", "storage", "workloads")
SEEDS = range(8)

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("conformance"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def plane(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    """Run a control plane for these tests alone: others leave custom resources behind."""
    with ControlPlane() as running:
        running.start_controller_manager()
        yield running


@pytest.mark.parametrize("area", AREAS)
async def test_kubectl_commands(area: str, plane: ControlPlane, kubernetes_binaries: Path) -> None:
    async with embedded(controllers=True) as ours, target_of(plane) as theirs:
        cases = await kubectl.run_areas(kubernetes_binaries / "kubectl", (ours, theirs), print, [area])
    assert_known(cases)


async def test_random_requests(kubernetes_binaries: Path) -> None:
    async with embedded(controllers=False) as ours, real(controllers=False) as theirs:
        cases = await requests.run_seeds(ours, theirs, SEEDS, print)
    assert_known(cases)


def assert_known(cases: list[Case]) -> None:
    """Fail with the differences that the page does not have."""
    known = json.loads(KNOWN.read_text())[cases[0].part]
    unknown = [case for case in cases if case.outcome == DIFFERS and identity_of(case) not in known]
    shown = "\n\n".join(
        f"{case.name} {case.sent}\nembedded: {case.ours}\nreal: {case.real}" for case in unknown
    )
    assert not unknown, f"{len(unknown)} new differences; make conformance lists them:\n{shown[:20_000]}"
