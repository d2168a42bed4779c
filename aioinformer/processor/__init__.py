"""Processor and its listeners: one notification to every handler, each at its own pace."""

from .listener import ListenerState, ProcessorListener
from .mutation_detector import CacheMutationDetector
from .processor import Processor

__all__ = ["CacheMutationDetector", "ListenerState", "Processor", "ProcessorListener"]
