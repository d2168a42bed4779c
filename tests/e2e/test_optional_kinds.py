"""Kinds that may not be there, on both servers: their definitions come, go and come again while an operator runs."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import KubeObject
from aioinformer.operator import Context, CustomResource, Kind, Operator, Request, Uses
from aioinformer.reflector import retry
from aioinformer.testing import eventually

from .clusters import Cluster
from .definitions import define, definition, undefine

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets


def certificate(group: str) -> type[CustomResource]:
    class Certificate(CustomResource, group=group, version="v1"):
        spec: dict[str, Any]

    return Certificate


async def test_an_operator_works_with_and_without_an_optional_kind(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "REFUSED_PAUSE", 1.0)
    group = f"{cluster.namespace}.example.com"
    kind = Kind(certificate(group), optional=True)
    seen: list[int] = []
    operator = Operator("optional", events=False, uses=[Uses(kind)])

    @operator.task(kind)
    async def follow(request: Request[Any], context: Context) -> None:
        seen.append(len(await context.resource(kind).list()))

    @operator.controller("configmaps")
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        await context.resource(kind).list()

    assert operator.custom_resources() == [], "others install its definition"
    described = definition(group, "Certificate")
    made = {
        "apiVersion": f"{group}/v1",
        "kind": "Certificate",
        "metadata": {"name": "a", "namespace": cluster.namespace},
        "spec": {"days": 90},
    }
    path = f"/apis/{group}/v1/namespaces/{cluster.namespace}/certificates"
    async with cluster.client() as client, operator.running(client, namespace=cluster.namespace) as manager:
        await eventually(manager.ready)
        (informer,) = (informer for informer in manager.state.informers if group in informer.name)
        assert informer.reflectors[0].absent
        for times in (1, 2):
            await define(cluster.api, described)
            assert (await cluster.api.ask("POST", path, made)).status == 201
            await eventually(lambda times=times: len(seen) == times, within=60)  # type: ignore[misc]
            assert manager.ready()
            await undefine(cluster.api, f"certificates.{group}")
            await eventually(lambda: absent(manager.state, group), within=60)
            assert manager.ready()
        assert seen == [1, 1]


def absent(state: Any, group: str) -> bool:
    return any(
        informer.reflectors[0].absent and not informer.objects
        for informer in state.informers
        if group in informer.name
    )


async def test_a_kind_whose_version_only_the_server_knows_cannot_be_optional(cluster: Cluster) -> None:
    operator = Operator("optional", events=False)
    with pytest.raises(Exception, match="is optional, so its version cannot be looked up at the server"):

        @operator.controller(Kind("certificates.cert-manager.io", optional=True))
        async def reconcile(request: Request[KubeObject]) -> None: ...
