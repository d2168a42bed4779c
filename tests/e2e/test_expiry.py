"""After a disconnect, handlers get the missed changes, with or without the server's history."""

from __future__ import annotations

import pytest

from aioinformer import ApiError, KubeObject
from aioinformer.reflector.retry import Retry
from tests.samples import configmap

from .api import CONFIGMAPS
from .clusters import Cluster, EmbeddedCluster
from .gate import ClosableProxy
from .witness import Witness, run_informer, versions, versions_in_cache

pytestmark = pytest.mark.usefixtures("soon_again")


async def cut_off(cluster: Cluster, gate: ClosableProxy, witness: Witness) -> None:
    """Disconnect the informer during a watch that has had events; a watch without events is suspect."""
    await cluster.create(CONFIGMAPS, configmap("seen"))
    await witness.until(lambda: cluster.key("seen") in witness.shadow)
    await gate.shut()
    await witness.until(lambda: witness.errors)


async def change_everything(cluster: Cluster) -> None:
    """Change, delete and re-create the configmaps as their names say."""
    await cluster.patch(CONFIGMAPS, "changed", {"data": {"k": "2"}})
    await cluster.delete(CONFIGMAPS, "gone")
    await cluster.delete(CONFIGMAPS, "again")
    await cluster.create(CONFIGMAPS, configmap("again", k="2"))
    await cluster.create(CONFIGMAPS, configmap("new"))
    await cluster.create(CONFIGMAPS, configmap("brief"))
    await cluster.delete(CONFIGMAPS, "brief")


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
async def test_expired_history_gives_tombstones(cluster: Cluster, use_watch_list: bool) -> None:
    for name in ("kept", "changed", "gone", "again"):
        await cluster.create(CONFIGMAPS, configmap(name, k="1"))
    async with ClosableProxy(cluster.api.url) as gate, cluster.client_through(gate.url) as client:
        list_watch = cluster.list_watch(client, CONFIGMAPS)
        async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
            await cut_off(cluster, gate, witness)
            before = await cluster.list(CONFIGMAPS)
            await change_everything(cluster)
            await cluster.expire_history()
            assert versions_in_cache(informer) == versions(before)
            await gate.open()
            after = await cluster.list(CONFIGMAPS)
            await witness.until_shadow(versions(after))
            assert versions_in_cache(informer) == versions(after)
            assert any(isinstance(error, ApiError) and error.is_expired for error in witness.errors)
            assert informer.state.reflectors[0].lists == 2

            assert witness.kinds(cluster.key("kept")) == ["add"]
            assert witness.kinds(cluster.key("changed")) == ["add", "update"]
            assert witness.kinds(cluster.key("brief")) == []
            added, missed = witness.of(cluster.key("gone"))
            assert (added.kind, missed.kind) == ("add", "missed")
            assert missed.obj == before[cluster.key("gone")]  # the last state that was known here
            _, again = witness.of(cluster.key("again"))
            assert again.kind == "update"
            assert (again.old.uid, again.obj.uid) == (
                before[cluster.key("again")]["metadata"]["uid"],
                after[cluster.key("again")]["metadata"]["uid"],
            )
            (new,) = witness.of(cluster.key("new"))
            assert (new.kind, new.initial) == ("add", False)

            await cluster.delete(CONFIGMAPS, "kept")  # and the watch goes on
            await witness.until(lambda: witness.kinds(cluster.key("kept")) == ["add", "delete"])


async def test_available_history_is_replayed(cluster: Cluster) -> None:
    for name in ("kept", "changed", "gone", "again"):
        await cluster.create(CONFIGMAPS, configmap(name, k="1"))
    async with (
        ClosableProxy(cluster.api.url) as gate,
        cluster.client_through(gate.url) as client,
        run_informer(cluster.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness),
    ):
        await cut_off(cluster, gate, witness)
        await change_everything(cluster)
        await gate.open()
        await witness.until(
            lambda: witness.kinds(cluster.key("brief")) == ["add", "delete"]
        )  # the last change
        assert witness.shadow == versions(await cluster.list(CONFIGMAPS))
        assert informer.state.reflectors[0].lists == 1
        kinds = {name: witness.kinds(cluster.key(name)) for name in ("changed", "gone", "again")}
        assert kinds == {
            "changed": ["add", "update"],
            "gone": ["add", "delete"],
            "again": ["add", "delete", "add"],
        }


async def test_expiry_after_backoff_does_not_wait_again(
    embedded: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the longest wait would happen twice after a long outage."""
    waits = 0
    original = Retry.wait

    async def counted(self: Retry) -> None:
        nonlocal waits
        waits += 1
        await original(self)

    monkeypatch.setattr(Retry, "wait", counted)
    async with (
        ClosableProxy(embedded.api.url) as gate,
        embedded.client_through(gate.url) as client,
        run_informer(embedded.list_watch(client, CONFIGMAPS), KubeObject) as (_, witness),
    ):
        await cut_off(embedded, gate, witness)
        await embedded.delete(CONFIGMAPS, "seen")
        await embedded.expire_history()
        await gate.open()
        await witness.until_shadow({})
        _cut, *unreachable, expired = witness.errors
        assert isinstance(expired, ApiError)
        assert waits == len(unreachable)
