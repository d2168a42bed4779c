"""What an operator needs of others: writing finalizers, reading one's own writes, being the leader."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from ..errors import ConfigError
from ..informer import SharedIndexInformer

T = TypeVar("T")

Work = Callable[[], Awaitable[Any]]
"""What is to be done while one is the leader."""


class WrittenResource(Protocol[T]):
    """A collection that is read from a cache and written to, such as a CachedResource."""

    @property
    def informer(self) -> SharedIndexInformer[T]:
        """Its cache."""
        ...

    async def get(self, key: str) -> T:
        """An object as it is cached, which is not before it has what was written to it through this.

        Raises:
            NotFoundError: The cache has none.
        """
        ...

    async def ensure_finalizer(self, target: Any, name: str) -> T | None:
        """The object with a finalizer, which is added if need be; None if it is gone, or being deleted."""
        ...

    async def drop_finalizer(self, target: Any, name: str) -> T | None:
        """The object without a finalizer, which is removed if need be; None if it is gone."""
        ...


class LeaderElection(Protocol):
    """Says when to work, of several that could: a LeaderElector.

    One that has ``let_expire(left_behind)``, too, is told by that of reconciles that go on though they were cancelled,
    before the work ends: nobody is to lead at once then.
    """

    async def run(self, work: Work) -> Any:
        """Become the leader, and do something while being it; then let others lead.

        Raises:
            LeadershipLostError: It is the leader no more. The work was cancelled before that, and has ended.
        """
        ...

    @property
    def is_leader(self) -> bool:
        """Whether it is now."""
        ...


def require_election(election: object) -> None:
    """See that something says when to work.

    Raises:
        ConfigError: It has no ``run`` or ``is_leader``, or it is a class.
    """
    is_one = callable(getattr(election, "run", None)) and hasattr(election, "is_leader")
    if not is_one or isinstance(election, type):
        raise ConfigError(f"leader_election must be a LeaderElector, or None, not {election!r}")
