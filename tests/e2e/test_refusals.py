"""Refusing servers: the informer logs what was refused and why, and continues once it is fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aioinformer import ApiError, Client, KubeObject, SharedIndexInformer, TransportError
from aioinformer.cache import Phase
from tests.samples import configmap

from .api import CONFIGMAPS, PODS, Resource
from .clusters import Cluster, EmbeddedCluster
from .definitions import definition
from .witness import Witness, run_informer, start_informer

pytestmark = pytest.mark.usefixtures("soon_again")


async def wait_refused(informer: SharedIndexInformer[Any], witness: Witness, status: int) -> str:
    """Wait until the informer has been refused; its last error's text."""
    await witness.until(lambda: witness.errors)
    error = informer.state.last_error
    assert isinstance(error, ApiError), error
    assert error.status == status
    assert not informer.has_synced()
    return str(error)


async def test_an_unknown_resource_is_named_and_read_once_it_exists(cluster: Cluster, client: Client) -> None:
    group = f"{cluster.namespace}.example.com"  # a name of its own: the real server is shared
    relics = Resource(f"{group}/v1", "relics")
    async with start_informer(cluster.list_watch(client, relics), KubeObject) as (informer, witness):
        said = await wait_refused(informer, witness, 404)
        assert f"relics.{group} in {cluster.namespace}: 404 NotFound" in said
        await cluster.define(definition(group, "Relic"))
        await cluster.create(
            relics, {"apiVersion": f"{group}/v1", "kind": "Relic", "metadata": {"name": "a"}}
        )
        await informer.wait_synced(20)
        await witness.until(lambda: cluster.key("a") in witness.shadow)
        await witness.until(lambda: informer.state.phase is Phase.WATCHING)


async def test_forbidden_reader_reads_once_permitted(cluster: Cluster) -> None:
    await cluster.create(CONFIGMAPS, configmap("a"))
    async with (
        await cluster.forbid() as client,
        start_informer(cluster.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness),
    ):
        said = await wait_refused(informer, witness, 403)
        assert f"configmaps in {cluster.namespace}: 403 Forbidden" in said.replace(
            " at resourceVersion 0", ""
        )
        assert f'in the namespace "{cluster.namespace}"' in said
        await cluster.permit()
        await informer.wait_synced(20)
        assert informer.store.list_keys() == [cluster.key("a")]


async def test_wrong_token_is_reported_until_its_file_is_fixed(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.create(CONFIGMAPS, configmap("a"))
    token_file = tmp_path / "token"
    token_file.write_text("wrong")
    async with (
        cluster.client_with_token_file(token_file) as client,
        start_informer(cluster.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness),
    ):
        assert "401 Unauthorized" in await wait_refused(informer, witness, 401)
        token_file.write_text(cluster.token + "\n")
        await informer.wait_synced(20)
        assert informer.store.list_keys() == [cluster.key("a")]


@pytest.mark.parametrize(
    ("resource", "selector", "said"),
    [
        (CONFIGMAPS, {"label_selector": "app in (web"}, "unable to parse requirement"),
        (CONFIGMAPS, {"field_selector": "data.k=1"}, "data.k"),
        (PODS, {"field_selector": "status.phase"}, "invalid selector"),
    ],
    ids=["label", "field", "syntax"],
)
async def test_bad_selector_does_not_stop_other_informers(
    cluster: Cluster, client: Client, resource: Resource, selector: dict[str, str], said: str
) -> None:
    bad, good = (
        cluster.list_watch(client, resource, **selector),
        cluster.list_watch(client, CONFIGMAPS),
    )
    async with (
        start_informer(bad, KubeObject) as (informer, witness),
        run_informer(good, KubeObject) as (_, other),
    ):
        assert said in await wait_refused(informer, witness, 400)
        await cluster.create(CONFIGMAPS, configmap("a"))
        await other.until(lambda: cluster.key("a") in other.shadow)
        await witness.until(lambda: len(witness.errors) >= 3)  # it goes on trying
        assert informer.state.phase in (Phase.LISTING, Phase.BACKING_OFF)


async def test_forbidden_running_informer_keeps_its_cache(embedded: EmbeddedCluster) -> None:
    await embedded.create(CONFIGMAPS, configmap("a"))
    async with (
        embedded.client() as client,
        run_informer(embedded.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness),
    ):
        await embedded.forbid()
        embedded.server.faults.drop_watches()
        await witness.until(lambda: witness.errors)
        error = informer.state.last_error
        assert isinstance(error, ApiError)
        assert error.status == 403
        assert informer.store.list_keys() == [embedded.key("a")]
        await embedded.delete(CONFIGMAPS, "a")
        await embedded.permit()
        await witness.until(lambda: not informer.store.list())
        assert informer.has_synced()


async def test_a_token_that_is_rotated_while_a_watch_runs(embedded: EmbeddedCluster, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(embedded.token)
    server = embedded.server
    async with (
        embedded.client_with_token_file(token_file) as client,
        run_informer(embedded.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness),
    ):
        server.tokens.add("second")
        token_file.write_text("second")
        server.tokens.remove(embedded.token)
        server.faults.drop_watches(mid_line=True)
        await witness.until(lambda: witness.errors)
        server.create("v1", "configmaps", configmap("a"), embedded.namespace)
        await witness.until(lambda: embedded.key("a") in witness.shadow)
        # The first request after the cut renews the token for all, even if it is a health check.
        assert [request.status for request in server.requests].count(401) == 1
        assert [request.status for request in server.requests if request.verb == "watch"][-1] == 200
        assert server.count("list") == 0
        assert [type(error) for error in witness.errors] == [TransportError]  # the cut; no 401 among them
        assert informer.has_synced()
