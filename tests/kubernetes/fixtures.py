"""The pytest plugin of these tests: one real API server for the session.

tests/conftest.py loads it with `pytest_plugins = ["tests.kubernetes.fixtures"]`.

Each pytest-xdist worker that runs such a test starts a control plane (3 s, 0.3 GB). With the mark
`@pytest.mark.xdist_group("kubernetes")` and `--dist loadgroup` all such tests run in one worker.

Without Go such tests skip and say what to install; if the environment has `CI`, they fail.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.go_build import build_before_tests, require_build
from tests.kubernetes.binaries import ensure_binaries, testdata
from tests.kubernetes.controlplane import ControlPlane

_unavailable = pytest.StashKey[Exception]()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build."""
    wanted = any(
        "kubernetes_binaries" in getattr(item, "fixturenames", ()) or item.get_closest_marker("kubernetes")
        for item in session.items
    )
    if not wanted or session.config.option.collectonly:
        return
    if error := build_before_tests(session, [ensure_binaries]):
        session.config.stash[_unavailable] = error


@pytest.fixture(scope="session")
def kubernetes_binaries(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the binaries, for tests that start their own ControlPlane; or skip the test."""
    return require_build(ensure_binaries, request.config.stash.get(_unavailable, None))


@pytest.fixture(scope="session")
def kubernetes_testdata(kubernetes_binaries: Path) -> Path:
    """Return the folder of Kubernetes' own examples of every kind: ``HEAD/core.v1.Pod.json``, ``.pb`` …"""
    return testdata()


@pytest.fixture(scope="session")
def control_plane(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    """Run the session's API server, for tests on any event loop.

    Tests share it: work in your own namespace, and restart the servers that you kill.
    """
    with ControlPlane() as running:
        yield running


@pytest.fixture(scope="session")
def sharded_control_plane(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    """Run another API server, with sharded lists and watches. Tests share it, as they do ``control_plane``."""
    with ControlPlane(feature_gates={"ShardedListAndWatch": True}) as running:
        yield running


@pytest.fixture
def kubernetes_namespace(control_plane: ControlPlane) -> str:
    """Create a namespace for the test. It remains, because no controller empties it."""
    return control_plane.create_namespace()
