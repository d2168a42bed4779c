"""The same story of each framework's operator, on the real kube-apiserver, with the operator's own rights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aioinformer import Client
from tests.e2e.conftest import REAL
from tests.kubernetes.controlplane import ControlPlane

from .dns import DNS
from .frameworks import FRAMEWORKS, Framework
from .installing import run_website_operator
from .story import Story

pytestmark = [*REAL, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def plane(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    """Run a server on which owners that block deletion need a right, as on many clusters."""
    extra = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    with ControlPlane(extra_args=extra) as running:
        yield running


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.name)
async def test_the_story_of_two_websites(framework: Framework, plane: ControlPlane, tmp_path: Path) -> None:
    if framework.missing:
        pytest.skip(framework.missing)
    namespace = plane.create_namespace()
    async with (
        DNS() as dns,
        Client.from_kubeconfig(path=plane.kubeconfig) as client,
        run_website_operator(plane, framework, dns, tmp_path) as program,
    ):
        try:
            await Story(client, dns, namespace).play()
        except Exception as error:
            program.signal(15)
            ended = await program.end()
            error.add_note(f"{framework.name} said: {ended.output[-5000:]}{ended.errors[-5000:]}")
            raise
