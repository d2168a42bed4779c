"""What tests of queues ask for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aioinformer.fifo import queue


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that a busy machine does not end in the middle of a test."""
    monkeypatch.setattr("aioinformer._core.coop.SLICE", 3600.0)


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Makes it so many seconds later for a queue, which measures by this alone how long a pop takes."""
    clock = 0.0

    def pass_time(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    monkeypatch.setattr(queue, "perf_counter", lambda: clock)
    return pass_time
