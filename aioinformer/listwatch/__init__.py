"""One collection of an API server as bytes: list bodies, watch events, selectors, ``ListWatch``."""

from .list_watch import ListWatch

__all__ = ["ListWatch"]
