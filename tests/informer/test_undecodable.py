"""Informers of objects that do not fit the object type: the cache never shows an older state, and handlers get legal
histories."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from aioinformer import (
    Compression,
    DecodeError,
    DeletedFinalStateUnknown,
    FilteringResourceEventHandler,
    KubeObject,
    ResourceEventHandler,
    SharedIndexInformer,
    UndecodableObject,
)
from aioinformer.cache import CacheMutationDetector, TypeMeta, new_informer
from aioinformer.informer.probes import undecodable_warnings
from aioinformer.objects.meta import WatchEvent
from aioinformer.tracing import StageTimes, Tracer
from aioinformer.watchtools import InformerEvents, until_with_sync

from ..narrow import Narrow, raw
from ..reflector.running import NoJitter
from ..reflector.scripted import FOREVER, Scripted, Step, error_event, page
from ..virtual_time import virtual_time

QUEUES = pytest.mark.parametrize("queue", ["delta", "real"])


class Recorder(ResourceEventHandler[Narrow]):
    """Records its calls, and fails for an object of another type."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_add(self, obj: Narrow, is_in_initial_list: bool) -> None:
        self.calls.append(f"add {obj.metadata.name} {obj.metadata.resource_version} on {obj.spec.node}")

    def on_update(self, old: Narrow, new: Narrow) -> None:
        versions = f"{old.metadata.resource_version} {new.metadata.resource_version}"
        self.calls.append(f"update {new.metadata.name} {versions} on {old.spec.node} {new.spec.node}")

    def on_delete(self, obj: Narrow | DeletedFinalStateUnknown[Narrow]) -> None:
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        kind = "tombstone" if isinstance(obj, DeletedFinalStateUnknown) else "delete"
        version = None if last is None else last.metadata.resource_version
        self.calls.append(f"{kind} {version}")


class Aware(Recorder):
    """Records undecodable objects, too."""

    def on_undecodable(self, obj: UndecodableObject) -> None:
        self.calls.append(f"undecodable {obj.name} {obj.resource_version}")

    def on_delete(self, obj: Narrow | DeletedFinalStateUnknown[Narrow]) -> None:
        super().on_delete(obj)
        if isinstance(obj, DeletedFinalStateUnknown) and obj.undecodable is not None:
            self.calls[-1] += f", undecodable {obj.undecodable.resource_version}"


def event(kind: str, name: str, version: int, node: object = "n1", **metadata: Any) -> WatchEvent:
    return WatchEvent(kind, raw(name, version, node, **metadata))


def informer_of(*watch: Step, items: tuple[bytes, ...] = (), **options: Any) -> SharedIndexInformer[Narrow]:
    server = Scripted([page(*items, version=10)], [[*watch, FOREVER]])
    return SharedIndexInformer(server, Narrow, random=NoJitter(), **options)


async def calls_of(
    *watch: Step, handler: Recorder, items: tuple[bytes, ...] = (), **options: Any
) -> list[str]:
    """Return the calls of a handler that is there from the beginning."""
    informer = informer_of(*watch, items=items, **options)
    informer.add_event_handler(handler)
    async with informer:
        await asyncio.sleep(100)
        assert informer.state.handlers[0].failed == informer.state.failed == 0
    return handler.calls


COMES_AND_GOES = (
    event("ADDED", "a", 11),
    event("MODIFIED", "a", 12, 7),
    event("MODIFIED", "a", 13, 8),
    event("MODIFIED", "a", 14, "n2"),
    event("MODIFIED", "a", 15, 9),
    event("DELETED", "a", 16, 9),
)


@QUEUES
@virtual_time
async def test_handler_gets_a_legal_history_of_an_object_that_does_not_always_fit(queue: str) -> None:
    steps = [step for pod_event in COMES_AND_GOES for step in (pod_event, 1.0)]
    assert await calls_of(*steps, handler=Recorder(), queue=queue) == [
        "add a 11 on n1",
        "update a 11 14 on n1 n2",
        "tombstone 14",
    ]
    assert await calls_of(*steps, handler=Aware(), queue=queue) == [
        "add a 11 on n1",
        "undecodable a 12",
        "undecodable a 13",
        "update a 11 14 on n1 n2",
        "undecodable a 15",
        "tombstone 14, undecodable 16",
    ]


