"""Collections whose lists have no resourceVersion and that cannot be watched: metrics, component statuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from aioinformer import (
    Client,
    KubeObject,
    ListWatch,
    Resource,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
)

from ..listwatch.streams import json_of, serve
from ..steps import until

METRICS = "metrics.k8s.io/v1beta1"


class MetricsServer:
    """Answers like kube-apiserver with metrics-server behind it."""

    def __init__(self) -> None:
        self.used: dict[str, str] = {"web": "1m", "db": "2m"}
        self.url = ""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") == "true":
            message = 'watch is not supported on resources of kind "pods.metrics.k8s.io"'
            status = {"kind": "Status", "code": 405, "reason": "MethodNotAllowed", "message": message}
            return json_of(json.dumps(status), 405)
        items = [
            {"metadata": {"name": name, "namespace": "default"}, "containers": [{"usage": {"cpu": cpu}}]}
            for name, cpu in self.used.items()
        ]
        return json_of(
            json.dumps({"kind": "PodMetricsList", "apiVersion": METRICS, "metadata": {}, "items": items})
        )


@asynccontextmanager
async def metrics_server() -> AsyncIterator[MetricsServer]:
    made = MetricsServer()
    async with serve(made) as server:
        made.url = server.url
        yield made


async def test_resource_lists_a_collection_without_versions() -> None:
    async with metrics_server() as server, Client.from_url(server.url) as client:
        listed = await Resource(client, METRICS, "pods").list("default")
        assert [(obj.key, obj.kind, obj.resource_version) for obj in listed] == [
            ("default/web", "PodMetrics", ""),
            ("default/db", "PodMetrics", ""),
        ]
        server.used.clear()
        assert await Resource(client, METRICS, "pods", dict[str, Any]).list() == []


async def test_an_informer_syncs_and_lists_again() -> None:
    """Handlers see additions and deletions; without versions, each list is an update."""
    calls: list[tuple[str, str]] = []

    def cpu(obj: KubeObject) -> str:
        return str(obj.to_dict()["containers"][0]["usage"]["cpu"])

    async with metrics_server() as server, Client.from_url(server.url) as client:
        informer = SharedIndexInformer(ListWatch.for_resource(client, METRICS, "pods"), KubeObject)
        informer.add_event_handler(
            ResourceEventHandlerFuncs(
                on_add=lambda obj, is_in_initial_list: calls.append(("add", obj.name)),
                on_update=lambda old, new: calls.append((cpu(new), new.name)),
                on_delete=lambda obj: calls.append(("delete", obj.key)),
            )
        )
        async with informer:
            await informer.wait_synced(timeout=10, fail_fast=True)
            assert sorted(calls) == [("add", "db"), ("add", "web")]
            server.used = {"web": "3m"}
            async with asyncio.timeout(20):
                await until(lambda: {("delete", "default/db"), ("3m", "web")} <= set(calls))
                await until(lambda: informer.state.polling)
            assert "cannot watch: polling by list" in str(informer.state)
