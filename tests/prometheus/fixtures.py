"""The pytest plugin of these tests: promtool, built once. Without Go such tests skip; if the environment has `CI`, they
fail."""

from pathlib import Path

import pytest

from tests.go_build import build_before_tests, require_build
from tests.prometheus.promtool import ensure_promtool

_unavailable = pytest.StashKey[Exception]()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build."""
    wanted = any("promtool" in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    if error := build_before_tests(session, [ensure_promtool]):
        session.config.stash[_unavailable] = error


@pytest.fixture(scope="session")
def promtool(request: pytest.FixtureRequest) -> Path:
    """Return the folder of promtool, or skip the test."""
    return require_build(ensure_promtool, request.config.stash.get(_unavailable, None))
