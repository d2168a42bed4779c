"""Every test of an informer runs with each kind of queue."""

from __future__ import annotations

import pytest

from aioinformer.controller import QueueName

from ..queues import QUEUES, use_queue
from ..samples import SMALL
from . import subject


@pytest.fixture(params=QUEUES, autouse=True)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueName:
    """Select the queue of all informers without a ``queue`` argument."""
    name: QueueName = request.param
    use_queue(name, monkeypatch)
    return name


@pytest.fixture(params=[{}, {"compress": SMALL}], ids=["plain", "compressed"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select the storage form of objects in ``subject.informer``; it must not change any behaviour."""
    monkeypatch.setattr(subject, "KEPT", request.param)