@QUEUES
@virtual_time
async def test_object_that_never_fitted_is_unknown_to_handlers_without_on_undecodable(queue: str) -> None:
    steps = (event("ADDED", "a", 11, 7), 1.0, event("DELETED", "a", 12, 7))
    assert await calls_of(*steps, handler=Recorder(), queue=queue) == []
    assert await calls_of(*steps, handler=Aware(), queue=queue) == [
        "undecodable a 11",
        "tombstone None, undecodable 12",
    ]


@QUEUES
@virtual_time
async def test_object_of_the_first_list_that_comes_to_fit_is_added(queue: str) -> None:
    steps = (1.0, event("MODIFIED", "a", 11))
    for handler, first in ((Recorder(), []), (Aware(), ["undecodable a 5"])):
        calls = await calls_of(*steps, items=(raw("a", 5, 7),), handler=handler, queue=queue)
        assert calls == [*first, "add a 11 on n1"]


@QUEUES
@virtual_time
async def test_deletion_whose_last_state_fits_again(queue: str) -> None:
    steps = (event("ADDED", "a", 11), 1.0, event("MODIFIED", "a", 12, 7), 1.0, event("DELETED", "a", 13))
    assert await calls_of(*steps, handler=Recorder(), queue=queue) == ["add a 11 on n1", "delete 13"]


@QUEUES
@virtual_time
async def test_deletion_of_an_object_that_fitted_until_then(queue: str) -> None:
    steps = (event("ADDED", "a", 11), 1.0, event("DELETED", "a", 13, 7))
    assert await calls_of(*steps, handler=Aware(), queue=queue) == [
        "add a 11 on n1",
        "tombstone 11, undecodable 13",
    ]


@QUEUES
@virtual_time
async def test_relist_with_undecodable_objects(queue: str) -> None:
    lists = [
        page(raw("a", 1), raw("b", 2, 7), raw("c", 3, 7), raw("same", 4, 7), version=10),
        page(raw("a", 11, 7), raw("b", 12), raw("same", 4, 7), version=20),
    ]
    server = Scripted(lists, [[6.0, error_event(410, "Gone")], [FOREVER]])
    informer = SharedIndexInformer(server, Narrow, random=NoJitter(), queue=queue)  # type: ignore[arg-type]
    handler = Aware()
    informer.add_event_handler(handler)
    async with informer:
        await asyncio.sleep(100)
        assert [obj.metadata.name for obj in informer.store.list()] == ["b"]
        assert {obj.name for obj in informer.store.undecodable()} == {"a", "same"}
        assert set(informer.store.list_keys()) == {"default/a", "default/b", "default/same"}
    assert set(handler.calls) == {
        "add a 1 on n1",
        "undecodable b 2",
        "undecodable c 3",
        "undecodable same 4",
        "undecodable a 11",
        "add b 12 on n1",
        "tombstone None, undecodable 3",
    }
    assert len(handler.calls) == 7


@virtual_time
async def test_cache_has_the_newest_state_and_says_what_is_wrong() -> None:
    informer = informer_of(event("MODIFIED", "a", 11, 7), items=(raw("a", 5), raw("b", 6)))
    async with informer:
        await asyncio.sleep(10)
        with pytest.raises(
            DecodeError, match=r"got `int` - at `\$.spec.node`; it is Pod default/a.*version 11"
        ):
            informer.lister.get("default/a")
        assert [obj.metadata.name for obj in informer.lister.list()] == ["b"]
        (unfit,) = informer.lister.undecodable()
        assert (unfit.key, unfit.resource_version, unfit.last.metadata.resource_version) == (
            "default/a",
            "11",
            "5",
        )
        assert informer.last_sync_resource_version == "11"
        state = informer.state
        assert (state.objects, state.undecodable, state.rejected) == (2, 1, 0)
        assert "got `int` - at `$.spec.node`" in state.undecodable_errors["default/a"]
        assert "2 objects, 1 undecodable, 0 queued" in str(state)
        gauges = {sample.name: sample.value for sample in state.samples()}
        assert gauges["aioinformer_undecodable_objects"] == gauges["aioinformer_undecodable_total"] == 1
        (warning,) = undecodable_warnings([state])
        assert warning.endswith("1 undecodable objects, of which only the metadata can be used: default/a")
        assert state.to_dict()["undecodable_errors"] == state.undecodable_errors


