"""actionlint, which is built before the first test that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.go_build import build_for_fixture, require_for_fixture

from .binaries import ACTIONLINT


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build."""
    build_for_fixture(session, "actionlint", ACTIONLINT)


@pytest.fixture
def actionlint(request: pytest.FixtureRequest) -> Path:
    """Return the program; or skip the test."""
    return require_for_fixture(request.config, ACTIONLINT) / "actionlint"
