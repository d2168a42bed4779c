"""Fixtures for tests of queues."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aioinformer.fifo import queue


@pytest.fixture
def long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices so long that they do not end within a test on a busy machine."""
    monkeypatch.setattr("aioinformer._core.coop.SLICE", 3600.0)


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that advances the clock with which a queue measures its pops."""
    clock = 0.0

    def pass_time(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    monkeypatch.setattr(queue, "perf_counter", lambda: clock)
    return pass_time
