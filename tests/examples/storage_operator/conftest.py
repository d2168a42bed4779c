"""The real server with the definitions, and the controllers that collect pods."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.api import API, DEFINITIONS
from tests.e2e.clusters import KubernetesCluster
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.probes import answers_ok, post_json

from . import objects

_PATIENCE = 20.0


@pytest.fixture(scope="package")
def controller_manager(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Begun once the definitions are there: the garbage collector looks for new ones twice a minute only."""
    for definition in objects.DEFINITIONS:
        _define(control_plane, definition)
    control_plane.start_controller_manager()
    yield control_plane
    control_plane.stop_controller_manager()


def _define(control_plane: ControlPlane, definition: objects.Object) -> None:
    ca_file, token = control_plane.ca_file, control_plane.token
    post_json(control_plane.url + DEFINITIONS.path(), definition, ca_file=ca_file, token=token)
    collection = f"{control_plane.url}/apis/{objects.API_VERSION}/{definition['spec']['names']['plural']}"
    deadline = time.monotonic() + _PATIENCE
    while not answers_ok(collection, ca_file=ca_file, token=token):
        assert time.monotonic() < deadline, f"{collection} is not served"
        time.sleep(0.05)


@pytest.fixture
async def real(controller_manager: ControlPlane, tmp_path: Path) -> AsyncIterator[KubernetesCluster]:
    """The real server."""
    context = controller_manager.ssl_context()
    async with API(controller_manager.url, controller_manager.token, context) as api:
        yield KubernetesCluster(controller_manager, api, tmp_path)