@virtual_time
async def test_state_and_warning_name_only_some_of_many_undecodable_objects() -> None:
    informer = informer_of(items=tuple(raw(f"p{number:03}", 5, 7) for number in range(100)))
    async with informer:
        await asyncio.sleep(10)
        assert informer.state.undecodable == 100
        assert len(informer.state.undecodable_errors) == 20
        (warning,) = undecodable_warnings([informer.state])
        assert warning.endswith("default/p003, default/p004 and 95 more")


@virtual_time
async def test_waits_for_versions_see_undecodable_states() -> None:
    informer = informer_of(
        1.0, event("MODIFIED", "a", 11, 7), 1.0, event("DELETED", "a", 12, 7), items=(raw("a", 5),)
    )
    async with informer:
        await informer.wait_synced()
        waits = informer.version_waits
        with pytest.raises(DecodeError):
            await informer.wait_for(
                {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "11"}}, 1.5
            )
        await waits.wait(waits.goal_of_deletion("default/a", "uid-a", ""), 1.5)
        assert informer.store.get_by_key("default/a") is None


@virtual_time
async def test_user_code_for_the_object_type_never_gets_an_undecodable_object() -> None:
    def checked(obj: Any) -> Any:
        assert type(obj) is Narrow, obj
        return obj

    informer = informer_of(
        *(step for pod_event in COMES_AND_GOES for step in (pod_event, 2.0)),
        items=(raw("b", 5, 7),),
        default_resync_period=1.0,
        indexers={"node": lambda obj: [checked(obj).spec.node]},
        mutation_detector=CacheMutationDetector(),
        tracer=Tracer(StageTimes()),
    )
    informer.set_transform(checked)
    seen: list[Any] = []
    filtered = Aware()
    informer.add_event_handler(
        FilteringResourceEventHandler(
            lambda obj: isinstance(obj, DeletedFinalStateUnknown) or checked(obj).spec.node == "n1", filtered
        )
    )
    informer.add_event_handler(
        on_add=lambda obj, initial: seen.append(checked(obj)),
        on_update=lambda old, new: seen.extend((checked(old), checked(new))),
        on_delete_object=lambda obj: seen.append(checked(obj)),
        backlog="coalesce",
    )
    async with informer:
        await asyncio.sleep(7)
        assert informer.lister.list(lambda obj: checked(obj).spec.node == "n2")
        await asyncio.sleep(20)
        state = informer.state
        assert all(handler.failed == 0 for handler in state.handlers)
        assert (state.failed, state.rejected, state.undecodable) == (0, 0, 1)
    assert seen
    news = [call for call in filtered.calls if not call.startswith("undecodable") and "11 11" not in call]
    assert news == ["add a 11 on n1", "delete 11", "tombstone 14, undecodable 16"]


@virtual_time
async def test_resync_repeats_undecodable_objects_to_handlers_that_are_due() -> None:
    informer = informer_of(items=(raw("a", 5, 7),), default_resync_period=10.0)
    often, never = Aware(), Aware()
    informer.add_event_handler(often)
    informer.add_event_handler(never, 0.0)
    async with informer:
        await asyncio.sleep(35)
    assert often.calls == ["undecodable a 5"] * 4
    assert never.calls == ["undecodable a 5"]


@virtual_time
async def test_handler_that_comes_while_an_object_is_undecodable_gets_an_add_when_it_fits_again() -> None:
    informer = informer_of(
        event("ADDED", "a", 11), 1.0, event("MODIFIED", "a", 12, 7), 10.0,
        event("MODIFIED", "a", 13), 1.0, event("MODIFIED", "a", 14), 1.0, event("DELETED", "a", 15),
    )  # fmt: skip
    early, late, aware = Recorder(), Recorder(), Aware()
    informer.add_event_handler(early)
    async with informer:
        await asyncio.sleep(5)
        informer.add_event_handler(late)
        informer.add_event_handler(aware)
        await asyncio.sleep(30)
    assert early.calls == [
        "add a 11 on n1",
        "update a 11 13 on n1 n1",
        "update a 13 14 on n1 n1",
        "delete 15",
    ]
    assert late.calls == ["add a 13 on n1", "update a 13 14 on n1 n1", "delete 15"]
    assert aware.calls == ["undecodable a 12", *late.calls]


