"""A handler's registration with an informer (client-go ``ResourceEventHandlerRegistration``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import SyncTimeout
from ..processor import ListenerState, ProcessorListener


class Registration:
    """What ``add_event_handler`` gives: the handle to ask about, and to remove, a handler."""

    def __init__(
        self,
        listener: ProcessorListener[Any],
        wait_upstream: Callable[[float | None], Coroutine[Any, Any, None]],
    ) -> None:
        self._listener = listener
        self._wait_upstream = wait_upstream

    def __repr__(self) -> str:
        return f"<Registration {self._listener.name}>"

    @property
    def state(self) -> ListenerState:
        """Backlog, high-water mark, calls, and what the handler is at."""
        return self._listener.state

    def has_synced(self) -> bool:
        """Whether the informer has synced and the handler has returned from every add of the initial list."""
        return self._listener.has_synced()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait for ``has_synced``.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            SyncTimeout: It took longer; the message says what it is waiting for.
            StoppedError: The informer stopped first.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        await self._wait_upstream(timeout)
        try:
            async with asyncio.timeout_at(deadline):
                await self._listener.wait_initial_delivered()
        except TimeoutError as error:
            raise SyncTimeout(f"handler not synced after {timeout:g} s: {self.state}") from error
