"""Kubernetes informers for asyncio, with client-go's semantics.

This module has what most programs need. ``aioinformer.cache`` has the parts of the pipeline, ``aioinformer.errors`` all
errors. Each package is one stage, and the packages import each other in the direction of the data:

    listwatch ─► reflector ─► fifo ─► controller ─► processor ─► your handlers
                                          └─► store ─► lister ─► your reads

``informer`` connects the stages.
"""

from .client import Client, Transport
from .controller import new_informer
from .deltas import DeletedFinalStateUnknown
from .errors import (
    AioInformerError,
    AlreadyExistsError,
    ApiError,
    ConfigError,
    ConflictError,
    DecodeError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    StoppedError,
    SyncTimeout,
    TerminalError,
    TransportError,
)
from .events import EventRecorder, EventRecorderState
from .fifo import DeltaFIFO, RealFIFO
from .handlers import FilteringResourceEventHandler, ResourceEventHandler, ResourceEventHandlerFuncs
from .informer import (
    Health,
    Registration,
    SharedIndexInformer,
    SharedInformer,
    SharedInformerFactory,
    wait_for_cache_sync,
)
from .informer.compression import Compression
from .leaderelection import LeaderElector, LeaderElectorState
from .listwatch import ListWatch
from .objects.fields import Field, field
from .objects.finalizers import add_finalizer, contains_finalizer, remove_finalizer
from .objects.keys import (
    deletion_handling_meta_namespace_key_func,
    meta_namespace_key_func,
    split_meta_namespace_key,
)
from .objects.kube_object import KubeObject, ObjectMeta, OwnerReference
from .objects.labels import LabelSelector
from .objects.meta import ListOptions, WatchEvent
from .objects.status_conditions import (
    find_status_condition,
    is_status_condition_false,
    is_status_condition_true,
    remove_status_condition,
    set_ready_condition,
    set_status_condition,
)
from .objects.undecodable import UndecodableObject
from .reflector import Reflector
from .resources import CachedResource, Resource
from .store import Indexer, Lister, Store
from .watchtools import InformerEvents, RetryWatcher, until, until_with_sync, until_without_retry
from .workqueue import WorkQueue

__all__ = [
    "AioInformerError",
    "AlreadyExistsError",
    "ApiError",
    "CachedResource",
    "Client",
    "Compression",
    "ConfigError",
    "ConflictError",
    "DecodeError",
    "DeletedFinalStateUnknown",
    "DeltaFIFO",
    "EventRecorder",
    "EventRecorderState",
    "Field",
    "FilteringResourceEventHandler",
    "ForbiddenError",
    "Health",
    "Indexer",
    "InformerEvents",
    "InvalidError",
    "KubeObject",
    "LabelSelector",
    "LeaderElector",
    "LeaderElectorState",
    "ListOptions",
    "ListWatch",
    "Lister",
    "NotFoundError",
    "ObjectMeta",
    "OwnerReference",
    "RealFIFO",
    "Reflector",
    "Registration",
    "Resource",
    "ResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "RetryWatcher",
    "SharedIndexInformer",
    "SharedInformer",
    "SharedInformerFactory",
    "StoppedError",
    "Store",
    "SyncTimeout",
    "TerminalError",
    "Transport",
    "TransportError",
    "UndecodableObject",
    "WatchEvent",
    "WorkQueue",
    "add_finalizer",
    "contains_finalizer",
    "deletion_handling_meta_namespace_key_func",
    "field",
    "find_status_condition",
    "is_status_condition_false",
    "is_status_condition_true",
    "meta_namespace_key_func",
    "new_informer",
    "remove_finalizer",
    "remove_status_condition",
    "set_ready_condition",
    "set_status_condition",
    "split_meta_namespace_key",
    "until",
    "until_with_sync",
    "until_without_retry",
    "wait_for_cache_sync",
]

__version__ = "0.1.0"
