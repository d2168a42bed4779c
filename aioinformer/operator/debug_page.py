"""Read the debug page of a running operator, or find that another program answers in its place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from ..client.error_mapping import message_of, without_credentials
from ..errors import AioInformerError, TransportError
from ..objects.nesting import DECODE_ERRORS, decode_any

Snapshot = Mapping[str, Any]
"""What ``/debug.json`` says."""
Read = Callable[[], Awaitable[Snapshot]]
"""Returns a snapshot. Raises AioInformerError."""

TIMEOUT = 10.0
"""Seconds to wait for a snapshot."""
LARGEST = 16 << 20
"""Bytes of a snapshot. It lists 200 failing keys, with a thousand characters each."""
LONGEST_REFUSAL = 300
"""Bytes of another answer that a message quotes."""


@asynccontextmanager
async def reading_debug_page(url: str, token: str = "", *, timeout: float = TIMEOUT) -> AsyncIterator[Read]:
    """Yield what reads snapshots of a running operator.

    Args:
        url: The URL of its metrics port, such as ``http://127.0.0.1:8080``.
        token: A bearer token, for an operator with ``--metrics-auth``.
        timeout: Seconds for a snapshot, with the connection.
    """
    page = f"{url.rstrip('/')}/debug.json"
    headers = {"Accept-Encoding": "identity"}  # what is compressed may become larger than LARGEST at once
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with aiohttp.ClientSession(
        headers=headers, timeout=aiohttp.ClientTimeout(timeout), auto_decompress=False
    ) as session:

        async def read() -> Snapshot:
            return await _read(session, page)

        yield read


async def _read(session: aiohttp.ClientSession, page: str) -> Snapshot:
    name = without_credentials(page)
    try:
        async with session.get(page, allow_redirects=False) as answer:
            if answer.status == 401:
                raise AioInformerError(f"{name} asks for a token that it accepts: pass --token-file")
            if answer.status != 200:
                raise AioInformerError(
                    f"{name} answered {answer.status}: is it the metrics port? {await _quote(answer)}".rstrip()
                )
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > LARGEST:
                    raise AioInformerError(f"{name} has more than {LARGEST:,} bytes: is it the metrics port?")
        snapshot = decode_any(bytes(body))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise TransportError(f"{name} cannot be read: {message_of(error)}") from error
    except DECODE_ERRORS as error:
        raise AioInformerError(f"{name} is no JSON: {message_of(error)}: is it the metrics port?") from error
    if not isinstance(snapshot, dict) or "informers" not in snapshot:
        raise AioInformerError(f"{name} is no debug page of aioinformer: is it the metrics port?")
    return snapshot


async def _quote(answer: aiohttp.ClientResponse) -> str:
    """Return how an answer that is no page begins, which may say why, in one line."""
    beginning = await answer.content.read(LONGEST_REFUSAL)
    return " ".join(beginning.decode(errors="replace").split())
