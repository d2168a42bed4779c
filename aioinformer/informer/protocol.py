"""What informers are to those who use them (client-go ``SharedInformer``)."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from ..handlers import ResourceEventHandler
from ..processor import BACKLOG_LIMIT, Backlog
from ..store import Store
from .registration import Registration
from .state import InformerState

T = TypeVar("T")


@runtime_checkable
class SharedInformer(Protocol[T]):
    """What informers offer to their users; SharedIndexInformer is the class."""

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T],
        resync_period: float | None = None,
        *,
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        name: str = "",
    ) -> Registration:
        """Tell a handler of everything that is cached, then of every change."""
        ...

    def remove_event_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more."""
        ...

    async def shut_down_event_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more, and wait for the end of its call."""
        ...

    async def run(self) -> None:
        """Run until cancelled."""
        ...

    def has_synced(self) -> bool:
        """Whether everything of the first list is in the store."""
        ...

    async def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``."""
        ...

    async def wait_for(self, written: Any, timeout: float | None = None) -> T | None:
        """Wait until the store shows what was written."""
        ...

    @property
    def store(self) -> Store[T]:
        """What is cached."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether it has ended."""
        ...

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the collection was read."""
        ...

    @property
    def state(self) -> InformerState:
        """What it is doing."""
        ...
