"""processor/mutation_detector.py: find cached objects that were changed in place."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import math
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kubernetes.aio.client import V1Pod as NewPod
from kubernetes_asyncio.client import V1Pod

from aioinformer import ConfigError, KubeObject
from aioinformer._core.tasks import finish
from aioinformer.cache import CacheMutationDetector
from aioinformer.errors import CacheMutatedError
from aioinformer.objects.codec import codec_for

from ..samples import LoosePod, Meta, Pod, pod, pod_dict
from ..steps import turns


def mutate(obj: Any) -> None:
    if isinstance(obj, dict):
        obj["metadata"]["labels"]["app"] = "changed"
    elif isinstance(obj, LoosePod):
        obj.metadata["labels"]["app"] = "changed"
    else:
        obj.metadata.labels["app"] = "changed"


@pytest.mark.parametrize("object_type", [dict, Pod, LoosePod, V1Pod, NewPod, KubeObject], ids=repr)
async def test_in_place_change_raises_with_key(object_type: type[Any]) -> None:
    detector = CacheMutationDetector(name="pods")
    objects = [
        codec_for(object_type).decode(pod(name, metadata={"labels": {"app": "x"}}).raw) for name in "ab"
    ]
    for obj in objects:
        detector.add_object(obj)
    await detector.compare_objects()
    mutate(objects[1])
    if object_type is KubeObject:  # immutable
        await detector.compare_objects()
        return
    with pytest.raises(CacheMutatedError, match="pods: cached object ns/b was modified") as caught:
        await detector.compare_objects()
    assert caught.value.key == "ns/b"


class Unequal(msgspec.Struct, eq=False):
    """A Struct without ``__eq__``: no two instances are equal."""

    metadata: Meta
    spec: dict[str, Any]


@dataclasses.dataclass
class Port:
    number: int


class Cell:
    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize(
    "obj",
    [
        pod(spec={"a": [{"b": 1}]}).decode(Unequal),
        {"a": Unequal(Meta("a"), {}), "b": (Cell([1]), float("nan"), Port(1), datetime.now(UTC), {1, 2})},
        pod(metadata={"creationTimestamp": "2024-01-01T00:00:00Z"}).decode(V1Pod),
        pod(metadata={"creationTimestamp": "2024-01-01T00:00:00Z"}).decode(NewPod),
    ],
    ids=["Struct", "inside", "V1Pod", "pydantic"],
)
async def test_unchanged_objects_pass_whatever_their_eq(obj: Any) -> None:
    detector = CacheMutationDetector()
    detector.add_object(obj)
    await detector.compare_objects()


def set_in(what: Any, name: str, value: Any) -> None:
    what[name] = value


CHANGES: list[Any] = [
    ({"x": 1}, lambda obj: set_in(obj, "x", "1"), "at x: was 1, is '1'"),
    ({"x": None}, lambda obj: obj.clear(), "at x: was None, is nothing"),
    ({}, lambda obj: set_in(obj, "x", 1), "at x: was nothing, is 1"),
    ({"x": [1]}, lambda obj: obj["x"].append(2), "at x.1: was nothing, is 2"),
    ({"x": ({"y": 1},)}, lambda obj: set_in(obj["x"][0], "y", 2), "at x.0.y: was 1, is 2"),
    ({"x": {1}}, lambda obj: obj["x"].add(2), "at x: was {1}, is {1, 2}"),
    ({"x": Port(1)}, lambda obj: setattr(obj["x"], "number", 2), "at x.number: was 1, is 2"),
    ({"x": Cell(1)}, lambda obj: setattr(obj["x"], "value", 2), "at x.value: was 1, is 2"),
    (
        Unequal(Meta("a"), {"x": 1}),
        lambda obj: set_in(obj.spec, "x", 2),
        "at spec.x: was 1, is 2",
    ),
    (
        pod(spec={"containers": [{"name": "c"}]}).decode(V1Pod),
        lambda obj: setattr(obj.spec.containers[0], "image", "i"),
        "at spec.containers.0.image: was None, is 'i'",
    ),
    (
        pod(spec={"containers": [{"name": "c"}]}).decode(NewPod),
        lambda obj: setattr(obj.spec.containers[0], "image", "i"),
        "at spec.containers.0.image: was None, is 'i'",
    ),
]


@pytest.mark.parametrize(("obj", "change", "said"), CHANGES, ids=[said for _, _, said in CHANGES])
async def test_error_names_the_changed_path(obj: Any, change: Any, said: str) -> None:
    detector, obj = CacheMutationDetector(), copy.deepcopy(obj)
    detector.add_object(obj)
    change(obj)
    with pytest.raises(CacheMutatedError) as caught:
        await detector.compare_objects()
    assert str(caught.value).endswith(f"was modified {said}")


async def test_object_without_name_is_checked() -> None:
    detector = CacheMutationDetector()
    obj = {"a": [1]}
    detector.add_object(obj)
    obj["a"].append(2)
    with pytest.raises(CacheMutatedError, match=r"cached object \{'a': …\} was modified"):
        await detector.compare_objects()


class Uncopied(Cell):
    def __deepcopy__(self, memo: object) -> Any:
        raise ValueError(self.value)


async def test_object_that_cannot_be_copied_is_logged_and_others_are_checked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    detector = CacheMutationDetector(name="pods")
    deep, other = pod_dict("deep"), pod_dict("other")
    for _ in range(sys.getrecursionlimit()):
        deep["spec"] = {"a": deep.get("spec")}
    for obj in (deep, {**pod_dict("odd"), "spec": Uncopied(1)}, other):
        detector.add_object(obj)
    reason = "is not watched for changes in place, because it cannot be copied"
    deeply, oddly = (record.getMessage() for record in caplog.records)
    assert deeply.startswith(f"pods: ns/deep at 1 {reason}: RecursionError(")
    assert oddly == f"pods: ns/odd at 1 {reason}: ValueError(1)"
    deep["x"] = 1
    await detector.compare_objects()
    other["x"] = 1
    with pytest.raises(CacheMutatedError, match="cached object ns/other was modified"):
        await detector.compare_objects()


async def test_objects_are_dropped_after_retention_and_a_last_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 1.1: checked for 2 minutes."""
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


