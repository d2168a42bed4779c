"""Cases for ``tests/test_cancellation.py``: each public coroutine in its world."""

from . import informer, processor, queues, reading, sockets, watchtools  # each adds its cases

__all__ = ["informer", "processor", "queues", "reading", "sockets", "watchtools"]
