"""store/store.py: the version of the last write. Corner C38."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import DeletedFinalStateUnknown, Indexer, KubeObject, Store
from aioinformer.cache import ExplicitKey

from ..samples import Meta, Pod, pod, pod_dict

MAKERS: dict[str, Callable[[str], Any]] = {
    "KubeObject": lambda version: pod(version=version),
    "dict": lambda version: pod_dict(version=version),
    "Struct": lambda version: Pod(Meta("a", "ns", version)),
}


@pytest.fixture(params=[Store, Indexer])
def store(request: pytest.FixtureRequest) -> Store[Any]:
    made: Store[Any] = request.param()
    return made


@pytest.mark.parametrize("make", [*MAKERS.values()], ids=[*MAKERS])
def test_each_write_sets_the_version_even_if_lower_c38(store: Store[Any], make: Callable[[str], Any]) -> None:
    """C38 TestThreadSafeStoreRV, TestStoreResourceVersion."""
    assert store.last_store_sync_resource_version == ""
    for write, version in ((store.add, "7"), (store.update, "9"), (store.update, "8"), (store.delete, "11")):
        write(make(version))
        assert store.last_store_sync_resource_version == version
    store.delete(make("12"))
    assert store.last_store_sync_resource_version == "12", "also for an object that is not stored"


def test_list_and_bookmark_set_the_version_c38(store: Store[KubeObject]) -> None:
    store.replace([pod(version="30")], "20")
    assert store.last_store_sync_resource_version == "20"
    store.bookmark("25")
    assert store.last_store_sync_resource_version == "25"
    store.bookmark("24")
    assert store.last_store_sync_resource_version == "24"
    store.replace([])
    assert store.last_store_sync_resource_version == "", "unknown"


def test_objects_without_version_keep_the_version_c38(store: Store[Any]) -> None:
    """C38 TestStoreResourceVersionWithNonMetaTransform."""
    by_id: Store[Any] = type(store)(lambda obj: obj.get("id", "a"))
    by_id.add(pod_dict(version="5"))
    for version_less in ({"id": "x"}, {"id": "y", "metadata": {}}):
        by_id.add(version_less)
        by_id.delete(version_less)
    by_id.delete(ExplicitKey("a"))
    by_id.delete(DeletedFinalStateUnknown("a", pod_dict(version="9")))
    assert by_id.last_store_sync_resource_version == "5"


def test_reads_and_resync_keep_the_version_c38(store: Store[KubeObject]) -> None:
    store.add(pod(version="5"))
    store.list()
    store.get(pod(version="9"))
    store.resync()
    assert store.last_store_sync_resource_version == "5"