@virtual_time
async def test_handler_that_comes_while_an_object_is_undecodable_gets_no_call_for_its_deletion() -> None:
    informer = informer_of(
        event("ADDED", "a", 11), 1.0, event("MODIFIED", "a", 12, 7), 10.0, event("DELETED", "a", 15, 7)
    )
    late, aware = Recorder(), Aware()
    async with informer:
        await asyncio.sleep(5)
        informer.add_event_handler(late)
        informer.add_event_handler(aware)
        await asyncio.sleep(30)
    assert late.calls == []
    assert aware.calls == ["undecodable a 12", "tombstone 11, undecodable 15"]


@QUEUES
@virtual_time
async def test_undecodable_objects_of_one_of_several_namespaces(queue: str) -> None:
    first = page(raw("a", 1, namespace="one"), raw("b", 2, 7, namespace="one"), version=10)
    later = page(raw("a", 11, 7, namespace="one"), version=20)
    other = page(raw("a", 1, 7, namespace="two"), raw("z", 1, namespace="two"), version=10)
    sources = {
        "one": Scripted([first, later], [[6.0, error_event(410, "Gone")], [FOREVER]]),
        "two": Scripted([other], [[FOREVER]]),
    }
    informer = SharedIndexInformer(sources, Narrow, random=NoJitter(), queue=queue)  # type: ignore[arg-type]
    handler = Aware()
    informer.add_event_handler(handler)
    async with informer:
        await asyncio.sleep(3)
        assert sorted(informer.store.list_keys()) == ["one/a", "one/b", "two/a", "two/z"]
        assert [obj.key for obj in informer.lister.namespace("two").undecodable()] == ["two/a"]
        await asyncio.sleep(60)
        assert sorted(informer.store.list_keys()) == ["one/a", "two/a", "two/z"]
        assert informer.indexer.index_keys("namespace", "one") == ["one/a"]
        assert [obj.metadata.name for obj in informer.store.list()] == ["z"]
    assert "tombstone None, undecodable 2" in handler.calls


@virtual_time
async def test_coalesced_notifications_of_an_object_that_does_not_always_fit() -> None:
    class Slow(Aware):
        async def on_add(self, obj: Narrow, is_in_initial_list: bool) -> None:  # type: ignore[override]
            super().on_add(obj, is_in_initial_list)
            if obj.metadata.name == "first":
                await asyncio.sleep(50)

    async def calls(*events: WatchEvent) -> list[str]:
        handler = Slow()
        informer = informer_of(
            1.0, *(step for change in events for step in (change, 1.0)), items=(raw("first", 1),)
        )
        informer.add_event_handler(handler, backlog="coalesce")
        async with informer:
            await asyncio.sleep(100)
            (state,) = informer.state.handlers
            assert (state.depth, state.failed) == (0, 0)
            assert state.delivered + state.coalesced == 1 + len(events)
        return handler.calls[1:]

    assert await calls(*COMES_AND_GOES[:2]) == ["add a 11 on n1", "undecodable a 12"]
    assert await calls(*COMES_AND_GOES[:3]) == ["add a 11 on n1", "undecodable a 13"]
    assert await calls(*COMES_AND_GOES[:4]) == ["add a 14 on n2"]
    assert await calls(*COMES_AND_GOES[:5]) == ["add a 14 on n2", "undecodable a 15"]
    assert await calls(event("ADDED", "a", 11, 7), event("MODIFIED", "a", 12)) == ["add a 12 on n1"]
    assert await calls(event("ADDED", "a", 11, 7), event("DELETED", "a", 12, 7)) == []


@virtual_time
async def test_coalesced_deletion_of_an_object_that_was_only_known_as_undecodable() -> None:
    """An add and a deletion cancel each other, but a handler that knows the undecodable state must get its end."""
    handlers = (Recorder(), Aware())
    free = asyncio.Event()
    informer = informer_of(
        event("ADDED", "a", 11, 7), 1.0, event("ADDED", "first", 12), 1.0, event("MODIFIED", "a", 13), 1.0,
        event("DELETED", "a", 14),
    )  # fmt: skip

    async def wait(handler: Recorder, obj: Narrow, is_in_initial_list: bool) -> None:
        handler.on_add(obj, is_in_initial_list)
        await free.wait()

    for handler in handlers:
        informer.add_event_handler(
            on_add=partial(wait, handler),
            on_delete=handler.on_delete,
            on_undecodable=getattr(handler, "on_undecodable", None),
            backlog="coalesce",
        )
    async with informer:
        await asyncio.sleep(10)
        free.set()
        await asyncio.sleep(10)
    assert handlers[0].calls == ["add first 12 on n1"]
    assert handlers[1].calls == ["undecodable a 11", "add first 12 on n1", "tombstone None, undecodable 11"]


