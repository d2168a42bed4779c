"""Whose context variables informers see: not those of a request that happened to ask first."""

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


class Request:
    """What a web framework keeps in a context variable."""


who: ContextVar[str] = ContextVar("who", default="nobody")
current: ContextVar[Request] = ContextVar("current")


class Listening(FakeTransport):
    """One that notes who asks."""

    async def stream(self, *args: Any, **options: Any) -> Any:
        self.askers.add(who.get())
        return await super().stream(*args, **options)

    def __init__(self) -> None:
        super().__init__()
        self.askers: set[str] = set()


async def wait_synced(factory: SharedInformerFactory, informer: SharedIndexInformer[Any]) -> None:
    await informer.wait_synced()


async def wait_for_cache_sync(factory: SharedInformerFactory, informer: SharedIndexInformer[Any]) -> None:
    await factory.wait_for_cache_sync()


@pytest.mark.parametrize("wait", [wait_synced, wait_for_cache_sync])
@virtual_time
async def test_an_informer_that_a_request_asked_for_runs_in_the_factorys_context(
    wait: Callable[..., Awaitable[None]],
) -> None:
    async def request() -> weakref.ref[Request]:
        current.set(asked := Request())
        who.set("request")
        await wait(subject, subject.for_resource("v1", "pods"))
        return weakref.ref(asked)

    transport = Listening()
    who.set("lifespan")
    async with factory(transport) as subject:
        who.set("somebody later")
        asked = await asyncio.create_task(request())
        await asyncio.sleep(
            60
        )  # the event loop keeps cancelled timers, and so their context, until they were due
        gc.collect()
        assert asked() is None
        assert transport.askers == {"lifespan"}
