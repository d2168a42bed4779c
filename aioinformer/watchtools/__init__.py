"""Watch without a cache, and wait for a condition (client-go ``tools/watch``)."""

from ..reflector import RetryWatcher
from .informer_events import InformerEvent, InformerEvents
from .until import until, until_with_sync, until_without_retry

__all__ = [
    "InformerEvent",
    "InformerEvents",
    "RetryWatcher",
    "until",
    "until_with_sync",
    "until_without_retry",
]
