"""Cases for ``tests/test_cancellation.py``: each public coroutine in its world."""

from . import (
    informer,
    processor,
    queues,
    reading,
    resources,
    sockets,
    store,
    watchtools,
    workqueues,
)

__all__ = [
    "informer",
    "processor",
    "queues",
    "reading",
    "resources",
    "sockets",
    "store",
    "watchtools",
    "workqueues",
]
