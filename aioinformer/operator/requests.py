"""What a reconciler is asked, and what it answers (controller-runtime ``pkg/reconcile``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec

from .._core.checks import require_seconds
from ..errors import ConfigError
from ..objects.keys import deletion_handling_meta_namespace_key_func, split_meta_namespace_key

T = TypeVar("T")


class Request(msgspec.Struct, Generic[T], frozen=True, eq=False, gc=False):
    """Which object is to be reconciled. Two are equal that name the same one.

    Attributes:
        namespace: ``""`` for a cluster-scoped object.
        name: Its name.
        object: The cached object when the reconcile began; None if it is gone.
    """

    namespace: str
    name: str
    object: T | None = None

    @property
    def key(self) -> str:
        """``"namespace/name"``, or ``"name"``."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def of(cls, target: Any) -> Request[Any]:
        """The request for an object, or for a key.

        Raises:
            KeyFuncError: It has no name, or is no key.
        """
        key = target if isinstance(target, str) else deletion_handling_meta_namespace_key_func(target)
        return Request(*split_meta_namespace_key(key))

    def __eq__(self, other: Any) -> bool:
        return type(other) is Request and self.name == other.name and self.namespace == other.namespace

    def __ne__(self, other: Any) -> bool:
        return not self == other  # a Struct's own knows nothing of the above

    def __hash__(self) -> int:
        return hash((self.namespace, self.name))

    def __repr__(self) -> str:
        return f"<Request {self.key}>"


class Result(msgspec.Struct, frozen=True):
    """What is to happen to an object that was reconciled; ``Result()``, as None: nothing, until it changes.

    Attributes:
        requeue: Reconcile it again, after a back-off that grows with each time in a row.
        requeue_after: Seconds after which to reconcile it again, unless it changes before; 0 is as ``requeue``.

    Raises:
        ConfigError: That are no seconds, or no bool.
    """

    requeue: bool = False
    requeue_after: float | None = None

    def __post_init__(self) -> None:
        if self.requeue_after is not None:
            require_seconds("requeue_after", self.requeue_after)
        if not isinstance(self.requeue, bool):
            raise ConfigError(
                f"requeue must be True or False, not {self.requeue!r}; for seconds it is Result(requeue_after=20)"
            )

    @property
    def is_final(self) -> bool:
        """Whether nothing more is to happen."""
        return not self.requeue and self.requeue_after is None


Reconcile = Callable[[Request[T]], Awaitable[Result | None] | Result | None]
"""A reconciler as a function: a coroutine function, or a plain one for what need not wait."""


class Reconciler(ABC, Generic[T]):
    """A reconciler as a class.

    Attributes:
        finalizer: A finalizer that each object has before it is first reconciled, so that it does not go before
            ``cleanup``, which is then needed, has succeeded; None for none.
    """

    finalizer: str | None = None

    @abstractmethod
    async def reconcile(self, request: Request[T]) -> Result | None:
        """Make the world as the object says.

        It may be called at any time and again and again, and looks at the newest state, not at what has changed.

        Raises:
            Exception: It is tried again after a back-off.
            TerminalError: It is not tried again before something changes.
        """

    async def cleanup(self, request: Request[T]) -> Result | None:
        """The object is to be deleted, and waits for this, if there is a ``finalizer``.

        A Result that asks for a requeue, and an error, say that it is not done yet: the object stays.
        """
        return None
