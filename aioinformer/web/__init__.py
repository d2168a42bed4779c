"""Informers in web services: lifespans, probes, and feeds of changes for browsers."""

from .asgi import ChangeStream
from .feed import ChangeFeed
from .service import WebInformer, WebInformers
from .subscription import RESET, FeedEvent, Subscription

__all__ = [
    "RESET",
    "ChangeFeed",
    "ChangeStream",
    "FeedEvent",
    "Subscription",
    "WebInformer",
    "WebInformers",
]
