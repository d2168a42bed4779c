"""The limit that tests/conftest.py sets for async tests."""

from __future__ import annotations

import pytest

from tests.conftest import _limit_of


def test_an_async_test_may_take_100_seconds(request: pytest.FixtureRequest) -> None:
    assert _limit_of(request.node) == 100


@pytest.mark.timeout(400)
def test_a_marker_sets_another_limit(request: pytest.FixtureRequest) -> None:
    assert _limit_of(request.node) == 380
