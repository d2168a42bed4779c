"""What an operator depends on: a cached resource to write finalizers to, leader election, what makes a manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from ..informer import SharedIndexInformer

T = TypeVar("T")

Work = Callable[[], Awaitable[Any]]
"""The work of the leader."""

ManagerFactory = Callable[..., Any]
"""Makes a Manager from a Client, or is a coroutine function that does."""


class WrittenResource(Protocol[T]):
    """A collection that is read from a cache and can be written to, such as a CachedResource."""

    @property
    def informer(self) -> SharedIndexInformer[T]:
        """Its cache."""
        ...

    async def get(self, key: str) -> T:
        """Return a cached object that includes all writes made through this resource; waits for the cache.

        Raises:
            NotFoundError: The cache has no such object.
        """
        ...

    async def ensure_finalizer(self, target: Any, name: str) -> T | None:
        """Add a finalizer if it is missing. Returns the object; None if it is gone or being deleted."""
        ...

    async def drop_finalizer(self, target: Any, name: str) -> T | None:
        """Remove a finalizer if it is there. Returns the object; None if it is gone."""
        ...


class LeaderElection(Protocol):
    """Runs work while this process is the leader, such as a LeaderElector.

    If it has a method ``let_expire(left_behind)``, the manager calls it before the work ends, when reconciles ignored
    their cancellation: the lease must then expire, so that no other process leads at once.
    """

    async def run(self, work: Work) -> Any:
        """Become the leader, run the work while leading, then release the leadership.

        Raises:
            LeadershipLostError: Leadership was lost. The work was cancelled and has ended.
        """
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this process leads now."""
        ...
