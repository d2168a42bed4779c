"""Kubernetes informers for asyncio: client-go's semantics, as coroutines.

The data's way, a folder a room, every import in this direction:

    listwatch ─► reflector ─► fifo ─► controller ─► processor ─► your handlers
                                          └─► store ─► lister ─► you

``informer`` puts the rooms together; the modules beside the folders are the vocabulary that they share.
"""

from .api import ListOptions, ListResult, TypeMeta, WatchEvent
from .controller import Config, Controller, new_informer
from .deltas import DeletedFinalStateUnknown, Delta, DeltaType
from .errors import (
    AioInformerError,
    AlreadyStartedError,
    ApiError,
    CacheMutatedError,
    ConfigError,
    DecodeError,
    FIFOClosedError,
    IdleTimeoutError,
    IndexerConflictError,
    IndexFuncError,
    InformerError,
    KeyFuncError,
    NotFoundError,
    QueueHeldError,
    RejectedObjectError,
    RequeueError,
    SelectorError,
    StoppedError,
    SyncTimeout,
    TransformError,
    TransportError,
    UnknownIndexError,
)
from .fifo import DeltaFIFO
from .finalizers import add_finalizer, contains_finalizer, remove_finalizer
from .handlers import FilteringResourceEventHandler, ResourceEventHandler, ResourceEventHandlerFuncs
from .informer import (
    InformerState,
    Registration,
    SharedIndexInformer,
    SharedInformer,
    SharedInformerFactory,
    wait_for_cache_sync,
)
from .keys import (
    ExplicitKey,
    deletion_handling_meta_namespace_key_func,
    meta_namespace_key_func,
    split_meta_namespace_key,
)
from .labels import LabelSelector
from .listwatch import Client, ListWatch, Transport
from .notifications import AddNotification, DeleteNotification, Notification, UpdateNotification
from .objects import KubeObject, ObjectMeta, OwnerReference
from .processor import CacheMutationDetector, ListenerState, Processor, ProcessorListener
from .protocols import KnownObjects, ListerWatcher, Queue, ReflectorStore
from .reflector import Phase, Reflector, ReflectorOptions, ReflectorState
from .store import NAMESPACE_INDEX, Indexer, Lister, Store, meta_namespace_index_func

__all__ = [
    "add_finalizer",
    "AddNotification",
    "AioInformerError",
    "AlreadyStartedError",
    "ApiError",
    "CacheMutatedError",
    "CacheMutationDetector",
    "Client",
    "Config",
    "ConfigError",
    "contains_finalizer",
    "Controller",
    "DecodeError",
    "DeletedFinalStateUnknown",
    "DeleteNotification",
    "deletion_handling_meta_namespace_key_func",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "ExplicitKey",
    "FIFOClosedError",
    "FilteringResourceEventHandler",
    "IdleTimeoutError",
    "Indexer",
    "IndexerConflictError",
    "IndexFuncError",
    "InformerError",
    "InformerState",
    "KeyFuncError",
    "KnownObjects",
    "KubeObject",
    "LabelSelector",
    "ListenerState",
    "Lister",
    "ListerWatcher",
    "ListOptions",
    "ListResult",
    "ListWatch",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "NAMESPACE_INDEX",
    "new_informer",
    "NotFoundError",
    "Notification",
    "ObjectMeta",
    "OwnerReference",
    "Phase",
    "Processor",
    "ProcessorListener",
    "Queue",
    "QueueHeldError",
    "Reflector",
    "ReflectorOptions",
    "ReflectorState",
    "ReflectorStore",
    "Registration",
    "RejectedObjectError",
    "remove_finalizer",
    "RequeueError",
    "ResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "SelectorError",
    "SharedIndexInformer",
    "SharedInformer",
    "SharedInformerFactory",
    "split_meta_namespace_key",
    "StoppedError",
    "Store",
    "SyncTimeout",
    "TransformError",
    "Transport",
    "TransportError",
    "TypeMeta",
    "UnknownIndexError",
    "UpdateNotification",
    "wait_for_cache_sync",
    "WatchEvent",
]

__version__ = "0.1.0"
