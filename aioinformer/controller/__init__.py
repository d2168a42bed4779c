"""Controller: a reflector, a queue, and the loop that processes the queue."""

from .controller import Config, Controller
from .deltas import apply_in_steps
from .new_informer import new_informer
from .queues import QueueName, make_queue, require_queue

__all__ = [
    "Config",
    "Controller",
    "QueueName",
    "apply_in_steps",
    "make_queue",
    "new_informer",
    "require_queue",
]