async def test_run_checks_each_interval_until_it_finds_a_change() -> None:
    detector = CacheMutationDetector(interval=0.0)
    obj = pod_dict()
    detector.add_object(obj)
    task = asyncio.create_task(detector.run())
    await turns(10)
    assert not task.done()
    obj["x"] = 1
    with pytest.raises(CacheMutatedError):
        await task


async def test_run_checks_once_more_when_it_is_cancelled() -> None:
    """A test may be shorter than the interval."""
    detector = CacheMutationDetector(interval=3600.0)
    obj = pod_dict()
    detector.add_object(obj)
    task = asyncio.create_task(detector.run())
    await turns(3)
    obj["x"] = 1
    task.cancel()
    with pytest.raises(CacheMutatedError):
        await task


async def test_compare_lets_other_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
    detector = CacheMutationDetector()
    for _ in range(50):
        detector.add_object(pod_dict())
    task = asyncio.create_task(detector.compare_objects())
    rounds = 0
    while not task.done():
        detector.add_object(pod_dict())  # added during the comparison
        await asyncio.sleep(0)
        rounds += 1
    await finish(task)
    task.result()
    assert rounds >= 50


@pytest.mark.parametrize("option", ["interval", "retention"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "1", None])
def test_invalid_durations_are_refused(option: str, value: Any) -> None:
    """It would check nothing, or keep all objects."""
    with pytest.raises(ConfigError, match=f"{option} must be a number of seconds, 0 or more, not {value!r}"):
        CacheMutationDetector(**{option: value})
