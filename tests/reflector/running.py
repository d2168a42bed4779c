"""A reflector on a scripted server, and ways to run it for a while."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func
from aioinformer.objects.kube_object import KubeObject
from aioinformer.reflector import Phase, Reflector, ReflectorOptions
from aioinformer.store import Store

from .scripted import (
    RecordingStore,
    Scripted,
)

SILENT = 1e6
"""Seconds: for scripts in which watches are silent for as long as they like. ``max_silence=0`` is the default."""


class NoJitter(Random):
    def random(self) -> float:
        return 0.0


def reflector(
    server: Scripted, store: Any = None, resync_period: float = 0.0, **options: Any
) -> Reflector[KubeObject]:
    chosen: ReflectorOptions = {"random": NoJitter(), "max_silence": SILENT, **options}  # type: ignore[typeddict-item]
    return Reflector(
        server, KubeObject, RecordingStore() if store is None else store, resync_period, **chosen
    )


async def run_for(reflector: Reflector[Any], seconds: float) -> None:
    """Run it for so long, then cancel it."""
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(seconds)
    assert not task.done()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert reflector.state.phase is Phase.STOPPED


def plain_store() -> Store[KubeObject]:
    return Store(deletion_handling_meta_namespace_key_func)


def content(store: Store[KubeObject]) -> dict[str, str]:
    return {obj.key: obj.resource_version for obj in store.list()}


class Errors:
    """A watch error handler that remembers."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def __call__(self, reflector: Reflector[Any], error: Exception) -> None:
        self.errors.append(error)

    def __str__(self) -> str:
        return "; ".join(str(error) for error in self.errors)
