"""Run the same test with each kind of queue that an informer can have."""

from __future__ import annotations

from typing import get_args

import pytest

from aioinformer import SharedIndexInformer, SharedInformerFactory, new_informer
from aioinformer.controller import QueueName

QUEUES: tuple[QueueName, ...] = get_args(QueueName)


def use_queue(name: QueueName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this the default queue of informers."""
    for made_by in (SharedIndexInformer.__init__, SharedInformerFactory.__init__, new_informer):
        defaults = made_by.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "queue", name)
