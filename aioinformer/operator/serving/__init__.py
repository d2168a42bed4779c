"""A small HTTP server for a Manager: ``/healthz``, ``/readyz``, ``/metrics`` and ``/debug``."""

from .server import Serving
from .snapshot import Debug, ProcessState
from .tokens import Tokens

__all__ = ["Debug", "ProcessState", "Serving", "Tokens"]
