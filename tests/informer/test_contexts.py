"""Informers run in the factory's context, not in that of the request that created them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from aioinformer import SharedIndexInformer, SharedInformerFactory

from ..virtual_time import virtual_time
from .test_factory import FakeTransport, factory


class HandlerCall:
    """A request that a web framework keeps in a context variable."""


caller: ContextVar[str] = ContextVar("caller", default="none")
current: ContextVar[HandlerCall] = ContextVar("current")


class RecordingTransport(FakeTransport):
    """A transport that records the caller of each request."""

    async def stream(self, *args: Any, **options: Any) -> Any:
        self.callers.add(caller.get())
        return await super().stream(*args, **options)

    def __init__(self) -> None:
        super().__init__()
        self.callers: set[str] = set()


async def wait_synced(factory: SharedInformerFactory, informer: SharedIndexInformer[Any]) -> None:
    await informer.wait_synced()


async def wait_for_cache_sync(factory: SharedInformerFactory, informer: SharedIndexInformer[Any]) -> None:
    await factory.wait_for_cache_sync()


@pytest.mark.parametrize("wait", [wait_synced, wait_for_cache_sync])
@virtual_time
async def test_informer_created_by_a_request_runs_in_the_factorys_context(
    wait: Callable[..., Awaitable[None]],
) -> None:
    async def request() -> weakref.ref[HandlerCall]:
        current.set(asked := HandlerCall())
        caller.set("request")
        await wait(subject, subject.for_resource("v1", "pods"))
        return weakref.ref(asked)

    transport = RecordingTransport()
    caller.set("lifespan")
    async with factory(transport) as subject:
        caller.set("later")
        asked = await asyncio.create_task(request())
        await asyncio.sleep(60)  # the event loop keeps cancelled timers and their contexts until their time
        gc.collect()
        assert asked() is None
        assert transport.callers == {"lifespan"}
