"""A handler's registration with an informer (client-go ``ResourceEventHandlerRegistration``)."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any, Protocol

import anyio

from .._core.checks import require_timeout
from .._core.tasks import run_until_first
from ..errors import StoppedError, SyncTimeout
from ..processor import ListenerState, ProcessorListener
from .wait import Syncing


class Informer(Syncing, Protocol):
    """The informer of a registration."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> object: ...

    def wait_synced(self, *, fail_fast: bool = False) -> Coroutine[Any, Any, object]: ...

    def require_own_loop(self) -> None: ...


class Registration:
    """A registered handler, returned by ``add_event_handler``: its state, and the handle to remove it."""

    def __init__(self, listener: ProcessorListener[Any], informer: Informer) -> None:
        self._listener = listener
        self._informer = informer

    def __repr__(self) -> str:
        return f"<Registration of {self._listener.name} with {self._informer!r}>"

    @property
    def name(self) -> str:
        """The name, as upstream has it: ``"pods + event handler Recorder"``."""
        return f"{self._informer.name} + event handler {self._listener.name}"

    @property
    def state(self) -> ListenerState:
        """A snapshot: backlog, high-water mark, calls, and the key that is being handled."""
        return self._listener.state

    def has_synced(self) -> bool:
        """Return whether the informer has synced and the handler has returned from every add of the initial list."""
        return self._listener.has_synced()

    async def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``.

        Args:
            timeout: Seconds; None waits without limit.
            fail_fast: As the informer's.

        Returns:
            True, as ``asyncio.Event.wait`` does.

        Raises:
            SyncTimeout: The timeout passed; the message names the informer and what it is doing, the handler and the
                key that it handles.
            StoppedError: The informer stopped, or the handler was removed, first.
            ApiError, ConfigError: With ``fail_fast``, the first list was refused.
            ConfigError: ``timeout`` is not a duration.
        """
        require_timeout(timeout)
        self._informer.require_own_loop()
        with anyio.move_on_after(timeout) as scope:
            await run_until_first(
                partial(self._informer.wait_synced, fail_fast=fail_fast), self._listener.wait_stopped
            )
            await self._listener.wait_initial_delivered()
        if not self.has_synced():
            if scope.cancelled_caught:
                raise self._too_late(timeout)
            raise StoppedError(f"{self!r}: stopped or removed before it had synced: {self.what_is_done()}")
        return True

    def _too_late(self, timeout: float | None) -> SyncTimeout:
        return SyncTimeout(
            f"{self!r}: not synced after {timeout:g} s: {self.what_is_done()}",
            informer=self._informer.name,
            handler=self._listener.name,
            key=self.state.handling,
        )

    def what_is_done(self) -> str:
        """Return what the handler and its informer are doing, for messages."""
        return f"{self.state}; the informer: {self._informer.state}"
