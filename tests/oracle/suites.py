"""All suites, by name."""

from __future__ import annotations

from typing import Any

from .informer_suites import INFORMER, INFORMER_036
from .queue_suites import DELTA_FIFO, DELTA_FIFO_036, REAL_FIFO
from .store_suite import INDEXER
from .suite import Suite

SUITES: dict[str, Suite[Any]] = {
    suite.name: suite for suite in (DELTA_FIFO, DELTA_FIFO_036, REAL_FIFO, INDEXER, INFORMER, INFORMER_036)
}
