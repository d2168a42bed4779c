"""Both servers with the same controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aioinformer.testing import APIServer
from tests.kubernetes.configuration import CONTROLLERS
from tests.kubernetes.controlplane import ControlPlane

from ..api import API
from ..clusters import EmbeddedCluster, KubernetesCluster


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    """The embedded server with the controllers that the real one has here, and no kubelet."""
    async with (
        APIServer(token="administrator", seed=1, control_plane=CONTROLLERS) as server,
        API(server.url, server.token, None) as api,
    ):
        cluster = EmbeddedCluster(server, api, tmp_path)
        cluster.namespace = await cluster.new_namespace()
        yield cluster


@pytest.fixture(scope="package")
def controller_manager(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The session's real server while kube-controller-manager runs beside it.

    It is ended after this folder, as others count on nothing being emptied, collected or released.
    """
    control_plane.start_controller_manager()
    yield control_plane
    control_plane.stop_controller_manager()


@pytest.fixture
async def real(controller_manager: ControlPlane, tmp_path: Path) -> AsyncIterator[KubernetesCluster]:
    """The session's real server, with the controllers."""
    context = controller_manager.ssl_context()
    async with API(controller_manager.url, controller_manager.token, context) as api:
        cluster = KubernetesCluster(controller_manager, api, tmp_path)
        cluster.namespace = await cluster.new_namespace()
        yield cluster
