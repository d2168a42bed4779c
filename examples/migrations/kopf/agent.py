"""The API of the platform around the databases, at ``$AGENT_URL``: buckets for backups, and health."""

from __future__ import annotations

import os

import aiohttp

TIMEOUT = aiohttp.ClientTimeout(total=10)
FAILURES = (aiohttp.ClientError, TimeoutError)
"""What these functions raise."""


async def make_bucket(namespace: str, name: str) -> None:
    """Make the bucket for the backups of a Database, if it is missing."""
    await _send("PUT", f"buckets/{namespace}/{name}")


async def remove_bucket(namespace: str, name: str) -> None:
    """Remove it, if it exists."""
    await _send("DELETE", f"buckets/{namespace}/{name}")


async def read_health(namespace: str, name: str) -> str:
    """Return ``"Healthy"`` or ``"Unhealthy"``."""
    try:
        await _send("GET", f"health/{namespace}/{name}")
    except FAILURES:
        return "Unhealthy"
    return "Healthy"


async def _send(method: str, path: str) -> None:
    url = f"{os.environ['AGENT_URL']}/{path}"
    async with aiohttp.request(method, url, timeout=TIMEOUT) as answer:
        answer.raise_for_status()
