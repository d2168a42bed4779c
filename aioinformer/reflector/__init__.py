"""Reflector: list, then watch; on expiry list again into Replace."""

from .backoff import Backoff
from .options import ReflectorOptions
from .reflector import Reflector
from .state import Phase, ReflectorState

__all__ = ["Backoff", "Phase", "Reflector", "ReflectorOptions", "ReflectorState"]
