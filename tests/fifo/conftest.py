"""What tests of queues ask for."""

from __future__ import annotations

import pytest


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that a busy machine does not end in the middle of a test."""
    monkeypatch.setattr("aioinformer.turns.TURN", 3600.0)
