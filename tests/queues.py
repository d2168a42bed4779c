"""Running the same test with each of the queues that an informer can have."""

from __future__ import annotations

from typing import get_args

import pytest

from aioinformer import SharedIndexInformer, SharedInformerFactory, new_informer
from aioinformer.controller import QueueName

QUEUES: tuple[QueueName, ...] = get_args(QueueName)


def use_queue(name: QueueName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this queue to all informers that do not say which they want."""
    for made_by in (SharedIndexInformer.__init__, SharedInformerFactory.__init__, new_informer):
        defaults = made_by.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "queue", name)
