"""helm, which is built before the first test that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.go_build import build_before_tests, require_build

from .binaries import ensure_helm
from .charts import Helm

_unavailable = pytest.StashKey[Exception]()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build."""
    wanted = any("helm" in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    if error := build_before_tests(session, [ensure_helm]):
        session.config.stash[_unavailable] = error


@pytest.fixture
def helm(request: pytest.FixtureRequest, tmp_path: Path) -> Helm:
    """Return helm with folders of its own; or skip the test."""
    folder = require_build(ensure_helm, request.config.stash.get(_unavailable, None))
    return Helm(folder / "helm", tmp_path / "helm")
