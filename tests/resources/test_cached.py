"""CachedResource: a read includes all own writes. The watch is frozen to see which reads wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from aioinformer import (
    CachedResource,
    Client,
    ConfigError,
    KubeObject,
    ListOptions,
    ListWatch,
    NotFoundError,
    Resource,
    SharedIndexInformer,
    SharedInformerFactory,
    StoppedError,
    SyncTimeout,
)
from aioinformer.errors import VersionTimeout
from aioinformer.informer import version_waits
from aioinformer.resources import cached
from aioinformer.testing import APIServer, Fault
from tests import samples

configmap = partial(samples.configmap, namespace="default")

PATIENCE = 20.0
KEY = "default/a"

Maps = CachedResource[KubeObject]


@pytest.fixture(autouse=True)
def _the_machine_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_waits, "DELETION_TIMEOUT", PATIENCE)


@asynccontextmanager
async def world(**options: Any) -> AsyncIterator[tuple[APIServer, Maps]]:
    """A server, a synced informer and a CachedResource with a long timeout."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        options.setdefault("timeout", PATIENCE)
        timeout, transform = options.pop("timeout"), options.pop("transform", None)
        async with SharedInformerFactory(client) as factory:
            informer = factory.for_resource("v1", "configmaps", **options)
            if transform is not None:
                informer.set_transform(transform)
            factory.start()
            await factory.wait_for_cache_sync()
            yield server, CachedResource(Resource(client, "v1", "configmaps"), informer, timeout=timeout)


async def require_blocked(task: asyncio.Task[Any]) -> None:
    """Check that an awaitable does not finish."""
    done, _ = await asyncio.wait({task}, timeout=0.1)
    assert not done


async def no_more_after(frozen: Fault, maps: Maps) -> None:
    """Check that a read waits until the watch continues, and then finds nothing."""
    read = asyncio.create_task(maps.get(KEY))
    await require_blocked(read)
    frozen.remove()
    with pytest.raises(NotFoundError, match=r"configmaps 'default/a' not found"):
        await read


async def test_reads_wait_for_own_writes_and_for_nothing_else() -> None:
    async with world() as (server, maps):
        other = await maps.create(configmap("b"))
        assert await maps.get(other.key) == other
        frozen = server.faults.freeze(verb="watch")
        written = await maps.create(configmap(k="1"))
        written = await maps.patch(written, {"data": {"k": "2"}})
        one = asyncio.create_task(maps.get(KEY))
        lists = [asyncio.create_task(read) for read in (maps.list(), maps.by_index("namespace", "default"))]
        for read in (one, *lists):
            await require_blocked(read)
        assert await maps.get(other.key) == other
        assert (maps.is_current(KEY), maps.is_current(other.key)) == (False, True)
        frozen.remove()
        obj = await one
        everything, of_index = await asyncio.gather(*lists)
        assert obj == written
        assert obj.resource_version == written.resource_version
        assert everything == of_index
        assert {obj.key for obj in everything if obj.name != "kube-root-ca.crt"} == {KEY, other.key}
        assert maps.is_current(KEY)
        assert repr(maps) == "<CachedResource configmaps>"


async def test_reads_wait_for_deletions() -> None:
    async with world() as (server, maps):
        held = await maps.create(configmap("a", "example.com/x"))
        assert await maps.get(KEY) == held
        frozen = server.faults.freeze(verb="watch")
        assert await maps.delete(held) is not None
        assert await maps.drop_finalizer(KEY, "example.com/x") is None
        await no_more_after(frozen, maps)


async def test_object_created_and_deleted_at_once_does_not_appear_later() -> None:
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(await maps.create(configmap()))
        await no_more_after(frozen, maps)  # the cache does not have the object yet
        assert await maps.list(selector=lambda obj: obj.key == KEY) == []


async def delete_by_others(maps: Maps, how: str) -> None:
    """Delete an object of others through the resource before the cache has seen it."""
    made = await maps.resource.get(KEY)
    if how == "object":
        assert await maps.delete(made) is None
    elif how == "version":
        assert await maps.delete(KEY, resource_version=made.resource_version) is None
    else:
        assert await maps.resource.delete(KEY) is not None
        assert await maps.drop_finalizer(KEY, "example.com/x") is None


async def delete_before_a_restore(maps: Maps) -> None:
    """Restore the server to before a deletion, whose version it has not reached again; uids stay the same."""
    made = (await maps.create(configmap())).to_dict()
    await maps.get(KEY)
    made["metadata"]["resourceVersion"] = "5000"
    await maps.delete(made)


