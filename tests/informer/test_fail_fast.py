"""wait_synced(fail_fast=True): a permanent refusal of the first list ends the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from aioinformer import (
    ApiError,
    Client,
    ConfigError,
    KubeObject,
    ListWatch,
    SharedIndexInformer,
    SharedInformerFactory,
    StoppedError,
    SyncTimeout,
    TransportError,
    new_informer,
    wait_for_cache_sync,
)
from aioinformer.testing import APIServer

from ..reflector.scripted import FOREVER, ListAnswer, Scripted, error_event, page, raw_pod
from ..virtual_time import settle, virtual_time
from .handlers import Follower

FORBIDDEN = ApiError(403, "Forbidden", "not you")


def informer(*lists: ListAnswer) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(Scripted(lists), KubeObject)


@virtual_time
async def test_permanent_refusal_ends_the_wait_and_the_informer_continues() -> None:
    loop = asyncio.get_running_loop()
    for error in (*(ApiError(status, "No", "no") for status in (400, 401, 403, 404, 405)), ConfigError("no")):
        subject = informer(error, page(raw_pod("a"), version=1))
        async with subject:
            started = loop.time()
            with pytest.raises(type(error)) as caught:
                await subject.wait_synced(60, fail_fast=True)
            assert caught.value is error
            assert loop.time() == started
            await subject.wait_synced()


@virtual_time
async def test_transient_errors_do_not_end_the_wait() -> None:
    errors = [ApiError(status) for status in (410, 429, 500, 503, 504)]
    subject = informer(*errors, TransportError("refused"), ValueError("?"), page(version=1))
    async with subject:
        await subject.wait_synced(600, fail_fast=True)


@virtual_time
async def test_without_fail_fast_only_the_timeout_ends_the_wait() -> None:
    subject = informer(*[FORBIDDEN] * 100)
    async with subject:
        with pytest.raises(SyncTimeout, match="403 Forbidden: not you"):
            await subject.wait_synced(60)


@virtual_time
async def test_later_wait_fails_at_once_until_the_next_try() -> None:
    subject = informer(FORBIDDEN, 5.0, page(version=1))
    async with subject:
        await settle()
        with pytest.raises(ApiError, match="not you"):
            await subject.wait_synced(fail_fast=True)
        await asyncio.sleep(3)  # the next try has started
        await subject.wait_synced(fail_fast=True)


@virtual_time
async def test_errors_after_the_first_list_do_not_end_a_handlers_wait() -> None:
    server = Scripted(
        [FORBIDDEN, page(raw_pod("a"), version=1), *[FORBIDDEN] * 10], [[error_event(403, "Forbidden")]]
    )
    subject = SharedIndexInformer(server, KubeObject)
    registration = subject.add_event_handler(Follower(seconds=30.0))
    async with subject:
        await asyncio.sleep(20)
        assert len(server.lists) > 2
        assert not registration.has_synced()
        await registration.wait_synced(fail_fast=True)


@virtual_time
async def test_registration_and_controller_support_fail_fast() -> None:
    subject = informer(FORBIDDEN)
    registration = subject.add_event_handler(Follower())
    async with subject:
        with pytest.raises(ApiError, match="not you"):
            await registration.wait_synced(60, fail_fast=True)
    _, controller = new_informer(Scripted([FORBIDDEN]), KubeObject, 0.0, Follower())
    async with controller:
        with pytest.raises(ApiError, match="not you"):
            await controller.wait_synced(60, fail_fast=True)


@virtual_time
async def test_refusal_of_any_namespace_ends_the_wait() -> None:
    unanswered: list[ListAnswer] = [FOREVER]
    listed: list[ListAnswer] = [page(version=1)]
    refused: list[ListAnswer] = [5.0, FORBIDDEN]
    for other in (unanswered, listed):
        subject = SharedIndexInformer({"a": Scripted(other), "b": Scripted(refused)}, KubeObject)
        async with subject:
            with pytest.raises(ApiError, match="not you"):
                await subject.wait_synced(60, fail_fast=True)


@virtual_time
async def test_informer_that_starts_later_and_informer_that_stops() -> None:
    late = informer(FORBIDDEN)
    waiting = asyncio.create_task(late.wait_synced(fail_fast=True))
    await asyncio.sleep(10)
    async with late:
        with pytest.raises(ApiError, match="not you"):
            await waiting
    with pytest.raises(StoppedError):
        await late.wait_synced(fail_fast=True)


@virtual_time
async def test_first_refusal_of_many_informers_ends_the_wait() -> None:
    first, second = informer(FOREVER), informer(3.0, FORBIDDEN)
    async with first, second:
        with pytest.raises(ApiError, match="not you"):
            await wait_for_cache_sync(first, second, timeout=60, fail_fast=True)


WAITS: dict[str, Callable[[SharedInformerFactory], Coroutine[Any, Any, object]]] = {
    "factory": lambda factory: factory.wait_for_cache_sync(timeout=30, fail_fast=True),
    "informer": lambda factory: factory.informers[0].wait_synced(timeout=30, fail_fast=True),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("use_watch_list", [True, False])
async def test_bad_selector_unknown_resource_and_forbidden_end_the_wait(
    use_watch_list: bool, wait: Callable[[SharedInformerFactory], Coroutine[Any, Any, object]]
) -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.faults.fail(403, times=None, resource="secrets", message="not you")
        for asked, status in (
            (("v1", "pods", "app in (web"), 400),
            (("example.com/v1", "absent", None), 404),
            (("v1", "secrets", None), 403),
        ):
            version, plural, selector = asked
            async with SharedInformerFactory(client, use_watch_list=use_watch_list) as factory:
                factory.for_resource(version, plural, label_selector=selector)
                factory.start()
                with pytest.raises(ApiError) as caught:
                    await wait(factory)
                assert caught.value.status == status


async def test_missing_kubeconfig_ends_the_wait() -> None:
    client = Client.from_kubeconfig(path="/nowhere/config")
    async with SharedIndexInformer(ListWatch.for_resource(client, "v1", "pods"), KubeObject) as subject:
        with pytest.raises(ConfigError, match="/nowhere/config"):
            await subject.wait_synced(timeout=30, fail_fast=True)
    await client.close()
