"""An informer on a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from aioinformer import (
    KubeObject,
    SharedIndexInformer,
)

from ..reflector.running import NoJitter
from ..reflector.scripted import Scripted, Step, page, raw_pod

KEPT: dict[str, Any] = {}
"""The default storage options, which the fixture ``kept`` sets."""

By = Callable[[Coroutine[Any, Any, None]], Awaitable[object]]

BY: list[Any] = [
    pytest.param(lambda coroutine: coroutine, id="itself"),
    pytest.param(lambda coroutine: asyncio.wait_for(coroutine, 100), id="wait_for"),
    pytest.param(asyncio.gather, id="gather"),
    pytest.param(asyncio.shield, id="shield"),
]
"""Ways to await a coroutine: in the current task, or in a task of its own."""


def informer(server: Scripted, **options: Any) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(server, KubeObject, random=NoJitter(), **(KEPT | options))


def informer_of(*names: str, watch: list[Step] | None = None) -> SharedIndexInformer[KubeObject]:
    watches = [] if watch is None else [watch]
    items = [raw_pod(name, version) for version, name in enumerate(names, 1)]
    return SharedIndexInformer(Scripted([page(*items, version=10)], watches), KubeObject)


def versions_in_cache(informer: SharedIndexInformer[KubeObject]) -> dict[str, str]:
    return {obj.key: obj.resource_version for obj in informer.store.list()}
