"""demo.py: what it shows."""

from __future__ import annotations

from aioinformer import ApiError, Client, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.cli.demo import render_state
from aioinformer.testing import APIServer, eventually


async def test_a_trouble_is_shown_as_the_demos_own_from_its_start_until_the_watch_is_healthy() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        informer = SharedIndexInformer(ListWatch.for_resource(client, "v1", "pods"), KubeObject)
        async with informer:
            await informer.wait_synced()
            assert render_state(informer.state) == str(informer.state)
            server.faults.fail(500, verb="list")
            server.faults.watch_error(code=410, resource="pods")
            await eventually(lambda: isinstance(informer.state.last_error, ApiError))
            assert "; recovering from the demo's trouble: " in render_state(informer.state)
            await eventually(lambda: "; recovered from the demo's trouble: " in render_state(informer.state))
            assert "last error" not in render_state(informer.state)
