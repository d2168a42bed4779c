"""processor/mutation_detector.py: who changes cached objects in place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubernetes.aio.client import V1Pod as NewPod
from kubernetes_asyncio.client import V1Pod

from aioinformer import CacheMutatedError, CacheMutationDetector, KubeObject
from aioinformer.codec import codec_for
from aioinformer.tasks import finish

from ..samples import LoosePod, Pod, pod, pod_dict
from ..steps import cancel_after, turns


def changed(obj: Any) -> None:
    if isinstance(obj, dict):
        obj["metadata"]["labels"]["app"] = "changed"
    elif isinstance(obj, LoosePod):
        obj.metadata["labels"]["app"] = "changed"
    else:
        obj.metadata.labels["app"] = "changed"


@pytest.mark.parametrize("object_type", [dict, Pod, LoosePod, V1Pod, NewPod, KubeObject], ids=repr)
async def test_a_change_is_found_and_named(object_type: type[Any]) -> None:
    detector = CacheMutationDetector(name="pods")
    objects = [
        codec_for(object_type).decode(pod(name, metadata={"labels": {"app": "x"}}).raw) for name in "ab"
    ]
    for obj in objects:
        detector.add_object(obj)
    await detector.compare_objects()
    changed(objects[1])
    if object_type is KubeObject:  # nobody can
        await detector.compare_objects()
        return
    with pytest.raises(CacheMutatedError, match="pods: cached object ns/b was modified") as caught:
        await detector.compare_objects()
    assert caught.value.key == "ns/b"


async def test_an_object_without_a_name_is_watched_too() -> None:
    detector = CacheMutationDetector()
    obj = {"a": [1]}
    detector.add_object(obj)
    obj["a"].append(2)
    with pytest.raises(CacheMutatedError, match=r"cached object \{'a': \[1\]\} was modified"):
        await detector.compare_objects()


async def test_objects_are_forgotten_after_a_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 1.1: watched for 2 minutes."""
    clock = [0.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    detector = CacheMutationDetector(retention=120.0)
    old, young = pod_dict("old"), pod_dict("young")
    detector.add_object(old)
    clock[0] = 60.0
    detector.add_object(young)
    clock[0] = 121.0
    old["x"] = 1
    with pytest.raises(CacheMutatedError):
        await detector.compare_objects()
    del old["x"]
    await detector.compare_objects()
    old["x"] = 1
    await detector.compare_objects()
    young["x"] = 1
    with pytest.raises(CacheMutatedError):
        await detector.compare_objects()


async def test_it_looks_each_interval_until_it_finds_something() -> None:
    detector = CacheMutationDetector(interval=0.0)
    obj = pod_dict()
    detector.add_object(obj)
    task = asyncio.create_task(detector.run())
    await turns(10)
    assert not task.done()
    obj["x"] = 1
    with pytest.raises(CacheMutatedError):
        await task


async def test_many_objects_let_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.turns.TURN", -1.0)
    detector = CacheMutationDetector()
    for _ in range(50):
        detector.add_object(pod_dict())
    task = asyncio.create_task(detector.compare_objects())
    rounds = 0
    while not task.done():
        detector.add_object(pod_dict())  # they come while it looks
        await asyncio.sleep(0)
        rounds += 1
    await finish(task)
    task.result()
    assert rounds >= 50


@pytest.mark.parametrize("count", range(4))
async def test_cancelled_at_any_moment_it_ends(count: int) -> None:
    detector = CacheMutationDetector(interval=0.0)
    detector.add_object(pod_dict())
    await cancel_after(count, detector.run())
