"""Kubernetes informers for asyncio: client-go's semantics, as coroutines.

The data's way, a folder a room, every import in this direction:

    listwatch ─► reflector ─► fifo ─► controller ─► processor ─► your handlers
                                          └─► store ─► lister ─► you

``informer`` puts the rooms together; the modules beside the folders are the vocabulary that they share.
"""

from .client import Client, Transport
from .controller import Config, Controller, new_informer
from .deltas import BookmarkInfo, DeletedFinalStateUnknown, Delta, DeltaType, ReplacedAllInfo, SyncAllInfo
from .errors import *  # noqa: F403 - each of them is public
from .events import EventRecorder, EventRecorderState
from .fifo import DeltaFIFO, RealFIFO
from .handlers import FilteringResourceEventHandler, ResourceEventHandler, ResourceEventHandlerFuncs
from .informer import (
    Health,
    InformerState,
    Registration,
    SharedIndexInformer,
    SharedInformer,
    SharedInformerFactory,
    wait_for_cache_sync,
)
from .informer.compression import Compression
from .leaderelection import LeaderElector, LeaderElectorState
from .listwatch import ListWatch
from .notifications import AddNotification, DeleteNotification, Notification, UpdateNotification
from .objects.fields import Field, field
from .objects.finalizers import add_finalizer, contains_finalizer, remove_finalizer
from .objects.keys import (
    ExplicitKey,
    deletion_handling_meta_namespace_key_func,
    meta_namespace_key_func,
    split_meta_namespace_key,
)
from .objects.kube_object import KubeObject, ObjectMeta, OwnerReference
from .objects.labels import LabelSelector
from .objects.meta import (
    ListOptions,
    ListResult,
    TypeMeta,
    WatchEvent,
)
from .objects.status_conditions import (
    find_status_condition,
    is_status_condition_false,
    is_status_condition_true,
    remove_status_condition,
    set_status_condition,
)
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
from .resources import (
    CachedResource,
    Resource,
)
from .store import NAMESPACE_INDEX, Indexer, Lister, MutationCache, Store, meta_namespace_index_func
from .tracing import StageTimes, Trace, Tracer
from .watchtools import InformerEvents, RetryWatcher, until, until_with_sync, until_without_retry
from .workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    WorkQueue,
    WorkQueueState,
    default_controller_rate_limiter,
)

__all__ = [
    "add_finalizer",
    "AddNotification",
    "Backlog",
    "BookmarkInfo",
    "BucketRateLimiter",
    "CachedResource",
    "CacheMutationDetector",
    "Client",
    "Compression",
    "Config",
    "contains_finalizer",
    "Controller",
    "default_controller_rate_limiter",
    "DeletedFinalStateUnknown",
    "DeleteNotification",
    "deletion_handling_meta_namespace_key_func",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "EventRecorder",
    "EventRecorderState",
    "ExplicitKey",
    "field",
    "Field",
    "FilteringResourceEventHandler",
    "find_status_condition",
    "Indexer",
    "InformerEvents",
    "Health",
    "InformerState",
    "is_status_condition_false",
    "is_status_condition_true",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "KnownObjects",
    "KubeObject",
    "LabelSelector",
    "LeaderElector",
    "LeaderElectorState",
    "ListenerState",
    "Lister",
    "ListerWatcher",
    "ListOptions",
    "ListResult",
    "ListWatch",
    "MaxOfRateLimiter",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "MutationCache",
    "NAMESPACE_INDEX",
    "new_informer",
    "Notification",
    "ObjectMeta",
    "OwnerReference",
    "Phase",
    "Processor",
    "ProcessorListener",
    "Queue",
    "RateLimiter",
    "RealFIFO",
    "Reflector",
    "ReflectorBookmarkStore",
    "ReflectorOptions",
    "ReflectorState",
    "ReflectorStore",
    "ResourceVersionUpdater",
    "Registration",
    "remove_finalizer",
    "remove_status_condition",
    "ReplacedAllInfo",
    "Resource",
    "ResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "RetryWatcher",
    "set_status_condition",
    "SharedIndexInformer",
    "SharedInformer",
    "SharedInformerFactory",
    "split_meta_namespace_key",
    "StageTimes",
    "Store",
    "SyncAllInfo",
    "Trace",
    "Tracer",
    "Transport",
    "TypeMeta",
    "until",
    "until_with_sync",
    "until_without_retry",
    "UpdateNotification",
    "wait_for_cache_sync",
    "WatchEvent",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "WorkQueueState",
]
# errors.__all__, by name: mypy does not see through that.
__all__ += [
    "AioInformerError",
    "AlreadyExistsError",
    "AlreadyStartedError",
    "ApiError",
    "CacheMutatedError",
    "ClientClosedError",
    "ConfigError",
    "ConflictError",
    "DamagedError",
    "DecodeError",
    "FIFOClosedError",
    "ForbiddenError",
    "IdleTimeoutError",
    "IndexFuncError",
    "IndexerConflictError",
    "InformerError",
    "InvalidError",
    "InvalidResultError",
    "KeyFuncError",
    "LeadershipLostError",
    "NotFoundError",
    "ObjectNotFoundError",
    "QueueHeldError",
    "QueueShutDownError",
    "ReconcileError",
    "ReconcileTimeout",
    "RefusedError",
    "RejectedObjectError",
    "RequeueError",
    "SelectorError",
    "StoppedError",
    "SyncTimeout",
    "TerminalError",
    "TooManyRequestsError",
    "TransformError",
    "TransportError",
    "UnknownIndexError",
    "UntilError",
    "UntilTimeout",
    "VersionTimeout",
    "VeryShortWatchError",
    "WatchClosedError",
    "WorkQueueError",
    "WrongEventLoopError",
]

__version__ = "0.1.0"
