"""Stores, queues and ListerWatchers with only single verbs, or with overridden ones, such as recording doubles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioinformer.errors import ConfigError
from aioinformer.fifo import DeltaFIFO
from aioinformer.informer import SharedIndexInformer
from aioinformer.listwatch import ListWatch
from aioinformer.objects.kube_object import KubeObject
from aioinformer.objects.meta import ListOptions, ListResult, WatchEvent
from aioinformer.reflector import Reflector
from aioinformer.store import Indexer, Store
from aioinformer.tracing import Tracer

from ..steps import until
from ..virtual_time import virtual_time
from .running import Errors, reflector, run_for
from .scripted import FOREVER, Scripted, Stream, added, deleted, modified, page, raw_pod

EVENTS = [added("b", 11), modified("b", 12), deleted("b", 13)]


def make_counting(base: type[Any], calls: list[str]) -> Any:
    """One whose single verbs, which are plain or coroutines as the base's are, note that they were called."""

    def noted(verb: str) -> Any:
        def call(self: Any, *args: Any) -> Any:
            calls.append(verb)
            return getattr(base, verb)(self, *args)

        return call

    verbs = ("add", "update", "delete", "replace", "resync")
    return type("Counting", (base,), {verb: noted(verb) for verb in verbs})()


@pytest.mark.parametrize("base", [Store, Indexer, DeltaFIFO])
@virtual_time
async def test_a_subclasss_own_verbs_are_called(base: type[Any]) -> None:
    calls: list[str] = []
    server = Scripted([page(raw_pod("a"), version=10)], [[EVENTS, FOREVER]])
    await run_for(reflector(server, make_counting(base, calls), resync_period=40), 60)
    assert calls == ["replace", "add", "update", "delete", "resync"]


@virtual_time
async def test_exception_of_a_subclasss_replace_is_reported() -> None:
    class Full(Store[KubeObject]):
        def replace(self, objects: Any, resource_version: str = "") -> None:
            raise OSError("disk full")

    errors = Errors()
    server = Scripted([page(raw_pod("a"), version=10)])
    await run_for(reflector(server, Full(), watch_error_handler=errors), 0.1)
    assert str(errors) == "disk full"


class Own:
    """Only the methods of client-go's ListerWatcher."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def list(self, options: ListOptions) -> ListResult:
        self.asked.append("list")
        return page(raw_pod("a"), version=10)

    async def watch(self, options: ListOptions) -> AsyncIterator[WatchEvent]:
        self.asked.append("watch")
        for event in (added("b", 11), modified("b", 12)):
            yield event
        await Stream(FOREVER).__anext__()


class OwnOfOpenedStreams(Own):
    async def watch(self, options: ListOptions) -> Any:  # type: ignore[override]
        return super().watch(options)


@pytest.mark.parametrize("kind", [Own, OwnOfOpenedStreams])
@virtual_time
async def test_a_lister_watcher_of_list_and_watch_alone(kind: type[Own]) -> None:
    source, store = kind(), Store[KubeObject]()
    await run_for(Reflector(source, KubeObject, store), 60)
    assert store.list_keys() == ["default/a", "default/b"]
    assert source.asked == ["list", "watch"]


@pytest.mark.parametrize("traced", [False, True])
async def test_an_informer_takes_it_too(traced: bool) -> None:
    tracer = Tracer(lambda trace: None) if traced else None
    async with SharedIndexInformer(Own(), KubeObject, tracer=tracer) as informer:
        await informer.wait_synced()
        await until(lambda: len(informer.store) == 2)


@pytest.mark.parametrize("traced", [False, True])
async def test_a_subclasss_own_list_is_called(traced: bool) -> None:
    asked: list[ListOptions] = []

    class Counting(ListWatch):
        async def list(self, options: ListOptions | None = None) -> ListResult:
            assert options is not None
            asked.append(options)
            return await super().list(options)

    own = Own()
    tracer = Tracer(lambda trace: None) if traced else None
    source = Counting(own.list, own.watch, description="pods")
    async with SharedIndexInformer(source, KubeObject, tracer=tracer) as informer:
        await informer.wait_synced()
        assert informer.name == "pods"
    assert len(asked) == 1


@virtual_time
async def test_list_that_returns_no_list_is_an_error() -> None:
    class Wrong(Own):
        async def list(self, options: ListOptions) -> Any:
            return []

    errors = Errors()
    await run_for(Reflector(Wrong(), KubeObject, Store(), watch_error_handler=errors), 0.1)
    assert str(errors) == "expected a ListResult, got list"


def test_object_without_list_or_watch_is_an_error() -> None:
    class Blind:
        def list(self, options: ListOptions) -> None: ...

    nothing: Any
    for nothing in (object(), Blind(), Own, None):
        with pytest.raises(ConfigError, match="list_watch must be one such as ListWatch"):
            Reflector(nothing, KubeObject, Store())
        with pytest.raises(ConfigError, match="list_watch must be one such as ListWatch"):
            SharedIndexInformer(nothing, KubeObject)
