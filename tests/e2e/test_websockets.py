"""Watches over WebSockets, as fabric8 and browsers open them, on either server."""

from __future__ import annotations

import json

from tests.samples import configmap

from .api import CONFIGMAPS
from .clusters import Cluster


async def test_each_event_is_a_message(cluster: Cluster) -> None:
    created = await cluster.create(CONFIGMAPS, configmap("a"))
    path = CONFIGMAPS.path(cluster.namespace)
    async with cluster.api.websocket(path, created["metadata"]["resourceVersion"]) as websocket:
        await cluster.create(CONFIGMAPS, configmap("b"))
        await cluster.delete(CONFIGMAPS, "a")
        messages = [await websocket.receive_str() for _ in range(2)]
    events = [json.loads(message) for message in messages]
    received = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert received == [("ADDED", "b"), ("DELETED", "a")]
    assert all(message.endswith("\n") for message in messages)
