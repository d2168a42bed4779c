"""The real server with the definitions, and the controllers that collect pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.api import API
from tests.e2e.clusters import KubernetesCluster
from tests.kubernetes.controlplane import ControlPlane

from . import objects


@pytest.fixture(scope="package")
def controller_manager(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Begun once the definitions are there: the garbage collector looks for new ones twice a minute only."""
    for definition in objects.DEFINITIONS:
        control_plane.define(definition)
    control_plane.start_controller_manager()
    yield control_plane
    control_plane.stop_controller_manager()


@pytest.fixture
async def real(controller_manager: ControlPlane, tmp_path: Path) -> AsyncIterator[KubernetesCluster]:
    """The real server."""
    context = controller_manager.ssl_context()
    async with API(controller_manager.url, controller_manager.token, context) as api:
        yield KubernetesCluster(controller_manager, api, tmp_path)
