"""Build the suites' Go programs before the first test starts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.go_build import build_before_tests, require_build

from .suite import Suite
from .suites import SUITES

_unavailable = pytest.StashKey[Exception]()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    params = [callspec.params for item in session.items if (callspec := getattr(item, "callspec", None))]
    wanted = {name: SUITES[name].build for parameter in params if (name := parameter.get("suite")) in SUITES}
    if not wanted or session.config.option.collectonly:
        return
    builds = {build.name + build.cache.name: build for build in wanted.values()}
    if error := build_before_tests(session, [build.ensure for build in builds.values()]):
        session.config.stash[_unavailable] = error


@pytest.fixture
def suite(request: pytest.FixtureRequest) -> Suite[Any]:
    """Return the suite of a name, with its Go program built; or skip the test."""
    suite = SUITES[request.param]
    require_build(suite.build.ensure, request.config.stash.get(_unavailable, None))
    return suite
