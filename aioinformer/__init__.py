"""Kubernetes informers for asyncio: client-go's semantics, as coroutines.

The data's way, a folder a room, every import in this direction:

    listwatch ─► reflector ─► fifo ─► controller ─► processor ─► your handlers
                                          └─► store ─► lister ─► you

``informer`` puts the rooms together; the modules beside the folders are the vocabulary that they share.
"""

from .api import ListOptions, ListResult, TypeMeta, WatchEvent
from .controller import Config, Controller, new_informer
from .deltas import BookmarkInfo, DeletedFinalStateUnknown, Delta, DeltaType, ReplacedAllInfo, SyncAllInfo
from .errors import (
    AioInformerError,
    AlreadyStartedError,
    ApiError,
    CacheMutatedError,
    ClientClosedError,
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
    UntilError,
    UntilTimeout,
    VersionTimeout,
    WatchClosedError,
    WrongEventLoopError,
)
from .fifo import DeltaFIFO, RealFIFO
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
from .processor import Backlog, CacheMutationDetector, ListenerState, Processor, ProcessorListener
from .protocols import KnownObjects, ListerWatcher, Queue, ReflectorBookmarkStore, ReflectorStore
from .reflector import Phase, Reflector, ReflectorOptions, ReflectorState
from .store import NAMESPACE_INDEX, Indexer, Lister, MutationCache, Store, meta_namespace_index_func
from .watchtools import InformerEvents, RetryWatcher, until, until_with_sync, until_without_retry

__all__ = [
    "add_finalizer",
    "AddNotification",
    "AioInformerError",
    "AlreadyStartedError",
    "ApiError",
    "Backlog",
    "BookmarkInfo",
    "CacheMutatedError",
    "CacheMutationDetector",
    "Client",
    "ClientClosedError",
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
    "InformerEvents",
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
    "MutationCache",
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
    "RealFIFO",
    "Reflector",
    "ReflectorBookmarkStore",
    "ReflectorOptions",
    "ReflectorState",
    "ReflectorStore",
    "Registration",
    "RejectedObjectError",
    "remove_finalizer",
    "ReplacedAllInfo",
    "RequeueError",
    "RetryWatcher",
    "ResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "SelectorError",
    "SharedIndexInformer",
    "SharedInformer",
    "SharedInformerFactory",
    "split_meta_namespace_key",
    "StoppedError",
    "Store",
    "SyncAllInfo",
    "SyncTimeout",
    "TransformError",
    "Transport",
    "TransportError",
    "TypeMeta",
    "UnknownIndexError",
    "until",
    "until_with_sync",
    "until_without_retry",
    "UntilError",
    "UntilTimeout",
    "UpdateNotification",
    "VersionTimeout",
    "wait_for_cache_sync",
    "WatchClosedError",
    "WatchEvent",
    "WrongEventLoopError",
]

__version__ = "0.1.0"
