"""Read and write objects at the API server, and read from a cache that includes one's own writes."""

from .cached import CachedResource
from .resource import Resource
from .writes import PropagationPolicy, Writes

__all__ = ["CachedResource", "Resource", "Writes", "PropagationPolicy"]
