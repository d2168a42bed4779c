"""WebInformers in Litestar."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import Client, KubeObject, Lister
from aioinformer.testing import APIServer
from aioinformer.web import ChangeStream, WebInformers

from .asgi import Request

litestar: Any = pytest.importorskip("litestar", reason="the group test installs Litestar")
injection: Any = pytest.importorskip("litestar.di")


async def test_litestar_app_has_lister_probes_and_stream() -> None:
    async with APIServer() as server:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        informers = WebInformers(lambda: Client.from_url(server.url))
        maps = informers.for_resource("v1", "configmaps", history=100)

        async def names(lister: Any) -> list[str]:
            return [obj.name for obj in lister.list()]

        names.__annotations__["lister"] = injection.NamedDependency[Lister[KubeObject]]

        app = litestar.Litestar(
            [
                litestar.get("/maps", dependencies={"lister": injection.Provide(maps)})(names),
                litestar.asgi("/kube", is_mount=True, copy_scope=True)(informers.probes),
                litestar.asgi("/events", copy_scope=True)(ChangeStream(maps)),
            ],
            lifespan=[informers.lifespan],
        )
        async with app.lifespan():
            await maps.informer.wait_synced(30)
            ready, listed, events = (
                Request(app, "/kube/readyz"),
                Request(app, "/maps"),
                Request(app, "/events"),
            )
            await ready.task
            await listed.task
            assert (ready.status, listed.body) == (200, '["a"]')
            async with asyncio.timeout(20):
                while "SYNCED" not in events.events:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            informers.end_streams()
            await events.task
