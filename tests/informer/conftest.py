"""Every test of an informer runs with each of the queues that it can have."""

from __future__ import annotations

import pytest

from aioinformer.controller import QueueName

from ..queues import QUEUES, use_queue


@pytest.fixture(params=QUEUES, autouse=True)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueName:
    """The queue of all informers that do not say."""
    name: QueueName = request.param
    use_queue(name, monkeypatch)
    return name