@virtual_time
async def test_coalesced_addition_and_deletion_cancel_each_other_also_when_undecodable_in_between() -> None:
    handler = Recorder()
    blocked = asyncio.Event()

    async def wait(obj: Narrow, is_in_initial_list: bool) -> None:
        handler.on_add(obj, is_in_initial_list)
        await blocked.wait()

    informer = informer_of(1.0, list(COMES_AND_GOES), items=(raw("first", 1),), queue="real")
    informer.add_event_handler(
        on_add=wait, on_update=handler.on_update, on_delete=handler.on_delete, backlog="coalesce"
    )
    async with informer:
        await asyncio.sleep(5)
        blocked.set()
        await asyncio.sleep(5)
    assert handler.calls == ["add first 1 on n1"]


@virtual_time
async def test_events_of_an_informer_have_undecodable_states() -> None:
    informer = informer_of(*(step for pod_event in COMES_AND_GOES for step in (pod_event, 1.0)))
    async with informer, InformerEvents(informer) as events:
        seen: list[Any] = [await anext(events) for _ in range(6)]
    assert [received.type for received in seen] == [
        "ADDED",
        "UNDECODABLE",
        "UNDECODABLE",
        "MODIFIED",
        "UNDECODABLE",
        "DELETED",
    ]
    assert seen[-1].object.metadata.resource_version == "14"
    assert isinstance(seen[1].object, UndecodableObject)


@virtual_time
async def test_until_waits_on_while_the_object_does_not_fit() -> None:
    informer = informer_of(*(step for pod_event in COMES_AND_GOES for step in (pod_event, 1.0)))
    async with informer:
        met = await until_with_sync(informer, lambda event: event.object.spec.node == "n2", timeout=60)
    assert met is not None
    assert met.object.metadata.resource_version == "14"


@virtual_time
async def test_new_informer_calls_a_handler_for_undecodable_objects() -> None:
    handler = Aware()
    server = Scripted(
        [page(version=10)], [[*(step for pod_event in COMES_AND_GOES for step in (pod_event, 1.0)), FOREVER]]
    )
    store, controller = new_informer(server, Narrow, 0.0, handler)
    async with controller:
        await asyncio.sleep(2.5)
        with pytest.raises(DecodeError):
            store.get_by_key("default/a")
        await asyncio.sleep(30)
    assert handler.calls[-1] == "tombstone 14, undecodable 16"


async def test_function_for_undecodable_objects_is_checked_when_it_is_added() -> None:
    informer = informer_of()
    with pytest.raises(Exception, match="on_undecodable"):
        informer.add_event_handler(on_undecodable=lambda: None)  # type: ignore[arg-type, misc]

    class Only(ResourceEventHandler[Narrow]):
        def on_undecodable(self, obj: UndecodableObject) -> None: ...

    informer.add_event_handler(Only())
    informer.add_event_handler(on_undecodable=lambda obj: None)


class Picky(KubeObject, frozen=True, eq=False, gc=False):
    """A KubeObject with a node."""

    @classmethod
    def from_bytes(cls, raw: bytes, type_meta: TypeMeta | None = None) -> Picky:
        if b'"node": 7' in raw:
            raise DecodeError("no node")
        return super().from_bytes(raw, type_meta)


@virtual_time
async def test_undecodable_objects_of_a_compressing_informer() -> None:
    items = tuple(
        raw(f"p{number:03}", number + 1, 7 if number % 3 == 0 else f"n{number}") for number in range(300)
    )
    server = Scripted(
        [page(*items, version=400)],
        [[1.0, event("MODIFIED", "p001", 401, 7), event("MODIFIED", "p003", 402, "n3"), FOREVER]],
    )
    options = Compression(samples=16, dictionary_size=1024)
    informer = SharedIndexInformer(server, Picky, random=NoJitter(), compress=options)
    async with informer:
        await asyncio.sleep(60)
        assert informer.state.failed == 0
        unfit = {obj.name: obj for obj in informer.store.undecodable()}
        assert (len(unfit), len(informer.store.list())) == (100, 200)
        assert unfit["p001"]["spec"] == unfit["p000"]["spec"] == {"node": 7}
        assert unfit["p001"].last["spec"] == {"node": "n1"}
        fitting = informer.lister.get("default/p003")
        assert (type(fitting), fitting["spec"]) == (Picky, {"node": "n3"})
