"""A busy machine must not make answers of the embedded server slow."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.doctor.connection.SLOW", 60.0)
    monkeypatch.setattr("aioinformer.doctor.lists.SLOW", 60.0)
