"""Processor and its listeners: one notification to every handler, each at its own pace."""

from .backlog import BACKLOG_LIMIT, Backlog
from .listener import ProcessorListener
from .mutation_detector import CacheMutationDetector
from .processor import Processor
from .state import ListenerState

__all__ = [
    "BACKLOG_LIMIT",
    "Backlog",
    "CacheMutationDetector",
    "ListenerState",
    "Processor",
    "ProcessorListener",
]
