"""Requests and results of reconcilers (controller-runtime ``pkg/reconcile``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec

from .._core.checks import require_seconds, require_text
from ..errors import ConfigError
from ..objects.keys import deletion_handling_meta_namespace_key_func, split_meta_namespace_key

T = TypeVar("T")


class Request(msgspec.Struct, Generic[T], frozen=True, eq=False, gc=False):
    """The object to reconcile. Requests are equal if they name the same object.

    Attributes:
        namespace: Its namespace; ``""`` for a cluster-scoped object.
        name: Its name.
        object: The cached object when the reconcile started; None if it is gone. A CustomResource is a copy of its own:
            changing it does not change the cache. In a cleanup it is an UndecodableObject if it does not fit its type.
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
        """Return the request for an object or a key.

        Raises:
            KeyFuncError: The object has no name, or the key is invalid.
        """
        key = target if isinstance(target, str) else deletion_handling_meta_namespace_key_func(target)
        return Request(*split_meta_namespace_key(key))

    def __eq__(self, other: Any) -> bool:
        return type(other) is Request and self.name == other.name and self.namespace == other.namespace

    def __ne__(self, other: Any) -> bool:
        return not self == other  # a Struct's own __ne__ would compare the objects

    def __hash__(self) -> int:
        return hash((self.namespace, self.name))

    def __repr__(self) -> str:
        return f"<Request {self.key}>"


class Result(msgspec.Struct, frozen=True):
    """What to do after a reconcile. ``Result()`` and None mean: nothing until the object changes.

    Attributes:
        requeue: Reconcile again, after a back-off that grows with each repetition.
        requeue_after: Seconds after which to reconcile again, unless the object changes before; 0 means ``requeue``.
        progressing: What the object still waits for, for people: ``"2 of 3 replicas are available"``. With
            ``conditions=True``, it is then not ``Ready`` but ``Progressing``.

    Raises:
        ConfigError: ``requeue_after`` is not a duration, ``requeue`` is not a bool, or ``progressing`` is not a text.
    """

    requeue: bool = False
    requeue_after: float | None = None
    progressing: str = ""

    def __post_init__(self) -> None:
        if self.requeue_after is not None:
            require_seconds("requeue_after", self.requeue_after)
        if not isinstance(self.requeue, bool):
            raise ConfigError(
                f"requeue must be True or False, not {self.requeue!r}; for seconds use Result(requeue_after=20)"
            )

        require_text("progressing", self.progressing)

    @property
    def is_final(self) -> bool:
        """Whether the object needs no further reconcile until it changes."""
        return not self.requeue and self.requeue_after is None


Reconcile = Callable[[Request[T]], Awaitable[Result | None] | Result | None]
"""A reconciler as a function: a coroutine function, or a plain one that does not block."""


class Reconciler(ABC, Generic[T]):
    """A reconciler as a class.

    Attributes:
        finalizer: The finalizer to add before an object is first reconciled; the object is then deleted only after
            ``cleanup`` has succeeded. None for no finalizer.
    """

    finalizer: str | None = None

    @abstractmethod
    async def reconcile(self, request: Request[T]) -> Result | None:
        """Bring the world to the state that the object describes.

        It may be called at any time and repeatedly. It must compare with the current state, not rely on what changed.

        Raises:
            Exception: The reconcile is retried after a back-off.
            TerminalError: The reconcile is not retried until something changes.
        """

    async def cleanup(self, request: Request[T]) -> Result | None:
        """Clean up after an object that is marked for deletion and has the ``finalizer``.

        The object stays as long as this raises or returns a Result that asks for a requeue.

        If the object does not fit its type, ``request.object`` is an UndecodableObject, which has ``key``, ``uid`` and
        ``metadata``. A cleanup that reads more of it can read ``request.object["spec"]``, or ``request.object.last``,
        the last state that fitted; if it raises instead, the failure is logged, shown and retried.
        """
        return None
