"""Which objects an informer sees: namespaces and selectors."""

from __future__ import annotations

import pytest

from aioinformer import Client, KubeObject, SharedInformerFactory
from tests.samples import configmap

from .api import CONFIGMAPS, NAMESPACES, PODS
from .clusters import Cluster, pod_manifest
from .witness import Witness, run_informer, start_informer, versions, versions_in_cache

WATCH_LIST = pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])


async def test_the_whole_cluster(cluster: Cluster, client: Client) -> None:
    other = await cluster.new_namespace()
    await cluster.create(CONFIGMAPS, configmap("a"))
    async with run_informer(cluster.list_watch(client, CONFIGMAPS, ""), KubeObject) as (informer, witness):
        await cluster.create(CONFIGMAPS, configmap("b"), other)
        await witness.until(lambda: f"{other}/b" in witness.shadow)
        assert versions_in_cache(informer) == versions(await cluster.list(CONFIGMAPS, ""))
        assert {cluster.key("a"), f"{other}/b"} <= set(informer.store.list_keys())


async def test_cluster_scoped_objects(cluster: Cluster, client: Client) -> None:
    async with run_informer(cluster.list_watch(client, NAMESPACES), KubeObject) as (informer, witness):
        assert cluster.namespace in informer.store.list_keys()
        made = await cluster.new_namespace()
        await witness.until(lambda: made in witness.shadow)
        assert informer.lister.get(made).namespace == ""


async def test_several_namespaces_are_one_collection(cluster: Cluster, client: Client) -> None:
    first, second, third = cluster.namespace, await cluster.new_namespace(), await cluster.new_namespace()
    for namespace in (first, second, third):
        await cluster.create(CONFIGMAPS, configmap("a"), namespace)
    async with SharedInformerFactory(client) as factory:
        informer = factory.for_resource("v1", "configmaps", namespaces=[first, second])
        witness = Witness()
        informer.add_event_handler(witness)
        factory.start()
        await witness.until(lambda: set(witness.shadow) == {f"{first}/a", f"{second}/a"})
        await cluster.create(CONFIGMAPS, configmap("b"), third)
        await cluster.delete(CONFIGMAPS, "a", first)
        await cluster.create(CONFIGMAPS, configmap("b"), second)
        await witness.until(lambda: set(witness.shadow) == {f"{second}/a", f"{second}/b"})
        assert informer.indexer.index_keys("namespace", second) == [f"{second}/a", f"{second}/b"]
        assert informer.indexer.by_index("namespace", first) == []
        assert not witness.illegal


@WATCH_LIST
async def test_objects_enter_and_leave_a_label_selector(
    cluster: Cluster, client: Client, use_watch_list: bool
) -> None:
    await cluster.create(CONFIGMAPS, configmap("in", labels={"app": "web"}))
    await cluster.create(CONFIGMAPS, configmap("out", labels={"app": "db"}))
    list_watch = cluster.list_watch(client, CONFIGMAPS, label_selector="app in (web, www),!hidden")
    async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        assert informer.store.list_keys() == [cluster.key("in")]
        await cluster.patch(CONFIGMAPS, "in", {"metadata": {"labels": {"hidden": ""}}})
        await cluster.patch(CONFIGMAPS, "out", {"metadata": {"labels": {"app": "www"}}})
        await cluster.patch(CONFIGMAPS, "out", {"data": {"k": "1"}})
        await cluster.delete(CONFIGMAPS, "in")  # handlers get no notification
        await cluster.create(CONFIGMAPS, configmap("last", labels={"app": "web"}))
        await witness.until(lambda: cluster.key("last") in witness.shadow)
        assert witness.kinds(cluster.key("in")) == ["add", "delete"]
        assert witness.kinds(cluster.key("out")) == ["add", "update"]
        (gone,) = [call.obj for call in witness.calls if call.kind == "delete"]
        assert "hidden" not in gone.metadata.labels


@WATCH_LIST
async def test_objects_enter_and_leave_a_field_selector(
    cluster: Cluster, client: Client, use_watch_list: bool
) -> None:
    for name in ("a", "b"):
        await cluster.create(PODS, pod_manifest(name, node="node-1"))
    selector = "status.phase=Running,spec.nodeName!=node-2"
    list_watch = cluster.list_watch(client, PODS, field_selector=selector)
    async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        assert informer.store.list() == []
        for phase in ("Running", "Succeeded"):
            await cluster.patch(PODS, "a", {"status": {"phase": phase}}, subresource="/status")
        await cluster.patch(PODS, "b", {"status": {"phase": "Running"}}, subresource="/status")
        await witness.until(lambda: cluster.key("b") in witness.shadow)
        assert witness.kinds(cluster.key("a")) == ["add", "delete"]
        assert informer.store.list_keys() == [cluster.key("b")]


async def test_one_object_by_its_name(cluster: Cluster, client: Client) -> None:
    await cluster.create(CONFIGMAPS, configmap("other"))
    list_watch = cluster.list_watch(client, CONFIGMAPS, field_selector="metadata.name=wanted")
    async with start_informer(list_watch, KubeObject) as (informer, witness):
        await informer.wait_synced(20)
        await cluster.create(CONFIGMAPS, configmap("another"))
        await cluster.create(CONFIGMAPS, configmap("wanted"))
        await witness.until(lambda: witness.calls)
        assert list(witness.shadow) == informer.store.list_keys() == [cluster.key("wanted")]
