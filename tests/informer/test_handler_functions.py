"""add_event_handler with functions instead of a handler object."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ConfigError, DeletedFinalStateUnknown, KubeObject, ResourceEventHandlerFuncs

from ..reflector.scripted import Scripted, added, deleted, expired_error, modified, page, raw_pod
from ..virtual_time import virtual_time
from .subject import informer


@virtual_time
async def test_functions_are_called_for_each_change() -> None:
    calls: list[str] = []

    async def on_update(old: KubeObject, new: KubeObject) -> None:
        calls.append(f"update {new.name} {old.resource_version} {new.resource_version}")

    subject = informer(
        Scripted(
            [page(raw_pod("a", 1), version=10)],
            [[added("b", 11), 0.1, modified("b", 12), 0.1, deleted("b", 13)]],
        )
    )
    registration = subject.add_event_handler(
        on_add=lambda obj, is_in_initial_list: calls.append(f"add {obj.name} {is_in_initial_list}"),
        on_update=on_update,
        on_delete=lambda obj: calls.append(f"delete {obj.name}"),
    )
    async with subject:
        await registration.wait_synced(timeout=10)
        await asyncio.sleep(1)
    assert calls == ["add a True", "add b False", "update b 11 12", "delete b"]


@virtual_time
async def test_on_delete_object_gets_the_cached_object_of_a_missed_deletion() -> None:
    gone: list[str] = []

    def record(pod: KubeObject) -> None:
        gone.append(f"{pod.name} {pod.resource_version}")

    lists = [page(raw_pod("a", 1), version=10), page(version=20)]
    subject = informer(Scripted(lists, [[expired_error()]]))
    tombstones: list[object] = []
    subject.add_event_handler(on_delete_object=record)
    subject.add_event_handler(on_delete=tombstones.append)
    async with subject:
        await subject.wait_synced(timeout=10)
        await asyncio.sleep(60)
    assert gone == ["a 1"]
    assert isinstance(tombstones[0], DeletedFinalStateUnknown)


def test_missing_handler_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a handler, or a function such as on_add="):
        informer(Scripted([])).add_event_handler()


def test_handler_together_with_a_function_is_refused() -> None:
    handler = ResourceEventHandlerFuncs[KubeObject](on_add=print)
    with pytest.raises(ConfigError, match=r"pass a handler or functions, not both: .*print"):
        informer(Scripted([])).add_event_handler(handler, on_delete=print)
