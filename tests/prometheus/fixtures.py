"""The pytest plugin of these tests: promtool, built once. Without Go such tests skip; if the environment has `CI`, they
fail."""

from pathlib import Path

import pytest

from tests.go_build import build_for_fixture, require_for_fixture
from tests.prometheus.promtool import PROMTOOL


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build."""
    build_for_fixture(session, "promtool", PROMTOOL)


@pytest.fixture(scope="session")
def promtool(request: pytest.FixtureRequest) -> Path:
    """Return the folder of promtool, or skip the test."""
    return require_for_fixture(request.config, PROMTOOL)
