"""The protocol of informers, for code that uses them (client-go ``SharedInformer``)."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from ..handlers import OnAdd, OnDelete, OnDeleteObject, OnUndecodable, OnUpdate, ResourceEventHandler
from ..processor import BACKLOG_LIMIT, Backlog
from ..store import Store
from .registration import Registration
from .state import InformerState

T = TypeVar("T")


@runtime_checkable
class SharedInformer(Protocol[T]):
    """The interface of an informer; SharedIndexInformer implements it."""

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T] | None = None,
        resync_period: float | None = None,
        *,
        on_add: OnAdd[T] | None = None,
        on_update: OnUpdate[T] | None = None,
        on_delete: OnDelete[T] | None = None,
        on_delete_object: OnDeleteObject[T] | None = None,
        on_undecodable: OnUndecodable | None = None,
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        name: str = "",
    ) -> Registration:
        """Call a handler with an add for each cached object, then for every change."""
        ...

    def remove_event_handler(self, registration: Registration) -> None:
        """Stop calling a handler."""
        ...

    async def shut_down_event_handler(self, registration: Registration) -> None:
        """Stop calling a handler, and wait until its running call has ended."""
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
        """Wait until the store has an object that was written, or a resourceVersion."""
        ...

    @property
    def store(self) -> Store[T]:
        """The cached objects."""
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
        """What the informer is doing now."""
        ...
