"""A real server with what the chart needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.manifests.installing import define_foreign_kinds
from tests.helm.charts import Helm
from tests.helm.conftest import helm as helm
from tests.helm.conftest import pytest_collection_finish as pytest_collection_finish
from tests.kubernetes.configuration import CONTROLLERS
from tests.kubernetes.controlplane import ControlPlane

from .installed import Installed, installed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures", action="store_true", help="inject all failures into the website operator")


@pytest.fixture(scope="module")
def plane(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    """Run a server of its own, because failures stop it."""
    with ControlPlane() as running:
        running.start_controller_manager((*CONTROLLERS, "clusterrole-aggregation-controller"))
        yield running


@pytest.fixture
async def release(plane: ControlPlane, helm: Helm, tmp_path: Path) -> AsyncIterator[Installed]:
    """Yield what installs the operator."""
    await define_foreign_kinds(plane)
    async with installed(plane, helm, tmp_path) as running:
        yield running
