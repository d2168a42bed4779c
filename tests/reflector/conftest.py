"""The delays that the tests of the reflector count on, whatever the package's are; ``test_backoff.py`` tests those."""

from __future__ import annotations

import pytest

from aioinformer.reflector import Backoff


@pytest.fixture(autouse=True)
def known_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let delays double from 0.8 to 30 s."""
    for name, value in (("INITIAL", 0.8), ("FACTOR", 2.0), ("CAP", 30.0)):
        monkeypatch.setattr(Backoff, name, value)
