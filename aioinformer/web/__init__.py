"""Informers in web services: lifespans, probes, and feeds of changes for browsers."""

from .feed import ChangeFeed
from .selection import Selection
from .subscription import RESET, FeedEvent, Subscription

__all__ = ["RESET", "ChangeFeed", "FeedEvent", "Selection", "Subscription"]
