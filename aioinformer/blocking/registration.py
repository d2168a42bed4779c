"""Registration: a registered handler, for code without an event loop."""

from __future__ import annotations

from functools import partial

from .. import informer as informers
from ..processor import ListenerState
from .loop_thread import LoopThread


class Registration:
    """A registered handler, returned by ``add_event_handler``: its state, and the handle to remove it.

    Args:
        registration: The handler's registration on the event loop.
        loop: That event loop.
    """

    def __init__(self, registration: informers.Registration, loop: LoopThread) -> None:
        self._registration = registration
        self._loop = loop

    def __repr__(self) -> str:
        return f"<blocking {str(self._registration).strip('<>')}>"

    @property
    def name(self) -> str:
        """The name: ``"pods + event handler Recorder"``."""
        return self._registration.name

    @property
    def state(self) -> ListenerState:
        """A snapshot: backlog, high-water mark, calls, and the key that is being handled."""
        return self._registration.state

    def has_synced(self) -> bool:
        """Return whether the informer has synced and the handler has returned from every add of the initial list."""
        return self._registration.has_synced()

    def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``. Arguments, result and errors are those of ``aioinformer.Registration``."""
        return self._loop.call(partial(self._registration.wait_synced, timeout, fail_fast=fail_fast))
