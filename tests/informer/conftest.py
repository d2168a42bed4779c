"""Every test of an informer runs with each of the queues that it can have."""

from __future__ import annotations

import pytest

from aioinformer.controller import QueueName

from ..queues import QUEUES, use_queue
from ..samples import SMALL
from . import subject


@pytest.fixture(params=QUEUES, autouse=True)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueName:
    """The queue of all informers that do not say."""
    name: QueueName = request.param
    use_queue(name, monkeypatch)
    return name


@pytest.fixture(params=[{}, {"compress": SMALL}], ids=["plain", "compressed"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the objects of ``subject.informer`` are kept, which nothing else may depend on."""
    monkeypatch.setattr(subject, "KEPT", request.param)
