"""Controller: a reflector, a queue, and the loop that works the queue off."""

from .controller import Config, Controller
from .deltas import apply_deltas
from .new_informer import new_informer

__all__ = ["Config", "Controller", "apply_deltas", "new_informer"]
