"""Where ``aioinformer top`` reads: an operator's ``/debug.json``, or informers of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from ...client import Client
from ...client.discovery import find_resource
from ...errors import AioInformerError, TransportError
from ...handlers import ResourceEventHandlerFuncs
from ...informer import SharedInformerFactory
from ...objects.nesting import DECODE_ERRORS, decode_any
from ...tracing import StageTimes
from .tables import Snapshot

Read = Callable[[], Awaitable[Snapshot]]
"""Returns a snapshot. Raises AioInformerError."""

TIMEOUT = 10.0
"""Seconds to wait for a snapshot."""
LARGEST = 64 << 20
"""Bytes of a snapshot."""
TRACES = 10_000


@asynccontextmanager
async def operator_source(url: str, token: str = "") -> AsyncIterator[Read]:
    """Yield what reads snapshots of a running operator.

    Args:
        url: The URL of its metrics port, such as ``http://127.0.0.1:8080``.
        token: A bearer token, for an operator with ``--metrics-auth``.
    """
    page = f"{url.rstrip('/')}/debug.json"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(TIMEOUT)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:

        async def read() -> Snapshot:
            try:
                async with session.get(page, allow_redirects=False) as answer:
                    if answer.status == 401:
                        raise AioInformerError(f"{page} asks for a token: pass --token-file")
                    if answer.status != 200:
                        raise AioInformerError(f"{page} answered {answer.status}: is it the metrics port?")
                    body = bytearray()
                    async for chunk in answer.content.iter_any():
                        body += chunk
                        if len(body) > LARGEST:
                            raise AioInformerError(f"{page} has more than {LARGEST:,} bytes")
                snapshot = decode_any(bytes(body))
                if not isinstance(snapshot, dict) or "informers" not in snapshot:
                    raise AioInformerError(f"{page} is no debug page of aioinformer")
                return snapshot
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise TransportError(f"{page} cannot be read: {error or type(error).__name__}") from error
            except DECODE_ERRORS as error:
                raise AioInformerError(f"{page} is no JSON: {error}") from error

        yield read


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
