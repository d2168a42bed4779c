"""Owner references: background, foreground and orphaning deletion."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ..api import CONFIGMAPS, MERGE, NAMESPACES, Object
from ..clusters import Cluster
from .waiting import (
    delete,
    drop_finalizer,
    finalizers,
    find,
    in_own,
    metadata_owned_by,
    until_gone,
    until_object,
)

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # no code of ours asks

HOLD = "example.com/hold"


async def make(cluster: Cluster, name: str, metadata: Object | None = None) -> Object:
    return await cluster.create(CONFIGMAPS, {"metadata": {"name": name, **(metadata or {})}})


async def until_collector_is_idle(cluster: Cluster) -> None:
    """Wait until the collector has processed all earlier changes."""
    owner = await make(cluster, "sentinel")
    await make(cluster, "sentinel-owned", metadata_owned_by(owner))
    await delete(cluster, CONFIGMAPS, "sentinel", propagationPolicy="Background")
    await until_gone(cluster, CONFIGMAPS, "sentinel-owned")


async def test_in_the_background_what_is_owned_goes_after_its_owner(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    child = await make(cluster, "child", metadata_owned_by(owner))
    await make(cluster, "grandchild", metadata_owned_by(child))
    await make(cluster, "other")
    answer = await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Background")
    assert answer["status"] == "Success"
    assert await find(cluster, CONFIGMAPS, "owner") is None
    await until_gone(cluster, CONFIGMAPS, "child")
    await until_gone(cluster, CONFIGMAPS, "grandchild")
    assert await find(cluster, CONFIGMAPS, "other") is not None


async def test_in_the_foreground_an_owner_goes_last(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    child = await make(cluster, "child", metadata_owned_by(owner))
    await make(cluster, "grandchild", {**metadata_owned_by(child), "finalizers": [HOLD]})
    left = await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Foreground")
    assert finalizers(left) == ["foregroundDeletion"]
    assert "deletionTimestamp" in left["metadata"]
    held = await until_object(
        cluster, CONFIGMAPS, "grandchild", lambda obj: "deletionTimestamp" in obj["metadata"]
    )
    assert finalizers(held) == [HOLD]
    assert await find(cluster, CONFIGMAPS, "owner") is not None
    child_now = await find(cluster, CONFIGMAPS, "child")
    assert child_now is not None
    assert finalizers(child_now) == ["foregroundDeletion"]
    await drop_finalizer(cluster, CONFIGMAPS, "grandchild", HOLD)
    await until_gone(cluster, CONFIGMAPS, "owner")
    assert await find(cluster, CONFIGMAPS, "child") is None
    assert await find(cluster, CONFIGMAPS, "grandchild") is None


async def test_in_the_foreground_only_what_blocks_is_waited_for(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    await make(cluster, "child", {**metadata_owned_by(owner, blocking=False), "finalizers": [HOLD]})
    await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Foreground")
    await until_gone(cluster, CONFIGMAPS, "owner")
    await until_object(cluster, CONFIGMAPS, "child", lambda obj: "deletionTimestamp" in obj["metadata"])


async def test_what_blocks_no_more_lets_its_owner_go(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    await make(cluster, "child", {**metadata_owned_by(owner), "finalizers": [HOLD]})
    await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Foreground")
    await until_object(cluster, CONFIGMAPS, "child", lambda obj: "deletionTimestamp" in obj["metadata"])
    assert await find(cluster, CONFIGMAPS, "owner") is not None
    await cluster.patch(CONFIGMAPS, "child", {"metadata": metadata_owned_by(owner, blocking=False)})
    await until_gone(cluster, CONFIGMAPS, "owner")


async def test_orphans_stay_and_lose_the_reference(cluster: Cluster) -> None:
    first, second = await make(cluster, "first"), await make(cluster, "second")
    await make(cluster, "child", metadata_owned_by(first, second))
    left = await delete(cluster, CONFIGMAPS, "first", propagationPolicy="Orphan")
    assert finalizers(left) == ["orphan"]
    await until_gone(cluster, CONFIGMAPS, "first")
    orphan = await find(cluster, CONFIGMAPS, "child")
    assert orphan is not None
    assert [reference["name"] for reference in orphan["metadata"]["ownerReferences"]] == ["second"]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_what_has_another_owner_stays_and_loses_the_reference(cluster: Cluster, policy: str) -> None:
    first, second = await make(cluster, "first"), await make(cluster, "second")
    await make(cluster, "child", metadata_owned_by(first, second))
    await delete(cluster, CONFIGMAPS, "first", propagationPolicy=policy)
    await until_gone(cluster, CONFIGMAPS, "first")
    kept = await until_object(
        cluster, CONFIGMAPS, "child", lambda obj: len(obj["metadata"]["ownerReferences"]) == 1
    )
    assert kept["metadata"]["ownerReferences"][0]["name"] == "second"
    assert "deletionTimestamp" not in kept["metadata"]
    await delete(cluster, CONFIGMAPS, "second", propagationPolicy="Background")
    await until_gone(cluster, CONFIGMAPS, "child")


async def test_finalizers_on_what_is_owned_are_respected(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    await make(cluster, "child", {**metadata_owned_by(owner), "finalizers": [HOLD]})
    await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Background")
    held = await until_object(
        cluster, CONFIGMAPS, "child", lambda obj: "deletionTimestamp" in obj["metadata"]
    )
    assert finalizers(held) == [HOLD]
    await drop_finalizer(cluster, CONFIGMAPS, "child", HOLD)
    assert await find(cluster, CONFIGMAPS, "child") is None


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"uid": "11111111-1111-4111-8111-111111111111"}, id="another uid"),
        pytest.param({"name": "other"}, id="another name"),
        pytest.param({"kind": "Secret"}, id="another kind"),
    ],
)
async def test_an_owner_that_is_not_there_counts_as_gone(cluster: Cluster, wrong: Object) -> None:
    """A wrong kind, name or uid in a reference deletes the object."""
    metadata = metadata_owned_by(await make(cluster, "owner"))
    metadata["ownerReferences"][0] |= wrong
    await make(cluster, "child", metadata)
    await until_gone(cluster, CONFIGMAPS, "child")
    assert await find(cluster, CONFIGMAPS, "owner") is not None


async def test_an_owner_in_another_namespace_counts_as_gone(cluster: Cluster) -> None:
    elsewhere = await cluster.new_namespace()
    owner = await cluster.create(CONFIGMAPS, {"metadata": {"name": "owner"}}, elsewhere)
    await make(cluster, "child", metadata_owned_by(owner))
    await until_gone(cluster, CONFIGMAPS, "child")


async def test_an_owner_in_no_namespace_may_own_what_is_in_one(cluster: Cluster) -> None:
    namespace = await cluster.api.do("GET", NAMESPACES.path(name=cluster.namespace))
    await make(cluster, "child", metadata_owned_by(namespace))
    await until_collector_is_idle(cluster)
    kept = await find(cluster, CONFIGMAPS, "child")
    assert kept is not None
    assert "deletionTimestamp" not in kept["metadata"]


async def test_earlier_foreground_policy_is_kept(cluster: Cluster) -> None:
    """Without a policy in the request, an existing finalizer of the garbage collector decides."""
    owner = await make(cluster, "owner", {"finalizers": ["foregroundDeletion"]})
    await make(cluster, "child", {**metadata_owned_by(owner), "finalizers": [HOLD]})
    await delete(cluster, CONFIGMAPS, "owner")
    await until_object(cluster, CONFIGMAPS, "child", lambda obj: "deletionTimestamp" in obj["metadata"])
    assert await find(cluster, CONFIGMAPS, "owner") is not None
    await drop_finalizer(cluster, CONFIGMAPS, "child", HOLD)
    await until_gone(cluster, CONFIGMAPS, "owner")


async def test_cycle_of_owners_is_deleted(cluster: Cluster) -> None:
    first = await make(cluster, "first")
    second = await make(cluster, "second", metadata_owned_by(first))
    await cluster.patch(CONFIGMAPS, "first", {"metadata": metadata_owned_by(second)})
    await delete(cluster, CONFIGMAPS, "first", propagationPolicy="Foreground")
    await until_gone(cluster, CONFIGMAPS, "first")
    await until_gone(cluster, CONFIGMAPS, "second")


async def test_many_go_at_once(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    metadata = metadata_owned_by(owner)
    await asyncio.gather(*(make(cluster, f"child-{number}", metadata) for number in range(50)))
    await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Foreground")
    await until_gone(cluster, CONFIGMAPS, "owner")
    left: dict[str, Any] = await cluster.list(CONFIGMAPS)
    assert [key for key in left if "child" in key] == []


async def test_a_reference_added_later_counts(cluster: Cluster) -> None:
    owner = await make(cluster, "owner")
    await make(cluster, "child")
    await cluster.api.do(
        "PATCH",
        in_own(cluster, CONFIGMAPS, "child"),
        {"metadata": metadata_owned_by(owner)},
        content_type=MERGE,
    )
    await delete(cluster, CONFIGMAPS, "owner", propagationPolicy="Background")
    await until_gone(cluster, CONFIGMAPS, "child")
