"""Where users find each public name."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import aioinformer
from aioinformer import cache, errors, tracing, workqueue

ALL_ONCE_IN_THE_ROOT = """
AddNotification AioInformerError AlreadyExistsError AlreadyStartedError ApiError Backlog
BookmarkInfo BucketRateLimiter CacheMutatedError CacheMutationDetector CachedResource Client
ClientClosedError Compression Config ConfigError ConflictError Controller DamagedError DecodeError
DeleteNotification DeletedFinalStateUnknown Delta DeltaFIFO DeltaType EventRecorder
EventRecorderState ExplicitKey FIFOClosedError Field FilteringResourceEventHandler ForbiddenError
Health IdleTimeoutError IndexFuncError Indexer IndexerConflictError InformerError InformerEvents
InformerState InvalidError InvalidResultError ItemExponentialFailureRateLimiter
ItemFastSlowRateLimiter KeyFuncError KnownObjects KubeObject LabelSelector LeaderElector
LeaderElectorState LeadershipLostError ListOptions ListResult ListWatch ListenerState Lister
ListerWatcher MaxOfRateLimiter MutationCache NAMESPACE_INDEX NotFoundError Notification ObjectMeta
ObjectNotFoundError OwnerReference Phase Processor ProcessorListener Queue QueueHeldError
QueueShutDownError RateLimiter RealFIFO ReconcileError ReconcileTimeout Reflector
ReflectorBookmarkStore ReflectorOptions ReflectorState ReflectorStore RefusedError Registration
RejectedObjectError ReplacedAllInfo RequeueError Resource ResourceEventHandler
ResourceEventHandlerFuncs ResourceVersionUpdater RetryWatcher SelectorError SharedIndexInformer
SharedInformer SharedInformerFactory StageTimes StoppedError Store SyncAllInfo SyncTimeout
TerminalError TooManyRequestsError Trace Tracer TransformError Transport TransportError TypeMeta
UnknownIndexError UntilError UntilTimeout UpdateNotification VersionTimeout VeryShortWatchError
WatchClosedError WatchEvent WithMaxWaitRateLimiter WorkQueue WorkQueueError WorkQueueState
WrongEventLoopError add_finalizer contains_finalizer default_controller_rate_limiter
deletion_handling_meta_namespace_key_func field find_status_condition is_status_condition_false
is_status_condition_true meta_namespace_index_func meta_namespace_key_func new_informer
remove_finalizer remove_status_condition set_status_condition split_meta_namespace_key until
until_with_sync until_without_retry wait_for_cache_sync
"""
"""The names that ``aioinformer`` exported before ``aioinformer.cache`` existed."""


def test_every_name_that_the_root_once_had_still_has_a_home() -> None:
    homes = [aioinformer, cache, errors, workqueue, tracing]
    assert [
        name for name in ALL_ONCE_IN_THE_ROOT.split() if not any(name in home.__all__ for home in homes)
    ] == []


def test_root_stays_small() -> None:
    assert len(aioinformer.__all__) <= 70


@pytest.mark.parametrize("module", [cache, errors, workqueue, tracing], ids=lambda module: module.__name__)
def test_a_name_means_the_same_in_every_module(module: ModuleType) -> None:
    for name in set(module.__all__) & set(aioinformer.__all__):
        assert getattr(module, name) is getattr(aioinformer, name)


def test_importing_the_package_imports_no_client_library() -> None:
    code = """
import sys
import aioinformer, aioinformer.cache
loaded = {"aiohttp", "kubernetes", "kubernetes_asyncio", "yaml"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
