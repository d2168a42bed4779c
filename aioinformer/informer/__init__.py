"""SharedIndexInformer and its factory: the stages of the pipeline, connected."""

from .factory import SharedInformerFactory
from .probes import Health
from .protocol import SharedInformer
from .registration import Registration
from .shared_informer import SharedIndexInformer
from .state import InformerState
from .wait import wait_for_cache_sync

__all__ = [
    "Health",
    "InformerState",
    "Registration",
    "SharedIndexInformer",
    "SharedInformer",
    "SharedInformerFactory",
    "wait_for_cache_sync",
]
