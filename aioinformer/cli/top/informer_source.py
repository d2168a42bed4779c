"""Informers that ``aioinformer top`` starts, and snapshots of them, as an operator's ``/debug.json`` has them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ...client import Client
from ...client.discovery import find_resource
from ...handlers import ResourceEventHandlerFuncs
from ...informer import SharedInformerFactory
from ...operator.debug_page import Read, Snapshot
from ...tracing import StageTimes

TRACES = 10_000


@asynccontextmanager
async def informer_source(
    client: Client, resources: Sequence[str], namespace: str | None
) -> AsyncIterator[Read]:
    """Yield what reads snapshots of informers that run meanwhile.

    Args:
        client: Of the server, not yet opened.
        resources: Names of resources, as for kubectl.
        namespace: The namespace; None for all.

    Raises:
        AioInformerError: The server has no such resource, or does not answer.
    """
    stages = StageTimes(TRACES)
    async with client:
        factory = SharedInformerFactory(client, namespace, on_trace=stages)
        for name in resources:
            resource = await find_resource(client, name)
            informer = factory.for_resource(
                resource.api_version, resource.plural, namespaced=resource.namespaced
            )
            informer.add_event_handler(ResourceEventHandlerFuncs())
        async with factory:

            async def read() -> Snapshot:
                data: dict[str, Any] = {
                    "name": ", ".join(resources),
                    "server": client.server,
                    "ready": factory.ready().reasons,
                    "healthy": factory.healthy().reasons,
                    "informers": [informer.state.summary() for informer in factory.informers],
                    "stages": stages.summary(),
                }
                plain: Snapshot = msgspec.to_builtins(data, enc_hook=str, str_keys=True)
                return plain

            yield read
