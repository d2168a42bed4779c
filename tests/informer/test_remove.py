"""SharedInformerFactory.remove: stop and drop one informer."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import (
    ConfigError,
    KubeObject,
    ResourceEventHandlerFuncs,
    SharedInformerFactory,
    StoppedError,
)
from aioinformer.errors import InformerError

from ..virtual_time import settle, virtual_time
from .subject import BY, By
from .test_factory import FakeTransport, factory


@virtual_time
async def test_factory_is_ready_after_removal_of_a_failing_informer() -> None:
    subject = factory(transport := FakeTransport())
    pods = subject.for_resource("v1", "pods", namespace="red")
    async with subject:
        gone = subject.for_resource("example.com/v1", "missing", namespace="red")
        await pods.wait_synced(timeout=10)
        assert not subject.ready()
        await subject.remove(gone)
        assert gone.is_stopped
        assert subject.informers == [pods]
        assert subject.ready()
        await subject.wait_for_cache_sync(timeout=10)
        with pytest.raises(StoppedError):
            await gone.wait_synced(10)
        asked = [path for path in transport.paths() if "missing" in path]
        await asyncio.sleep(600)
        assert [path for path in transport.paths() if "missing" in path] == asked


@virtual_time
async def test_for_resource_after_removal_returns_a_new_informer() -> None:
    async with factory(FakeTransport()) as subject:
        pods = subject.for_resource("v1", "pods", namespace="red")
        await pods.wait_synced(timeout=10)
        await subject.remove(pods)
        again = subject.for_resource("v1", "pods", namespace="red")
        assert again is not pods
        assert again.name == pods.name
        await again.wait_synced(timeout=10)


@virtual_time
async def test_remove_of_foreign_informer_is_refused() -> None:
    async with factory(FakeTransport()) as subject:
        pods = subject.for_resource("v1", "pods", namespace="red")
        with pytest.raises(ConfigError, match="is not an informer of <SharedInformerFactory of pods in red>"):
            await subject.remove(factory(FakeTransport()).for_resource("v1", "pods", namespace="red"))
        await subject.remove(pods)
        with pytest.raises(ConfigError, match="is not an informer of <SharedInformerFactory of nothing>"):
            await subject.remove(pods)


@virtual_time
async def test_create_and_remove_in_the_same_iteration() -> None:
    async with factory(transport := FakeTransport()) as subject:
        pods = subject.for_resource("v1", "pods", namespace="red")
        await subject.remove(pods)
        await settle()
        assert not transport.asked
        with pytest.raises(StoppedError):  # it does not wait for ever
            await pods.wait_synced(10)


@virtual_time
async def test_remove_before_start() -> None:
    subject = factory(transport := FakeTransport())
    await subject.remove(subject.for_resource("v1", "pods", namespace="red"))
    async with subject:
        await settle()
        assert not transport.asked


@virtual_time
async def test_remove_does_not_stop_an_informer_it_did_not_start() -> None:
    subject = factory(FakeTransport())
    pods = subject.for_resource("v1", "pods", namespace="red")
    async with pods, subject:
        await subject.remove(pods)
        assert not pods.is_stopped
        assert not subject.informers


@virtual_time
async def test_remove_raises_the_informers_error() -> None:
    subject = factory(FakeTransport())
    pods = subject.for_resource("v1", "pods", namespace="red")

    async def fail() -> None:
        raise ZeroDivisionError

    pods.run = fail  # type: ignore[method-assign]
    async with subject:
        await settle()
        with pytest.raises(ZeroDivisionError):
            await subject.remove(pods)
        assert not subject.informers


@virtual_time
async def test_cancelled_remove_still_removes() -> None:
    async with factory(transport := FakeTransport()) as subject:
        pods = subject.for_resource("v1", "pods", namespace="red")
        await pods.wait_synced(timeout=10)
        removing = asyncio.create_task(subject.remove(pods))
        await asyncio.sleep(0)
        removing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await removing
        assert pods.is_stopped
        assert not subject.informers
        assert not transport.bodies


@pytest.mark.parametrize("by", BY)
@virtual_time
async def test_remove_from_inside_its_handler_is_refused(by: By) -> None:
    subject = factory(FakeTransport())
    refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def remove(obj: KubeObject, is_in_initial_list: bool) -> None:
        try:
            await by(subject.remove(pods))
        except InformerError as error:
            refused.set_result(str(error))

    pods = subject.for_resource("v1", "pods")
    pods.add_event_handler(ResourceEventHandlerFuncs(on_add=remove))
    async with subject:
        assert "inside its own handler" in await refused
        assert subject.informers == [pods]


class SlowRemoval:
    """The removal of an informer whose handler takes a minute to clean up."""

    def __init__(self, subject: SharedInformerFactory) -> None:
        self.subject = subject
        self.informer = subject.for_resource("v1", "pods")
        self.informer.add_event_handler(ResourceEventHandlerFuncs(on_add=self._on_add))
        self.has_cleaned_up = False
        self._started = asyncio.Event()

    async def _on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(60)
            self.has_cleaned_up = True

    async def begin(self) -> asyncio.Task[None]:
        await self._started.wait()
        task = asyncio.create_task(self.subject.remove(self.informer))
        await asyncio.sleep(1)
        assert not task.done()
        return task


@virtual_time
async def test_exit_waits_for_a_running_removal() -> None:
    async with factory(FakeTransport()) as subject:
        removed = SlowRemoval(subject)
        removing = await removed.begin()
    assert removed.has_cleaned_up
    await removing


@virtual_time
async def test_two_removals_at_once_both_wait() -> None:
    async with factory(FakeTransport()) as subject:
        removed = SlowRemoval(subject)
        removing = await removed.begin()
        await subject.remove(removed.informer)
        assert removed.has_cleaned_up
        await removing


@virtual_time
async def test_informer_is_gone_from_the_factory_during_removal() -> None:
    async with factory(FakeTransport()) as subject:
        removed = SlowRemoval(subject)
        removing = await removed.begin()
        await subject.wait_for_cache_sync(timeout=10)
        assert not subject.informers
        again = subject.for_resource("v1", "pods")
        assert again is not removed.informer
        await again.wait_synced(timeout=10)
        await removing


@virtual_time
async def test_handlers_that_remove_each_others_informers_do_not_deadlock() -> None:
    subject = factory(FakeTransport())
    both = asyncio.Barrier(2)
    refused: list[str] = []

    def add(number: int, other: int) -> None:
        async def remove(obj: KubeObject, is_in_initial_list: bool) -> None:
            await both.wait()
            try:
                await subject.remove(informers[other])
            except InformerError as error:
                refused.append(str(error))

        informers[number].add_event_handler(ResourceEventHandlerFuncs(on_add=remove))

    informers = [subject.for_resource("v1", "pods", label_selector=f"app!={n}") for n in range(2)]
    add(0, 1)
    add(1, 0)
    async with subject:
        await asyncio.sleep(60)
        assert len(subject.informers) == len(refused) == 1
