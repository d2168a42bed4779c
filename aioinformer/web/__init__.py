"""Informers in web services: lifespans, probes, and feeds of changes for browsers."""

from .asgi import ChangeStream, Probes
from .feed import ChangeFeed
from .selection import Selection
from .service import WebInformer, WebInformers
from .subscription import RESET, FeedEvent, Subscription

__all__ = [
    "RESET",
    "ChangeFeed",
    "ChangeStream",
    "FeedEvent",
    "Probes",
    "Selection",
    "Subscription",
    "WebInformer",
    "WebInformers",
]
