"""A failing server: the informer logs the problem, keeps its cache, and continues afterwards."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from aioinformer import ApiError, Client, KubeObject, ListWatch, TransportError
from aioinformer._core.tasks import finish
from aioinformer.cache import Phase
from aioinformer.errors import IdleTimeoutError
from aioinformer.reflector import watch
from aioinformer.testing import APIServer
from tests.samples import configmap

from .api import CONFIGMAPS
from .clusters import EmbeddedCluster
from .witness import Log, run_informer, start_informer, versions, versions_in_cache

OBJECTS = 40
soon_again = pytest.mark.usefixtures("soon_again")
both_ways = pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])


@pytest.fixture
def cluster(embedded: EmbeddedCluster) -> EmbeddedCluster:
    for number in range(OBJECTS):
        embedded.server.create("v1", "configmaps", configmap(f"c{number}"), embedded.namespace)
    return embedded


@pytest.fixture
def server(cluster: EmbeddedCluster) -> APIServer:
    return cluster.server


@pytest.fixture
def list_watch(cluster: EmbeddedCluster, client: Client) -> ListWatch:
    return cluster.list_watch(client, CONFIGMAPS)


def change(cluster: EmbeddedCluster) -> dict[str, str]:
    """Delete, change and create objects while the informer is disconnected; return the new state."""
    server, namespace = cluster.server, cluster.namespace
    server.delete("v1", "configmaps", "c1", namespace)
    server.patch("v1", "configmaps", "c2", {"data": {"k": "2"}}, namespace)
    server.create("v1", "configmaps", configmap("new"), namespace)
    return server.snapshot("v1", "configmaps", namespace)


def expire(server: APIServer) -> None:
    """Make the informer relist."""
    server.faults.expire_history()
    server.faults.drop_watches(mid_line=True)


@soon_again
@both_ways
async def test_a_server_that_never_answers(
    cluster: EmbeddedCluster, server: APIServer, list_watch: ListWatch, log: Log, use_watch_list: bool
) -> None:
    server.faults.freeze(resource="configmaps")
    options: dict[str, Any] = {"use_watch_list": use_watch_list, "list_timeout": 0.3, "logged": True}
    async with start_informer(list_watch, KubeObject, **options) as (informer, _):
        await log.until("WARNING", f"configmaps in {cluster.namespace}", "0.3 s")
        assert isinstance(informer.state.last_error, TransportError)
        assert informer.state.idle_seconds is None
        assert not informer.has_synced()
        server.faults.thaw()
        await informer.wait_synced(20)
        assert len(informer.store) == OBJECTS


@soon_again
async def test_a_server_that_goes_away_in_the_middle_of_a_page(
    cluster: EmbeddedCluster, server: APIServer, list_watch: ListWatch
) -> None:
    async with run_informer(list_watch, KubeObject, use_watch_list=False, page_size=15) as (
        informer,
        witness,
    ):
        before = versions_in_cache(informer)
        truncations = [
            server.faults.truncate(matching=lambda request: request.is_continue),
            server.faults.truncate(fraction=0.1),
            server.faults.truncate(fraction=1.0),
        ]
        expire(server)
        after = change(cluster)
        await witness.until(lambda: len(witness.errors) >= 3)
        assert versions_in_cache(informer) == before  # half a list changes nothing
        await witness.until_shadow(after)
        assert versions_in_cache(informer) == after
        assert [truncation.hits for truncation in truncations] == [1, 1, 1]
        assert sum(isinstance(error, TransportError) for error in witness.errors) >= 3
        assert witness.kinds(cluster.key("c1")) == ["add", "missed"]


@both_ways
async def test_retry_after_is_honoured(
    cluster: EmbeddedCluster, server: APIServer, list_watch: ListWatch, soon_again: None, use_watch_list: bool
) -> None:
    server.faults.fail(429, retry_after=1, resource="configmaps", times=2)
    async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        assert len(informer.store) == OBJECTS
        refused = [request.time for request in server.requests if request.resource == "configmaps"][:3]
        assert all(later - earlier >= 1 for earlier, later in pairwise(refused))
        assert [error.retry_after for error in witness.errors if isinstance(error, ApiError)] == [1.0, 1.0]
        server.create("v1", "configmaps", configmap("seen"), cluster.namespace)
        await witness.until(lambda: cluster.key("seen") in witness.shadow)
        server.faults.fail(429, retry_after=1, verb="watch")
        server.faults.drop_watches(mid_line=True)
        await witness.until(lambda: len(witness.errors) == 4)  # the cut, and the refusal
        after = change(cluster)
        await witness.until_shadow(after)
        last, again = [request.time for request in server.requests if request.verb == "watch"][-2:]
        assert again - last >= 1
        assert witness.kinds(cluster.key("c1")) == [
            "add",
            "delete",
        ]  # an overloaded server has lost no history


@soon_again
@both_ways
@pytest.mark.parametrize("status", [500, 503])
async def test_a_server_that_fails(
    cluster: EmbeddedCluster,
    server: APIServer,
    list_watch: ListWatch,
    log: Log,
    use_watch_list: bool,
    status: int,
) -> None:
    failing = server.faults.fail(status, times=None, resource="configmaps")
    async with start_informer(list_watch, KubeObject, use_watch_list=use_watch_list, logged=True) as (
        informer,
        witness,
    ):
        await log.until("WARNING", f"configmaps in {cluster.namespace}", str(status))
        error = informer.state.last_error
        assert isinstance(error, ApiError)
        assert error.status == status
        failing.remove()
        await informer.wait_synced(20)
        await witness.until(lambda: server.open_watches)
        failing = server.faults.fail(status, times=2, resource="configmaps")
        server.faults.watch_error(code=status)
        await log.until(f"at {informer.last_sync_resource_version}: {status} ")
        after = change(cluster)
        await witness.until_shadow(after)
        assert failing.hits == 2
        assert versions_in_cache(informer) == after


async def test_a_watch_that_falls_silent(
    cluster: EmbeddedCluster,
    server: APIServer,
    list_watch: ListWatch,
    soon_again: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half-open: the connection stays open, but no data and no end arrive."""
    monkeypatch.setattr(watch, "IDLE_GRACE", 0.3)
    async with run_informer(list_watch, KubeObject, min_watch_timeout=1) as (informer, witness):
        old = [id(request) for request in server.requests]
        frozen = server.faults.freeze(verb="watch", matching=lambda request: id(request) in old)
        after = change(cluster)
        await witness.until(lambda: witness.errors)
        assert isinstance(witness.errors[0], IdleTimeoutError)
        assert f"configmaps in {cluster.namespace}: " in str(informer.state)
        await witness.until_shadow(after)
        assert informer.state.reflectors[0].lists == 1
        assert witness.kinds(cluster.key("c1")) == ["add", "delete"]
        frozen.remove()