def make_by_others(server: APIServer, how: str) -> None:
    server.create("v1", "configmaps", configmap("a", *(["example.com/x"] if how == "finalizer" else [])))


@pytest.mark.parametrize("how", ["object", "version", "finalizer"])
@pytest.mark.parametrize("older", [False, True])
async def test_deleted_object_of_others_that_the_cache_never_saw_is_not_found(how: str, older: bool) -> None:
    """The cache also drops an older object of that name."""
    async with world() as (server, maps):
        if older:
            await maps.get((await maps.create(configmap())).key)
        frozen = server.faults.freeze(verb="watch")
        if older:
            server.delete("v1", "configmaps", "a", "default")
        make_by_others(server, how)
        await delete_by_others(maps, how)
        await no_more_after(frozen, maps)
        assert await maps.list(selector=lambda obj: obj.key == KEY) == []
        assert not maps._written


@pytest.mark.parametrize("how", ["object", "version", "finalizer"])
async def test_read_waits_briefly_for_objects_outside_the_selectors(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_waits, "DELETION_TIMEOUT", 0.1)
    async with world(label_selector="app=web") as (server, maps):
        make_by_others(server, how)
        await delete_by_others(maps, how)
        assert await maps.list() == []
        assert not maps._written


async def test_read_waits_briefly_for_a_version_from_before_a_restore(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(version_waits, "DELETION_TIMEOUT", 0.1)
    async with world() as (_, maps):
        await delete_before_a_restore(maps)
        assert await maps.list() == []
        assert not maps._written


@pytest.mark.parametrize("patience", [0.0, 0.05])
async def test_read_waits_for_writes_after_a_restore(
    patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Including a higher version that was known before or afterwards."""
    monkeypatch.setattr(version_waits, "DELETION_TIMEOUT", patience)
    async with world() as (server, maps):
        await delete_before_a_restore(maps)
        frozen = server.faults.freeze(verb="watch")
        again = await maps.create(configmap())
        read = asyncio.create_task(maps.get(KEY))
        await require_blocked(read)
        frozen.remove()
        assert await read == again
        assert not maps._written


async def test_read_waits_longer_for_own_objects_than_for_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(version_waits, "DELETION_TIMEOUT", 0.0)
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        await maps.create(configmap())
        server.patch("v1", "configmaps", "a", {"data": {"k": "1"}})
        await delete_by_others(maps, "object")
        await no_more_after(frozen, maps)


async def test_read_waits_for_deletions_whose_versions_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(version_waits, "DELETION_TIMEOUT", 0.0)
    async with world() as (server, maps):
        first = await maps.create(configmap())
        await maps.get(KEY)
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(first)
        make_by_others(server, "object")
        await delete_by_others(maps, "object")
        await no_more_after(frozen, maps)


@pytest.mark.parametrize("how", ["key", "object", "finalizer"])
async def test_read_waits_for_a_deletion_when_others_of_its_name_are_deleted(how: str) -> None:
    async with world() as (server, maps):
        first = await maps.create(configmap())
        await maps.get(KEY)
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(first)
        for _ in range(3):
            make_by_others(server, how)
            if how == "key":
                assert await maps.delete(KEY) is None
            else:
                await delete_by_others(maps, how)
        await no_more_after(frozen, maps)
        assert not maps._written


async def test_object_recreated_by_others_is_returned() -> None:
    async with world() as (server, maps):
        old = await maps.create(configmap())
        await maps.get(KEY)
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(old)
        new = server.create("v1", "configmaps", configmap())
        frozen.remove()
        assert (await maps.get(KEY)).uid == new["metadata"]["uid"]


def without_uid(obj: KubeObject) -> KubeObject:
    fields = obj.to_dict()
    del fields["metadata"]["uid"]
    return KubeObject.from_dict(fields)


async def test_object_recreated_by_others_is_returned_without_uids_in_the_cache() -> None:
    """The server's answer decides, before the read would fail."""
    async with world(timeout=1.0, transform=without_uid) as (server, maps):
        made = await maps.create(configmap())
        await maps.informer.wait_for(made, PATIENCE)
        await maps.delete(made)
        new = server.create("v1", "configmaps", configmap(k="new"))
        await maps.informer.wait_for(new, PATIENCE)
        assert (await maps.get(KEY))["data"] == {"k": "new"}
        assert not maps._written


@pytest.mark.parametrize("undone", ["deletion", "update"])
async def test_change_undone_by_a_restore_is_noticed(undone: str) -> None:
    """As after ``etcdutl snapshot restore --bump-revision``, or when no list arrived in time."""
    async with world(timeout=1.0) as (_, maps):
        made = await maps.create(configmap())
        await maps.informer.wait_for(made, PATIENCE)
        if undone == "deletion":
            maps._record_removed(KEY, made.uid, "")
        else:
            newer = {**made.to_dict()["metadata"], "resourceVersion": "5000"}
            maps._record_written(KubeObject.from_dict({"metadata": newer}))
        assert made in await maps.list()
        assert not maps._written


async def test_server_that_does_not_answer_raises_version_timeout() -> None:
    async with world(timeout=0.3) as (server, maps):
        made = await maps.create(configmap())
        await maps.informer.wait_for(made, PATIENCE)
        for verb in ("watch", "get"):
            server.faults.freeze(verb=verb)
        await maps.delete(made)
        async with asyncio.timeout(5):
            with pytest.raises(VersionTimeout, match=r"not without default/a after 0\.3 s"):
                await maps.get(KEY)


async def test_object_recreated_after_a_deletion_without_uid_is_returned() -> None:
    async with world() as (server, maps):
        maps._record_removed(KEY, "", "")
        frozen = server.faults.freeze(verb="watch")
        again = await maps.create(configmap())
        frozen.remove()
        async with asyncio.timeout(PATIENCE / 2):
            assert await maps.get(KEY) == again


async def test_object_recreated_here_is_returned() -> None:
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(await maps.create(configmap(k="1")))
        again = await maps.create(configmap(k="2"))
        frozen.remove()
        assert await maps.get(KEY) == again


async def test_answers_may_arrive_out_of_order() -> None:
    """Answers need not arrive in the order of the writes."""
    async with world() as (server, maps):
        first = await maps.resource.create(configmap(k="1"))
        second = await maps.resource.patch(first, {"data": {"k": "2"}})
        frozen = server.faults.freeze(verb="watch")
        third = await maps.patch(first, {"data": {"k": "3"}})
        maps._record_written(second)
        read = asyncio.create_task(maps.get(KEY))
        await require_blocked(read)
        frozen.remove()
        assert await read == third
        await maps.delete(third)
        maps._record_written(third)
        with pytest.raises(NotFoundError):
            await maps.get(KEY)


async def test_late_answer_about_a_predecessor_is_ignored_after_a_deletion() -> None:
    async with world() as (server, maps):
        late = await maps.create(configmap())
        await maps.get(KEY)
        server.delete("v1", "configmaps", "a", "default")
        await maps.informer.wait_for(server.create("v1", "configmaps", configmap()), PATIENCE)
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(KEY)
        maps._record_written(late)
        await no_more_after(frozen, maps)


@pytest.mark.parametrize("gone", [False, True])
async def test_cache_that_stays_behind_is_named_in_the_error(gone: bool) -> None:
    async with world(timeout=0.2) as (server, maps):
        obj = await maps.create(configmap())
        await maps.get(KEY)
        server.faults.freeze(verb="watch")
        if gone:
            await maps.delete(obj)
            wanted = "without default/a"
        else:
            wanted = f"default/a at {(await maps.patch(obj, {'data': {'k': '1'}})).resource_version}"
        started = asyncio.get_running_loop().time()
        reads: list[Callable[[], Awaitable[Any]]] = [lambda: maps.get(KEY), maps.list]
        for read in reads:
            with pytest.raises(
                VersionTimeout, match=rf"configmaps: not {wanted} after 0\.2 s: reached \d+; "
            ):
                await read()
        assert asyncio.get_running_loop().time() - started < 5
        assert maps._written
        server.faults.thaw()
        for _ in range(100):
            try:
                await maps.list()
                break
            except VersionTimeout:
                continue
        assert not maps._written


async def test_all_waits_of_a_read_share_one_deadline() -> None:
    async with world(timeout=0.5) as (server, maps):
        server.faults.freeze(verb="watch")
        for number in range(5):
            await maps.create(configmap(f"m{number}"))
        started = asyncio.get_running_loop().time()
        with pytest.raises(VersionTimeout):
            await maps.list()
        assert asyncio.get_running_loop().time() - started < 2


async def test_writes_outside_the_informers_namespaces_are_not_waited_for() -> None:
    async with world(namespaces=["default", "kube-public"]) as (_, maps):
        await maps.create(configmap("a", namespace="kube-system"))
        await maps.delete("kube-system/a")
        made = await maps.create(configmap("a", namespace="kube-public"))
        assert not any(key.startswith("kube-system") for key in maps._written)
        assert await maps.get(made.key) == made
        assert await maps.list("kube-public", lambda obj: obj.name == "a") == [made]


@pytest.mark.parametrize("options", [{"namespaces": ["default", "kube-public"]}, {"namespace": "default"}])
async def test_reading_a_namespace_outside_the_informer_is_refused(
    options: dict[str, Any],
) -> None:
    """An empty result would look like a namespace without objects."""
    async with world(**options) as (_, maps):
        made = await maps.create(configmap("a", namespace="kube-system"))
        with pytest.raises(ConfigError, match=r"does not read the namespace 'kube-system'"):
            await maps.get(made.key)
        with pytest.raises(ConfigError, match=r"does not read the namespace 'kube-system'"):
            await maps.list("kube-system")
        assert await maps.list() == await maps.list("default") == []
        assert await maps.resource.get(made.key) == made


async def test_unsynced_or_stopped_informer_raises() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        frozen = server.faults.freeze()
        async with SharedInformerFactory(client) as factory:
            informer: SharedIndexInformer[KubeObject] = factory.for_resource("v1", "configmaps")
            maps = CachedResource(Resource(client, "v1", "configmaps"), informer, timeout=0.1)
            with pytest.raises(SyncTimeout):
                await maps.get(KEY)
            frozen.remove()
            await informer.wait_synced(PATIENCE)
            with pytest.raises(NotFoundError):
                await maps.get(KEY)
            made = await maps.create(configmap())
            await maps.get(KEY)
            server.faults.freeze(verb="watch")
            await maps.patch(made, {"data": {"k": "1"}})
        with pytest.raises(StoppedError):
            await maps.get(KEY)
        with pytest.raises(ConfigError):
            await maps.get("a")


async def test_informer_with_its_own_key_func_is_refused() -> None:
    async with Client.from_url("http://localhost:1") as client:
        list_watch = ListWatch.for_resource(client, "v1", "configmaps")
        informer = SharedIndexInformer(list_watch, KubeObject, key_func=lambda obj: obj.uid)
        with pytest.raises(ConfigError, match="configmaps has its own key_func"):
            CachedResource(Resource(client, "v1", "configmaps"), informer)


async def test_resource_and_informer_must_match() -> None:
    async with Client.from_url("http://127.0.0.1:1") as client:
        maps = Resource(client, "v1", "configmaps")
        factory = SharedInformerFactory(client)
        for informer in (
            factory.for_resource("v1", "configmaps", namespaces=["a", "b"]),
            factory.for_resource("v1", "configmaps", metadata_only=True),
            SharedIndexInformer(ListWatch(nothing, nothing), KubeObject),
        ):
            CachedResource(maps, informer)
        pods = factory.for_resource("v1", "pods", namespaces=["a", "b"])
        with pytest.raises(
            ConfigError, match="the informer reads pods in a, and the resource is of configmaps"
        ):
            CachedResource(maps, pods)
        with pytest.raises(ConfigError, match="CachedResource needs a Resource and an informer, not <Shared"):
            CachedResource(pods, maps)  # type: ignore[arg-type]


async def nothing(options: ListOptions) -> Any:
    raise AssertionError("it is not read")


async def test_writes_that_no_read_waits_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "_SWEEP_AT", 10)
    async with world() as (_, maps):
        maps._sweep_at = 10
        for number in range(60):
            made = await maps.create(configmap(f"m{number}"))
            if number % 3 == 0:
                await maps.delete(made)
            await maps.informer.wait_for(made, PATIENCE)
        assert len(maps._written) <= 22


async def test_cancelled_read_leaves_the_write_to_the_next_read() -> None:
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        made = await maps.create(configmap())
        read = asyncio.create_task(maps.get(KEY))
        await require_blocked(read)
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
        assert len(maps.informer.version_waits) == 0
        frozen.remove()
        assert await maps.get(KEY) == made


async def test_concurrent_writers_read_their_own_writes() -> None:
    async with world() as (server, maps):

        async def come_and_go(number: int) -> None:
            name = f"m{number}"
            for turn in range(5):
                obj = await maps.create(configmap(name, k=str(turn)))
                assert (await maps.get(obj.key))["data"] == {"k": str(turn)}
                if turn % 2:
                    server.faults.drop_watches()
                obj = await maps.apply({"kind": "ConfigMap", **configmap(name, l="x")}, force=True)
                assert (await maps.get(obj.key))["data"]["l"] == "x"
                assert obj.key in {config_map.key for config_map in await maps.list()}
                await maps.delete(obj)
                with pytest.raises(NotFoundError):
                    await maps.get(obj.key)

        await asyncio.gather(*(come_and_go(number) for number in range(8)))
        assert not maps._written
