"""The pytest plugin of these tests: one real API server for the session.

tests/conftest.py takes it in with `pytest_plugins = ["tests.kubernetes.fixtures"]`.

Under pytest-xdist a session is a worker, and each worker that runs such a test starts a control plane of its
own (3 s, 0.3 GB). Marked `@pytest.mark.xdist_group("kubernetes")` and run with `--dist loadgroup` all of them
go to one worker.

Without Go such tests skip and say what to install; where `CI` is set in the environment they fail.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.go_build import build_before_tests, ensured
from tests.kubernetes.binaries import ensure_binaries, testdata
from tests.kubernetes.controlplane import ControlPlane

_unavailable = pytest.StashKey[Exception]()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds before the first test begins: the minutes of a cold build are no test's and no timeout's."""
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
    """For tests that start a ControlPlane of their own: built, or the test skips."""
    return ensured(ensure_binaries, request.config.stash.get(_unavailable, None))


@pytest.fixture(scope="session")
def kubernetes_testdata(kubernetes_binaries: Path) -> Path:
    """Kubernetes' own examples of every kind: ``HEAD/core.v1.Pod.json``, ``.pb`` …"""
    return testdata()


@pytest.fixture(scope="session")
def control_plane(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    """The session's API server, for tests of any event loop.

    Tests share it: work in a namespace of your own, and restart what you killed.
    """
    with ControlPlane() as running:
        yield running


@pytest.fixture
def kubernetes_namespace(control_plane: ControlPlane) -> str:
    """A namespace of the test's own. It stays: nobody is there to empty it."""
    return control_plane.create_namespace()
