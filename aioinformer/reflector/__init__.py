"""Reflector: list, then watch; on expiry list again into Replace."""

from .backoff import Backoff
from .reflector import Reflector, ReflectorOptions
from .state import Phase, ReflectorState

__all__ = ["Backoff", "Phase", "Reflector", "ReflectorOptions", "ReflectorState"]
