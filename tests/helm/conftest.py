"""helm, which is built before the first test that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.go_build import build_for_fixture, require_for_fixture

from .binaries import HELM
from .charts import Helm


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build."""
    build_for_fixture(session, "helm", HELM)


@pytest.fixture
def helm(request: pytest.FixtureRequest, tmp_path: Path) -> Helm:
    """Return helm with folders of its own; or skip the test."""
    folder = require_for_fixture(request.config, HELM)
    return Helm(folder / "helm", tmp_path / "helm")
