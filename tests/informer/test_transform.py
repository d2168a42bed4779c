"""Transformers: called once per object, with the same handling of failures for lists and watches."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from aioinformer import ConfigError, KubeObject
from aioinformer.controller import QueueName
from aioinformer.errors import AlreadyStartedError

from ..queues import QUEUES
from ..reflector.scripted import (
    FOREVER,
    GONE,
    Scripted,
    Step,
    added,
    bookmark,
    closing_bookmark,
    deleted,
    modified,
    page,
    raw_pod,
)
from ..virtual_time import virtual_time
from .handlers import Follower
from .subject import informer, versions_in_cache

pytestmark = pytest.mark.usefixtures("kept")


class CountingTransform:
    """A transformer that counts its calls, and fails on objects with some names.

    Attributes:
        calls: The number of calls for each object, by name and version.
    """

    def __init__(self, *bad: str, returns: bool = False) -> None:
        self.calls: Counter[str] = Counter()
        self.bad = set(bad)
        self._returns = returns

    def __call__(self, obj: KubeObject) -> Any:
        self.calls[f"{obj.name} {obj.resource_version}"] += 1
        if obj.name in self.bad:
            if self._returns:
                return None
            raise ValueError(f"no {obj.name}")
        fields = obj.to_dict()
        fields["spec"]["stripped"] = True
        return KubeObject.from_dict(fields)


def by_list() -> Scripted:
    return Scripted([page(raw_pod("a", 1), raw_pod("bad", 2), raw_pod("c", 3), version=10)])


def by_watch_list() -> Scripted:
    events = [added("a", 1), added("bad", 2), added("c", 3), closing_bookmark(10), FOREVER]
    return Scripted([], [events], watch_list_semantics=True)


def live() -> Scripted:
    return Scripted([page(version=10)], [[[added("a", 1), added("bad", 2)], added("c", 3), FOREVER]])


EVERY_SOURCE = pytest.mark.parametrize("server", [by_list, by_watch_list, live])


@EVERY_SOURCE
@pytest.mark.parametrize("returns", [False, True], ids=["raises", "returns None"])
@virtual_time
async def test_failure_drops_and_logs_and_counts_only_its_object_c79(
    server: Any, returns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    subject, transform = informer(server()), CountingTransform("bad", returns=returns)
    subject.set_transform(transform)
    registration = subject.add_event_handler(follower := Follower())
    async with subject:
        await registration.wait_synced(timeout=10)
        await asyncio.sleep(1)
        assert versions_in_cache(subject) == {"default/a": "1", "default/c": "3"}
        assert subject.state.reflectors[0].rejected == 1
        assert subject.state.failed == 0
    assert sorted(follower.calls) == ["add a 1", "add c 3"]
    messages = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(messages) == 1
    assert "dropped an object: transforming default/bad at 2 failed" in messages[0]


@EVERY_SOURCE
@virtual_time
async def test_each_object_is_transformed_once_c78(server: Any) -> None:
    """Upstream calls it twice for each object of a WatchList."""
    subject, transform = informer(server(), default_resync_period=10.0), CountingTransform("bad")
    subject.set_transform(transform)
    registration = subject.add_event_handler(Follower())
    async with subject:
        await registration.wait_synced()
        await asyncio.sleep(35)
        assert all(obj["spec"]["stripped"] for obj in subject.store.list())
    assert transform.calls == {"a 1": 1, "bad 2": 1, "c 3": 1}, "resyncs do not call it"


@virtual_time
async def test_cached_object_stays_when_its_newer_state_fails() -> None:
    transform = CountingTransform()
    server = Scripted(
        [
            page(raw_pod("a", 1), raw_pod("b", 2), version=10),
            page(raw_pod("a", 21), raw_pod("b", 2), version=30),
        ],
        [[1.0, modified("a", 11), 6.0, GONE]],
    )
    subject = informer(server)
    subject.set_transform(transform)
    subject.add_event_handler(follower := Follower())
    async with subject:
        await subject.wait_synced()
        transform.bad = {"a"}
        await asyncio.sleep(3)
        assert versions_in_cache(subject) == {"default/a": "1", "default/b": "2"}
        assert subject.state.reflectors[0].rejected == 1
        assert subject.last_sync_resource_version == "11"
        await asyncio.sleep(30)
        assert versions_in_cache(subject) == {"default/a": "1", "default/b": "2"}
        assert subject.state.reflectors[0].rejected == 2
    assert follower.calls == ["add a 1", "add b 2"]


@pytest.mark.parametrize("by_a_list", [False, True])
@virtual_time
async def test_failure_does_not_lose_a_deletion(by_a_list: bool) -> None:
    transform = CountingTransform()
    steps: list[Step] = [6.0, GONE] if by_a_list else [6.0, deleted("a", 11), FOREVER]
    subject = informer(Scripted([page(raw_pod("a", 1), version=10), page(version=20)], [steps]))
    subject.set_transform(transform)
    subject.add_event_handler(follower := Follower())
    async with subject:
        await subject.wait_synced()
        transform.bad = {"a"}
        await asyncio.sleep(60)
        assert not subject.store.list()
    assert [call.split()[0] for call in follower.calls] == ["add", "tombstone" if by_a_list else "delete"]


@virtual_time
async def test_wait_for_returns_when_the_object_failed() -> None:
    """The version was reached, and the object is not cached."""
    subject = informer(Scripted([page(version=10)], [[3.0, added("bad", 11), FOREVER]]))
    subject.set_transform(CountingTransform("bad"))
    async with subject:
        assert await subject.wait_for({"metadata": {"name": "bad", "namespace": "default", "resourceVersion": "11"}},
                                      timeout=10) is None  # fmt: skip


@virtual_time
async def test_bookmarks_are_not_transformed() -> None:
    subject, transform = (
        informer(Scripted([page(version=10)], [[bookmark(12), FOREVER]])),
        CountingTransform(),
    )
    subject.set_transform(transform)
    async with subject:
        await subject.wait_for("12", timeout=10)
    assert not transform.calls


class Meta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class Nameless(msgspec.Struct):
    metadata: dict[str, str]


def without_namespace(obj: KubeObject) -> Any:
    """Return a dict that keeps only the name and the version."""
    return {"metadata": {"name": obj.name, "resourceVersion": obj.resource_version}}


class Cut(msgspec.Struct):
    metadata: Meta


OTHER_KEYS: list[Any] = [
    pytest.param(without_namespace, "it changed the key to 'new'", id="no namespace"),
    pytest.param(lambda obj: obj.decode(Cut), "it changed the key to 'new'", id="a Struct without it"),
    pytest.param(lambda obj: Nameless({"resourceVersion": "1"}), "no key for Nameless", id="no name"),
    pytest.param(lambda obj: 5, "no key for int 5", id="no object"),
]


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize(("transform", "reason"), OTHER_KEYS)
@virtual_time
async def test_object_with_another_key_is_dropped_and_logged(
    transform: Any, reason: str, queue: QueueName, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise deleted objects would stay in the cache, and the next list would delete all objects."""
    events: list[Step] = [1.0, added("new", 11), modified("a", 12), deleted("b", 13), 6.0, GONE]
    server = Scripted(
        [
            page(raw_pod("a", 1), raw_pod("b", 2), version=10),
            page(raw_pod("a", 12), raw_pod("new", 11), version=20),
        ],
        [events],
    )
    changes = False
    subject = informer(server, queue=queue)
    subject.set_transform(lambda obj: transform(obj) if changes else obj)
    subject.add_event_handler(follower := Follower())
    async with subject:
        await subject.wait_synced()
        changes = True
        await asyncio.sleep(3)
        assert versions_in_cache(subject) == {"default/a": "1"}, "a deletion is not lost"
        await asyncio.sleep(30)
        assert versions_in_cache(subject) == {"default/a": "1"}
        assert subject.state.reflectors[0].rejected == 5
        assert subject.state.failed == 0
    assert follower.calls == ["add a 1", "add b 2", "delete b 13"]
    messages = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(messages) == 5
    assert "dropped an object: transforming default/new at 11 failed" in messages[0]
    assert reason in messages[0]


async def transform_later(obj: KubeObject) -> KubeObject:
    return obj


def transform_in_steps(obj: KubeObject) -> Any:
    yield obj


@pytest.mark.parametrize("transform", [transform_later, transform_in_steps, None, "strip"])
@virtual_time
async def test_invalid_transformer_is_refused(transform: Any) -> None:
    with pytest.raises(ConfigError, match="transform must be"):
        informer(Scripted()).set_transform(transform)


@virtual_time
async def test_set_transform_after_start_raises() -> None:
    async with informer(Scripted()) as subject:
        with pytest.raises(AlreadyStartedError):
            subject.set_transform(CountingTransform())


def test_transformers_are_type_checked() -> None:
    """mypy reports each ``type: ignore`` below that is not needed."""

    def of_anything(obj: Any) -> Any:
        return obj

    def of_others(obj: dict[str, Any]) -> dict[str, Any]:
        return obj

    def reading(obj: KubeObject) -> str:
        return obj.name

    subject = informer(Scripted())
    subject.set_transform(of_anything)
    subject.set_transform(lambda obj: KubeObject.from_bytes(obj.raw))
    subject.set_transform(of_others)  # type: ignore[arg-type]
    subject.set_transform(reading)
