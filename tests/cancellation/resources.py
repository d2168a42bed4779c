"""Resource: a cancelled write was made or not, and the client stays usable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

from aioinformer import (
    CachedResource,
    Client,
    EventRecorder,
    LeaderElector,
    ListWatch,
    NotFoundError,
    Resource,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.client.transport import Change
from aioinformer.resources import Writes
from aioinformer.testing import APIServer

from .registry import Call, socket_case

KEY, NAME, POD = "default/subject", "example.com/f", {"containers": [{"name": "c", "image": "i"}]}

Written = dict[str, Any]


def subject(**fields: Any) -> Written:
    return {"metadata": {"name": "subject", "namespace": "default"}, **fields}


def at_the_server(resource: Resource[Written]) -> Writes[Written]:
    return resource


def beside_a_cache(resource: Resource[Written]) -> Writes[Written]:
    """With an informer that was not started: writes are only recorded."""
    endpoint = resource._endpoint
    list_watch = ListWatch.for_resource(endpoint.client, "v1", endpoint.addresses.collection.plural)
    return CachedResource(resource, SharedIndexInformer(list_watch, dict))


KINDS = {"Resource": at_the_server, "CachedResource": beside_a_cache}


def verb_case(
    name: str, call: Callable[[Writes[Written]], Coroutine[Any, Any, Any]], plural: str = "configmaps"
) -> None:
    """A method on an object that is created again for each run."""
    for kind, made in KINDS.items():
        add_verb_case(f"{kind}.{name}", made, call, plural)


def add_verb_case(
    name: str,
    made: Callable[[Resource[Written]], Writes[Written]],
    call: Callable[[Any], Coroutine[Any, Any, Any]],
    plural: str,
) -> None:
    @socket_case(name)
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        kind = {"configmaps": "ConfigMap", "pods": "Pod"}[plural]
        resource = Resource(client, "v1", plural, dict, kind=kind)
        with suppress(NotFoundError):
            await resource.delete(KEY, grace_period=0)
        if not name.endswith(".create"):
            await resource.create(subject(data={"k": "1"}) if plural == "configmaps" else subject(spec=POD))
        yield lambda: call(made(resource))
        with suppress(NotFoundError):
            await resource.drop_finalizer(KEY, NAME)
            assert (await resource.get(KEY))["metadata"]["name"] == "subject"


async def put_on_and_take_off(resource: Writes[Written]) -> None:
    assert await resource.ensure_finalizer(KEY, NAME)
    assert await resource.drop_finalizer(KEY, NAME)


add_verb_case("Resource.get", at_the_server, lambda resource: resource.get(KEY), "configmaps")
add_verb_case("Resource.list", at_the_server, lambda resource: resource.list("default"), "configmaps")
add_verb_case(
    "Resource.wait_for",
    at_the_server,
    lambda resource: resource.wait_for(KEY, "jsonpath={.data.k}=1"),
    "configmaps",
)
verb_case("create", lambda resource: resource.create(subject()))
verb_case("update", lambda resource: resource.update(subject(data={"k": "2"})))
verb_case("update_status", lambda resource: resource.update_status(subject(status={}, spec=POD)), "pods")
verb_case("patch", lambda resource: resource.patch(KEY, {"data": {"k": "2"}}))
verb_case(
    "patch_status", lambda resource: resource.patch_status(KEY, {"status": {"phase": "Running"}}), "pods"
)
verb_case("apply", lambda resource: resource.apply(subject(data={"l": "2"})))
verb_case("apply_status", lambda resource: resource.apply_status(subject(status={"message": "m"})), "pods")
verb_case("delete", lambda resource: resource.delete(KEY))
verb_case("evict", lambda resource: resource.evict(KEY), "pods")
verb_case("ensure_finalizer", put_on_and_take_off)
verb_case("drop_finalizer", put_on_and_take_off)


def namespace_case(name: str, call: Callable[[Writes[Written], str], Coroutine[Any, Any, Any]]) -> None:
    for kind, made in KINDS.items():
        add_namespace_case(f"{kind}.{name}", made, call)


def add_namespace_case(
    name: str,
    made: Callable[[Resource[Written]], Writes[Written]],
    call: Callable[[Writes[Written], str], Coroutine[Any, Any, Any]],
) -> None:
    @socket_case(name)
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        namespaces = Resource(client, "v1", "namespaces", dict, kind="Namespace", namespaced=False)
        namespace = await namespaces.create({"metadata": {"generateName": "n-"}})
        yield lambda: call(made(namespaces), namespace["metadata"]["name"])


async def finalize(namespaces: Writes[Written], name: str) -> None:
    await namespaces.finalize({"metadata": {"name": name}, "spec": {"finalizers": [NAME]}})


async def spec_finalizer(namespaces: Writes[Written], name: str) -> None:
    assert await namespaces.ensure_spec_finalizer(name, NAME)
    assert await namespaces.drop_spec_finalizer(name, NAME)


namespace_case("finalize", finalize)
namespace_case("ensure_spec_finalizer", spec_finalizer)
namespace_case("drop_spec_finalizer", spec_finalizer)


def cached_case(name: str, read: Callable[[CachedResource[Written]], Coroutine[Any, Any, Any]]) -> None:
    """A read that has to wait."""

    @socket_case(f"CachedResource.{name}")
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        resource = Resource(client, "v1", "configmaps", dict)
        async with SharedInformerFactory(client) as factory:
            informer = factory.for_resource("v1", "configmaps", dict)
            factory.start()
            await factory.wait_for_cache_sync()
            cached = CachedResource(resource, informer)
            with suppress(NotFoundError):
                await cached.delete(KEY)
            made = await cached.create(subject())
            yield lambda: read(cached)
            assert (await cached.get(KEY))["metadata"]["uid"] == made["metadata"]["uid"]
            assert len(informer.version_waits) == 0


cached_case("get", lambda cached: cached.get(KEY))
cached_case("list", lambda cached: cached.list())
cached_case("by_index", lambda cached: cached.by_index("namespace", "default"))


def elector_case(
    name: str, call: Callable[[LeaderElector], Coroutine[Any, Any, Any]], *, is_entered: bool
) -> None:
    """After a cancellation it does not lead. A Lease that it could not release has to expire."""

    @socket_case(f"LeaderElector.{name}")
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        elector = LeaderElector(client, "operator", "default", "subject")

        async def within_its_task() -> None:
            if is_entered:
                await elector.__aenter__()
            try:
                await call(elector)
            finally:
                if elector._renewing is not None:
                    await elector.__aexit__(None, None, None)

        yield within_its_task
        assert not elector._is_entered
        assert not elector.is_leader


elector_case("run", lambda elector: elector.run(lambda: asyncio.sleep(0)), is_entered=False)
elector_case("__aenter__", lambda elector: elector.__aenter__(), is_entered=False)
elector_case("__aexit__", lambda elector: elector.__aexit__(None, None, None), is_entered=True)


def recorder_case(
    name: str, call: Callable[[EventRecorder], Coroutine[Any, Any, Any]], *, ends: bool = True
) -> None:
    """After a cancellation no waiter remains."""

    @socket_case(f"EventRecorder.{name}", ends=ends)
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        recorder = EventRecorder(client, "example.com/subject")
        for number in range(3):
            reference = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": f"p{number}"}
            recorder.event(reference, "Normal", "Reason", "")
        if name == "__aexit__":
            await recorder.__aenter__()
        yield lambda: call(recorder)
        if name != "run" and recorder._task is not None:
            await recorder.__aexit__(None, None, None)
        assert recorder.state.queued == 0 or recorder._task is None
        assert recorder.state.sent + recorder.state.given_up == 3 or recorder.state.queued == 3


recorder_case("run", lambda recorder: recorder.run(), ends=False)
recorder_case("__aenter__", lambda recorder: recorder.__aenter__())
recorder_case("__aexit__", lambda recorder: recorder.__aexit__(None, None, None))


@socket_case("Client.send")
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    yield lambda: client.send(Change("POST", b'{"metadata":{"generateName":"n-"}}'), "/api/v1/namespaces")
