"""The parts of an informer, for programs that put their own together (client-go ``tools/cache``)."""

from .controller import Config, Controller, new_informer
from .deltas import BookmarkInfo, DeletedFinalStateUnknown, Delta, DeltaType, ReplacedAllInfo, SyncAllInfo
from .fifo import DeltaFIFO, RealFIFO
from .handlers import FilteringResourceEventHandler, ResourceEventHandler, ResourceEventHandlerFuncs
from .informer import (
    InformerState,
    Registration,
    SharedIndexInformer,
    SharedInformer,
    SharedInformerFactory,
    wait_for_cache_sync,
)
from .listwatch import ListWatch
from .notifications import (
    AddNotification,
    DeleteNotification,
    Notification,
    UndecodableNotification,
    UpdateNotification,
)
from .objects.keys import (
    ExplicitKey,
    deletion_handling_meta_namespace_key_func,
    meta_namespace_key_func,
    split_meta_namespace_key,
)
from .objects.meta import ListResult, TypeMeta
from .objects.undecodable import UndecodableObject
from .processor import Backlog, CacheMutationDetector, ListenerState, Processor, ProcessorListener
from .protocols import (
    KnownObjects,
    ListerWatcher,
    Queue,
    ReflectorBookmarkStore,
    ReflectorStore,
    ResourceVersionUpdater,
)
from .reflector import Phase, Reflector, ReflectorOptions, ReflectorState
from .store import NAMESPACE_INDEX, Indexer, Lister, MutationCache, Store, meta_namespace_index_func

__all__ = [
    "NAMESPACE_INDEX",
    "AddNotification",
    "Backlog",
    "BookmarkInfo",
    "CacheMutationDetector",
    "Config",
    "Controller",
    "DeleteNotification",
    "DeletedFinalStateUnknown",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "ExplicitKey",
    "FilteringResourceEventHandler",
    "Indexer",
    "InformerState",
    "KnownObjects",
    "ListResult",
    "ListWatch",
    "ListenerState",
    "Lister",
    "ListerWatcher",
    "MutationCache",
    "Notification",
    "Phase",
    "Processor",
    "ProcessorListener",
    "Queue",
    "RealFIFO",
    "Reflector",
    "ReflectorBookmarkStore",
    "ReflectorOptions",
    "ReflectorState",
    "ReflectorStore",
    "Registration",
    "ReplacedAllInfo",
    "ResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "ResourceVersionUpdater",
    "SharedIndexInformer",
    "SharedInformer",
    "SharedInformerFactory",
    "Store",
    "SyncAllInfo",
    "TypeMeta",
    "UndecodableNotification",
    "UndecodableObject",
    "UpdateNotification",
    "deletion_handling_meta_namespace_key_func",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "new_informer",
    "split_meta_namespace_key",
    "wait_for_cache_sync",
]