@soon_again
async def test_missing_closing_bookmark_falls_back_to_a_list(
    cluster: EmbeddedCluster, server: APIServer, list_watch: ListWatch, log: Log
) -> None:
    lost = server.faults.lose_closing_bookmark(times=None)
    options: dict[str, Any] = {"initial_events_timeout": 0.3, "use_watch_list": True, "logged": True}
    async with run_informer(list_watch, KubeObject, **options) as (informer, witness):
        await log.until("INFO", "the server has no streaming lists")
        for round_ in range(3):
            server.create("v1", "configmaps", configmap(f"round{round_}"), cluster.namespace)
            expire(server)
            await witness.until_shadow(server.snapshot("v1", "configmaps", cluster.namespace))
        streamed = [request for request in server.requests if "sendInitialEvents" in request.query]
        assert (len(streamed), lost.hits) == (1, 1)
        assert server.count("list", "configmaps") >= 2
        assert len(versions_in_cache(informer)) == OBJECTS + 3


@pytest.mark.parametrize("mid_line", [False, True], ids=["ended", "cut"])
async def test_watches_that_close_empty_again_and_again_do_not_spin(
    cluster: EmbeddedCluster, server: APIServer, list_watch: ListWatch, mid_line: bool
) -> None:
    async def close_all() -> None:
        while True:
            server.faults.drop_watches(mid_line=mid_line)
            await asyncio.sleep(0.01)

    async with run_informer(list_watch, KubeObject, use_watch_list=False) as (informer, witness):
        closing = asyncio.create_task(close_all())
        await asyncio.sleep(2)  # to count what happens meanwhile, there is no other way
        await finish(closing)
        assert 1 <= server.count("watch", "configmaps") <= 5
        assert 1 <= server.count("list", "configmaps") <= 5
        assert len(informer.store) == OBJECTS
        after = change(cluster)
        await witness.until_shadow(after)


@soon_again
async def test_a_server_that_refuses_connections(
    cluster: EmbeddedCluster, server: APIServer, list_watch: ListWatch, log: Log
) -> None:
    async with run_informer(list_watch, KubeObject, logged=True) as (informer, witness):
        before = versions_in_cache(informer)
        server.faults.refuse(cut=True)
        await log.until("WARNING", "watch configmaps", "broke off")
        line = await log.until("WARNING", server.url, "cannot be reached")
        assert "cannot connect" in line
        assert informer.state.phase is Phase.BACKING_OFF
        assert informer.state.reflectors[0].waiting_for == server.url
        assert isinstance(informer.state.last_error, TransportError)
        assert "last error" in str(informer.state)
        assert versions_in_cache(informer) == before
        assert informer.has_synced()
        after = change(cluster)
        await server.faults.accept()
        await witness.until_shadow(after)
        assert versions_in_cache(informer) == after == versions(await cluster.list(CONFIGMAPS))
        assert witness.kinds(cluster.key("c1")) in (["add", "delete"], ["add", "missed"])
