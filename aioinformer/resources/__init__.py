"""Reading and changing objects at the API server, and reading one's own writes from a cache."""

from .cached import CachedResource
from .resource import Resource
from .writes import PropagationPolicy, Writes

__all__ = ["CachedResource", "Resource", "Writes", "PropagationPolicy"]
