"""What is done for one object: reconcile it or, where a finalizer is declared, clean up (kube-rs ``finalizer``)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

from .._core.checks import require_qualified_name
from .._core.tasks import maybe_await
from ..errors import ConfigError
from ..handlers import require_callback
from ..informer import SharedIndexInformer
from ..listwatch.resource_list_watch import ResourceListWatch
from ..objects.finalizers import contains_finalizer
from ..objects.keys import is_deleting
from .metadata import DELETION_TIMESTAMP, FINALIZERS, require_fields
from .protocols import WrittenResource
from .requests import Reconcile, Reconciler, Request, Result

T = TypeVar("T")

Step = Callable[[Request[Any]], Any]
"""Gives a Result, None, or what is awaited for one."""


def make_step(
    name: str,
    reconcile: Reconcile[T] | Reconciler[T],
    written: WrittenResource[T] | None,
    finalizer: str | None,
    cleanup: Reconcile[T] | None,
) -> tuple[Step, str | None]:
    """What a controller does for each object, and the finalizer by which it cleans up after them, if any.

    Args:
        name: The controller's.
        reconcile: A function or a Reconciler.
        written: Where finalizers are written; None where nothing is.
        finalizer: The finalizer; None for the Reconciler's.
        cleanup: What cleans up; None for the Reconciler's.

    Raises:
        ConfigError: They are no such functions, or do not fit together.
    """
    if isinstance(reconcile, Reconciler):
        finalizer = reconcile.finalizer if finalizer is None else finalizer
        is_own = getattr(reconcile.cleanup, "__func__", None) is not Reconciler.cleanup
        if cleanup is None and is_own:
            cleanup = reconcile.cleanup
        reconcile = reconcile.reconcile
    _require_reconcile(f"{name}: reconcile", reconcile)
    if cleanup is not None:
        _require_reconcile(f"{name}: cleanup", cleanup)
    if finalizer is None:
        if cleanup is not None:
            raise ConfigError(
                f"{name}: cleanup needs a finalizer, or objects would be gone before it is called"
            )
        return reconcile, None
    if cleanup is None:
        raise ConfigError(f"{name}: the finalizer {finalizer} needs a cleanup, after which it is removed")
    if not isinstance(finalizer, str) or "/" not in finalizer:
        raise ConfigError(
            f"{name}: a finalizer is named as 'example.com/what-it-protects', not {finalizer!r}"
        )
    require_qualified_name(f"{name}: finalizer", finalizer)
    if written is None:
        raise ConfigError(
            f"{name}: the finalizer {finalizer} has to be written: give a CachedResource in place of the informer"
        )
    require_fields(
        written.informer.object_type, (DELETION_TIMESTAMP, FINALIZERS), f"the finalizer {finalizer} of {name}"
    )
    return Finalizing(reconcile, written, finalizer, cleanup), finalizer


def read_the_same(one: SharedIndexInformer[Any], other: SharedIndexInformer[Any]) -> bool:
    """Whether there may be an object that both informers read."""
    return one is other or any(
        mine.health is theirs.health and mine.resource.overlaps(theirs.resource)
        for mine, theirs in product(_of_servers(one), _of_servers(other))
    )


def _of_servers(informer: SharedIndexInformer[Any]) -> list[ResourceListWatch]:
    return [each for each in informer.list_watches.values() if isinstance(each, ResourceListWatch)]


class Finalizing:
    """Adds a finalizer before an object is first reconciled, and removes it after it was cleaned up.

    Guarantees:
        ``reconcile`` is called for objects that have the finalizer and are not marked for deletion; ``cleanup`` for
        those that have it and are. Neither is called for what is gone, or waits for others' finalizers.
    """

    def __init__(
        self, reconcile: Reconcile[T], written: WrittenResource[T], finalizer: str, cleanup: Reconcile[T]
    ) -> None:
        self._reconcile = reconcile
        self._written = written
        self._finalizer = finalizer
        self._cleanup = cleanup

    async def __call__(self, request: Request[Any]) -> object:
        obj = request.object
        if obj is None:
            return None
        if is_deleting(obj):
            if not contains_finalizer(obj, self._finalizer):
                return None
            result = await maybe_await(self._cleanup(request))
            if result is None or (isinstance(result, Result) and result.is_final):
                await self._written.drop_finalizer(obj, self._finalizer)
                return None
            return result
        if not contains_finalizer(obj, self._finalizer):
            obj = await self._written.ensure_finalizer(obj, self._finalizer)
            if obj is None:  # it was deleted meanwhile, of which we are told
                return None
            request = Request(request.namespace, request.name, obj)
        return await maybe_await(self._reconcile(request))


def _require_reconcile(what: str, function: object) -> None:
    """See that a function can be called with a request.

    Raises:
        ConfigError: It cannot, or it is a generator or class.
    """
    if isinstance(function, type):
        raise ConfigError(f"{what} must be a function, or a Reconciler: make one of {function.__name__}")
    require_callback(what, function, ("request",))
