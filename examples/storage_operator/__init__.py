"""An operator for shared storage: it keeps a Cave while pods mount it. See README.md."""

from .main import operator

__all__ = ["operator"]
