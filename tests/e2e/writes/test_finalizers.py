"""Finalizers are put on and taken off while others write, on either server."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest

from aioinformer import Client, KubeObject, Resource

from ..clusters import Cluster
from .conftest import Configmap

OURS, THEIRS = "example.com/ours", "example.com/theirs"

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets

Maps = Resource[KubeObject]


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""


class Map(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


async def test_put_on_once_and_taken_off(configmaps: Maps, configmap: Configmap) -> None:
    bare = await configmaps.create(configmap("a"))
    first = await configmaps.ensure_finalizer(bare, OURS)
    assert first is not None
    assert first.metadata.finalizers == [OURS]
    assert await configmaps.ensure_finalizer(first, OURS) is first
    again = await configmaps.ensure_finalizer(bare, OURS)  # an old state: there it is missing
    assert again == first
    second = await configmaps.ensure_finalizer(bare, THEIRS)
    assert second is not None
    assert second.metadata.finalizers == [OURS, THEIRS]
    third: Any = None
    for _ in range(2):  # of a state in which there was one
        third = await configmaps.ensure_finalizer(first, "example.com/third")
        assert third is not None
        assert third.metadata.finalizers == [OURS, THEIRS, "example.com/third"]
    assert await configmaps.drop_finalizer(third, "example.com/third") is not None
    left = await configmaps.drop_finalizer(bare, OURS)  # an old state: there it is missing, too
    assert left is not None
    assert left.metadata.finalizers == [THEIRS]
    assert await configmaps.drop_finalizer(left.key, OURS) == left
    bare_again = await configmaps.drop_finalizer(left, THEIRS)
    assert bare_again is not None
    assert bare_again.metadata.finalizers == []


async def test_the_last_one_off_lets_it_go(configmaps: Maps, configmap: Configmap) -> None:
    held = await configmaps.create(configmap("a", OURS, THEIRS, OURS))
    await configmaps.delete(held)
    left = await configmaps.drop_finalizer(held, OURS)
    assert left is not None
    assert left.metadata.finalizers == [THEIRS]
    assert await configmaps.drop_finalizer(held, THEIRS) is None
    for verb in (configmaps.drop_finalizer, configmaps.ensure_finalizer):
        assert await verb(held, "example.com/other") is None
        assert await verb(held.key, OURS) is None


async def test_terminating_object_gets_no_finalizer(configmaps: Maps, configmap: Configmap) -> None:
    held = await configmaps.create(configmap("a", THEIRS))
    going = await configmaps.delete(held)
    assert going is not None
    for target in (held, going, held.key):
        assert await configmaps.ensure_finalizer(target, OURS) is None
    kept = await configmaps.ensure_finalizer(going, THEIRS)  # it has that one
    assert kept is going
    assert await configmaps.drop_finalizer(going, THEIRS) is None


async def test_object_recreated_under_the_same_name_is_untouched(
    configmaps: Maps, configmap: Configmap
) -> None:
    old = await configmaps.create(configmap("a", OURS))
    await configmaps.delete(old)
    await configmaps.drop_finalizer(old, OURS)
    new = await configmaps.create(configmap("a", OURS))
    assert await configmaps.drop_finalizer(old, OURS) is None
    assert await configmaps.ensure_finalizer(old, THEIRS) is None
    assert await configmaps.get(new.key) == new
    await configmaps.drop_finalizer(new, OURS)


async def test_a_name_that_no_finalizer_has_is_refused(configmaps: Maps, configmap: Configmap) -> None:
    obj = await configmaps.create(configmap("a"))
    with pytest.raises(Exception, match=r"add finalizer x_ to configmaps .*422 Invalid.*metadata.finalizers"):
        await configmaps.ensure_finalizer(obj, "x_")


async def test_a_struct_that_names_no_finalizers(
    cluster: Cluster, client: Client, configmap: Configmap
) -> None:
    maps = Resource(client, "v1", "configmaps", Map)
    obj = await maps.create(configmap("a", THEIRS, k="1"))
    assert (obj.metadata.name, obj.data) == ("a", {"k": "1"})
    changed = await maps.ensure_finalizer(obj, OURS)
    assert changed is not None
    assert int(changed.metadata.resource_version) > int(obj.metadata.resource_version)
    assert await maps.ensure_finalizer(obj, OURS) == changed
    assert await maps.drop_finalizer(obj, OURS) is not None
    assert await maps.drop_finalizer(changed, THEIRS) is not None
    left = await Resource(client, "v1", "configmaps", dict).get(f"{cluster.namespace}/a")
    assert "finalizers" not in left["metadata"]


async def test_concurrent_finalizer_writers_lose_nothing(configmaps: Maps, configmap: Configmap) -> None:
    """Ten put theirs on and take it off, all at once; an eleventh writes labels, a twelfth takes off a duplicate."""
    obj = await configmaps.create(configmap("a"))
    chance = random.Random(3)

    async def come_and_go(number: int) -> None:
        name = f"example.com/f{number}"
        for turn in range(3):
            seen: Any = chance.choice([obj, obj.key])
            put_on = await configmaps.ensure_finalizer(seen, name)
            assert put_on is not None
            assert name in put_on.metadata.finalizers
            if turn < 2:
                taken_off = await configmaps.drop_finalizer(put_on, name)
                assert taken_off is not None
                assert name not in taken_off.metadata.finalizers

    async def label() -> None:
        for turn in range(10):
            await configmaps.patch(obj, {"metadata": {"labels": {f"l{turn}": "x"}}})

    await asyncio.gather(*(come_and_go(number) for number in range(10)), label())
    now = await configmaps.get(obj.key)
    assert sorted(now.metadata.finalizers) == sorted(f"example.com/f{number}" for number in range(10))
    assert len(now.metadata.labels) == 10
    for name in now.metadata.finalizers:
        await configmaps.drop_finalizer(now, name)


async def test_a_namespace_and_what_keeps_it(client: Client, cluster: Cluster) -> None:
    namespaces = Resource(client, "v1", "namespaces", dict, namespaced=False)
    made = await namespaces.create({"metadata": {"generateName": "kept-"}})
    assert made["spec"]["finalizers"] == ["kubernetes"]
    kept = await namespaces.ensure_spec_finalizer(made, OURS)
    assert kept is not None
    assert kept["spec"]["finalizers"] == ["kubernetes", OURS]
    assert await namespaces.ensure_spec_finalizer(made, OURS) == kept
    going = await namespaces.delete(made)
    assert going is not None
    assert going["metadata"]["deletionTimestamp"]
    assert await namespaces.ensure_spec_finalizer(made, THEIRS) is None
    left = await namespaces.drop_spec_finalizer(
        made, "kubernetes"
    )  # the test acts as the namespace controller
    assert left is not None
    assert left["spec"]["finalizers"] == [OURS]
    assert await namespaces.drop_spec_finalizer(made, OURS) is None
    assert await namespaces.drop_spec_finalizer(made, OURS) is None


async def test_a_namespace_is_finalized_as_a_whole(client: Client) -> None:
    namespaces = Resource(client, "v1", "namespaces", dict, namespaced=False)
    made = await namespaces.create({"metadata": {"generateName": "kept-"}, "spec": {"finalizers": [OURS]}})
    going = await namespaces.delete(made)
    assert going is not None
    going = await namespaces.get(made["metadata"]["name"])
    gone = await namespaces.finalize(going | {"spec": {"finalizers": []}})
    assert gone["metadata"]["name"] == made["metadata"]["name"]
    assert await namespaces.drop_spec_finalizer(made, OURS) is None
