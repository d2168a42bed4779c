"""Waiting for many informers at once."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ..errors import SyncTimeout


class Syncing(Protocol):
    """An informer or a registration."""

    def has_synced(self) -> bool: ...

    async def wait_synced(self, timeout: float | None = None) -> None: ...

    @property
    def state(self) -> object: ...


async def wait_for_cache_sync(*informers: Syncing, timeout: float | None = None) -> None:
    """Wait until all informers (or handlers' registrations) have synced.

    Args:
        *informers: Whom to wait for.
        timeout: Seconds for all together; None waits for ever.

    Raises:
        SyncTimeout: It took longer; the message names each that is missing and what it is doing.
        StoppedError: One stopped first.
    """
    deadline = asyncio.timeout(timeout)
    try:
        async with deadline:
            for informer in informers:
                await informer.wait_synced()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        missing = [f"{each!r}: {each.state}" for each in informers if not each.has_synced()]
        raise SyncTimeout(f"not synced after {timeout:g} s: {'; '.join(missing)}") from error
