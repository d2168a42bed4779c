"""Finalizers of objects."""

from __future__ import annotations

import pytest

from tests.samples import configmap

from ..api import CONFIGMAPS, JSON_PATCH, Object
from ..clusters import Cluster
from ..definitions import CAVE_DEFINITION, CAVES, cave
from .waiting import delete, drop_finalizer, finalizers, find, in_own

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # no code of ours asks

OURS, THEIRS = "example.com/ours", "example.com/theirs"


def config_map_held_by(name: str, *by: str) -> Object:
    obj = configmap(name)
    obj["metadata"]["finalizers"] = list(by)
    return obj


async def test_each_takes_off_its_own(cluster: Cluster) -> None:
    await cluster.create(CONFIGMAPS, config_map_held_by("a", THEIRS, OURS))
    left = await delete(cluster, CONFIGMAPS, "a")
    assert finalizers(left) == [THEIRS, OURS]
    left = await drop_finalizer(cluster, CONFIGMAPS, "a", OURS)
    assert finalizers(left) == [THEIRS]
    last = await drop_finalizer(cluster, CONFIGMAPS, "a", THEIRS)
    assert finalizers(last) == []
    assert await find(cluster, CONFIGMAPS, "a") is None


async def test_none_can_be_added_to_what_is_being_deleted(cluster: Cluster) -> None:
    await cluster.create(CONFIGMAPS, config_map_held_by("a", THEIRS))
    await delete(cluster, CONFIGMAPS, "a")
    patch = [{"op": "add", "path": "/metadata/finalizers/-", "value": OURS}]
    refused = await cluster.api.ask("PATCH", in_own(cluster, CONFIGMAPS, "a"), patch, content_type=JSON_PATCH)
    assert refused.status == 422
    assert "no new finalizers can be added if the object is being deleted" in refused.body["message"]
    await drop_finalizer(cluster, CONFIGMAPS, "a", THEIRS)


async def test_a_patch_that_names_its_finalizer_takes_off_no_other(cluster: Cluster) -> None:
    """A patch from an older state is refused if another finalizer is at its position."""
    await cluster.create(CONFIGMAPS, config_map_held_by("a", THEIRS, OURS))
    await drop_finalizer(cluster, CONFIGMAPS, "a", THEIRS)
    path = "/metadata/finalizers/0"
    patch = [{"op": "test", "path": path, "value": THEIRS}, {"op": "remove", "path": path}]
    refused = await cluster.api.ask("PATCH", in_own(cluster, CONFIGMAPS, "a"), patch, content_type=JSON_PATCH)
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    left = await find(cluster, CONFIGMAPS, "a")
    assert left is not None
    assert finalizers(left) == [OURS]
    await drop_finalizer(cluster, CONFIGMAPS, "a", OURS)


async def test_a_merge_patch_is_safe_with_the_version_only(cluster: Cluster) -> None:
    """It replaces the whole list; without a resourceVersion it would remove finalizers added meanwhile."""
    old = await cluster.create(CONFIGMAPS, config_map_held_by("a", OURS))
    await cluster.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": [OURS, THEIRS]}})
    version = old["metadata"]["resourceVersion"]
    refused = await cluster.api.ask(
        "PATCH",
        in_own(cluster, CONFIGMAPS, "a"),
        {"metadata": {"finalizers": [], "resourceVersion": version}},
        content_type="application/merge-patch+json",
    )
    assert refused.status == 409
    left = await find(cluster, CONFIGMAPS, "a")
    assert left is not None
    assert finalizers(left) == [OURS, THEIRS]


async def test_removing_a_finalizer_of_a_deleted_object(cluster: Cluster) -> None:
    await cluster.create(CONFIGMAPS, config_map_held_by("a", OURS))
    await delete(cluster, CONFIGMAPS, "a")
    await drop_finalizer(cluster, CONFIGMAPS, "a", OURS)
    path = "/metadata/finalizers/0"
    patch = [{"op": "test", "path": path, "value": OURS}, {"op": "remove", "path": path}]
    late = await cluster.api.ask("PATCH", in_own(cluster, CONFIGMAPS, "a"), patch, content_type=JSON_PATCH)
    assert late.status == 404


async def test_another_of_the_same_name_is_another(cluster: Cluster) -> None:
    """A uid in the patch protects a new object of the same name."""
    old = await cluster.create(CONFIGMAPS, config_map_held_by("a", OURS))
    await delete(cluster, CONFIGMAPS, "a")
    await drop_finalizer(cluster, CONFIGMAPS, "a", OURS)
    await cluster.create(CONFIGMAPS, config_map_held_by("a", OURS))
    path = "/metadata/finalizers/0"
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": old["metadata"]["uid"]},
        {"op": "test", "path": path, "value": OURS},
        {"op": "remove", "path": path},
    ]
    late = await cluster.api.ask("PATCH", in_own(cluster, CONFIGMAPS, "a"), patch, content_type=JSON_PATCH)
    assert late.status == 422
    left = await find(cluster, CONFIGMAPS, "a")
    assert left is not None
    assert finalizers(left) == [OURS]


async def test_a_second_deletion_changes_nothing(cluster: Cluster) -> None:
    await cluster.create(CONFIGMAPS, config_map_held_by("a", OURS))
    first = await delete(cluster, CONFIGMAPS, "a")
    second = await delete(cluster, CONFIGMAPS, "a")
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]


async def test_custom_resources_have_the_same_rules(cluster: Cluster) -> None:
    await cluster.define(CAVE_DEFINITION)
    obj = cave("deep")
    obj["metadata"]["finalizers"] = [THEIRS, OURS]
    await cluster.create(CAVES, obj)
    left = await delete(cluster, CAVES, "deep")
    assert left["metadata"]["generation"] == 2
    left = await drop_finalizer(cluster, CAVES, "deep", OURS)
    assert finalizers(left) == [THEIRS]
    await drop_finalizer(cluster, CAVES, "deep", THEIRS)
    assert await find(cluster, CAVES, "deep") is None
