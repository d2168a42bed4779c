"""actionlint, which is built before the first test that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.go_build import build_before_tests, require_build

from .binaries import ensure_actionlint

_unavailable = pytest.StashKey[Exception]()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test starts, so that no test's timeout includes a cold build."""
    wanted = any("actionlint" in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    if error := build_before_tests(session, [ensure_actionlint]):
        session.config.stash[_unavailable] = error


@pytest.fixture
def actionlint(request: pytest.FixtureRequest) -> Path:
    """Return the program; or skip the test."""
    return require_build(ensure_actionlint, request.config.stash.get(_unavailable, None)) / "actionlint"
