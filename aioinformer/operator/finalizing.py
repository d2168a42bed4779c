"""The finalizer of a controller: reconcile an object, or clean up after it (kube-rs ``finalizer``)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

from .._core.callables import require_callback
from .._core.cancellation import maybe_await
from .._core.checks import require_qualified_name
from ..errors import ConfigError, NotFoundError, UndecodableError
from ..informer import SharedIndexInformer
from ..listwatch.list_watch import ResourceListWatch
from ..objects.finalizers import contains_finalizer
from ..objects.keys import is_deleting
from ..objects.labels import LabelSelector
from ..objects.undecodable import UndecodableObject
from ..resources import CachedResource
from .metadata import DELETION_TIMESTAMP, FINALIZERS, LABELS, read_metadata, require_fields
from .protocols import WrittenResource
from .requests import Reconcile, Reconciler, Request, Result

logger = logging.getLogger(__name__)

T = TypeVar("T")

Step = Callable[[Request[Any]], Any]
"""Handles one request. Returns a Result, None, or an awaitable of either."""


def make_step(
    name: str,
    reconcile: Reconcile[T] | Reconciler[T],
    written: WrittenResource[T] | None,
    finalizer: str | None,
    cleanup: Reconcile[T] | None,
) -> tuple[Step, str | None]:
    """Return what a controller calls for each object, and its finalizer, or None.

    Args:
        name: The controller's name.
        reconcile: A function or a Reconciler.
        written: The collection where finalizers are written; None if there is none.
        finalizer: The finalizer; None for the Reconciler's.
        cleanup: The cleanup function; None for the Reconciler's.

    Raises:
        ConfigError: The functions cannot be called with a request, or the arguments do not fit together.
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
                f"{name}: cleanup needs a finalizer; without one, objects are deleted before it is called"
            )
        return reconcile, None
    if cleanup is None:
        raise ConfigError(
            f"{name}: the finalizer {finalizer} needs a cleanup function; without one it is never removed"
        )
    require_finalizer(f"{name}: finalizer", finalizer)
    if written is None:
        raise ConfigError(
            f"{name}: the finalizer {finalizer} must be written to objects: pass a CachedResource, not the informer"
        )
    require_fields(
        written.informer.object_type, (DELETION_TIMESTAMP, FINALIZERS), f"the finalizer {finalizer} of {name}"
    )
    if selection := selection_of(written.informer):
        logger.warning(
            "%s: the finalizer %s is on objects that are selected by %s. An object that leaves the selection while the "
            "operator is down keeps it, and cannot be deleted. Better read all objects, and select by a predicate such "
            "as LabelsMatch",
            name, finalizer, selection,
        )  # fmt: skip
    return _with_finalizer(reconcile, written, finalizer, cleanup), finalizer


def require_finalizer(name: str, finalizer: object) -> None:
    """Check that a string can be a finalizer of your own: a domain, ``/`` and a name.

    Raises:
        ConfigError: It cannot.
    """
    require_qualified_name(name, finalizer)
    if "/" not in str(finalizer):
        raise ConfigError(f"{name} must be a name like 'example.com/what-it-protects', not {finalizer!r}")


def may_read_same_object(one: SharedIndexInformer[Any], other: SharedIndexInformer[Any]) -> bool:
    """Return whether both informers may read the same object."""
    return one is other or any(
        mine.health is theirs.health and mine.resource.overlaps(theirs.resource)
        for mine, theirs in product(_resource_list_watches(one), _resource_list_watches(other))
    )


def _resource_list_watches(informer: SharedIndexInformer[Any]) -> list[ResourceListWatch]:
    return [
        list_watch
        for list_watch in informer.list_watches.values()
        if isinstance(list_watch, ResourceListWatch)
    ]


def _with_finalizer(
    reconcile: Reconcile[T], written: WrittenResource[T], finalizer: str, cleanup: Reconcile[T]
) -> Step:
    """Return a step that adds a finalizer before an object is first reconciled, and removes it after cleanup.

    Guarantees:
        ``reconcile`` is called for objects that have the finalizer and are not marked for deletion; ``cleanup`` for
        those that have it and are. Objects that are gone, or wait for other finalizers only, cause no call. An object
        that does not fit its type gets no finalizer, but has it removed.
    """

    async def step(request: Request[Any]) -> object:
        obj = request.object
        if obj is None:
            obj = await _left_selection(written, request.key, finalizer)
            if obj is None:
                return None
            if not is_deleting(obj):
                logger.warning(
                    "%s: %s has left the selection %s: removing the finalizer %s without a clean-up",
                    written.informer.name, request.key, selection_of(written.informer), finalizer,
                )  # fmt: skip
                await written.drop_finalizer(obj, finalizer)
                return None
            request = Request(request.namespace, request.name, obj)
        if is_deleting(obj):
            if not contains_finalizer(obj, finalizer):
                return None
            result = await maybe_await(cleanup(request))
            if result is None or (isinstance(result, Result) and result.is_final):
                await written.drop_finalizer(obj, finalizer)
                return None
            return result
        if isinstance(obj, UndecodableObject):
            raise UndecodableError(obj.reason)
        if not contains_finalizer(obj, finalizer):
            obj = await written.ensure_finalizer(obj, finalizer)
            if obj is None:  # deleted meanwhile; the informer reports it
                return None
            request = Request(request.namespace, request.name, obj)
        return await maybe_await(reconcile(request))

    return step


def selection_of(informer: SharedIndexInformer[Any]) -> str:
    """Return the selectors of an informer's collections; "" if it reads all objects."""
    selectors = {
        selector
        for list_watch in _resource_list_watches(informer)
        for selector in (list_watch.resource.label_selector, list_watch.resource.field_selector)
    }
    return ",".join(sorted(selectors - {""}))


async def _left_selection(written: WrittenResource[Any], key: str, finalizer: str) -> Any:
    """Return an object that exists with the finalizer, but that the cache's selectors exclude by now; else None.

    The server reports it as deleted, and it could never be deleted if the finalizer stayed.
    """
    if not isinstance(written, CachedResource) or not selection_of(written.informer):
        return None
    try:
        obj = await written.resource.get(key)
    except NotFoundError:
        return None
    has_left = not any(
        LabelSelector.parse(list_watch.resource.label_selector).matches(read_metadata(obj, LABELS) or {})
        for list_watch in _resource_list_watches(written.informer)
        if not list_watch.resource.field_selector  # which only the server can compare
    )
    return obj if has_left and contains_finalizer(obj, finalizer) else None


def _require_reconcile(what: str, function: object) -> None:
    """Check that a function can be called with a request.

    Raises:
        ConfigError: It cannot, or it is a generator function or a class.
    """
    if isinstance(function, type):
        raise ConfigError(f"{what} must be a function or a Reconciler; create one: {function.__name__}()")
    try:
        require_callback(what, function, ("request",))
    except ConfigError as error:
        raise ConfigError(f"{error}{_explain_context(what, function)}") from error


def _explain_context(what: str, function: object) -> str:
    """Return what to do if a function wants a context, which a Controller made by hand does not have; else ``""``."""
    try:
        require_callback(what, function, ("request", "context"))
    except ConfigError:
        return ""
    return (
        ". Only an Operator passes a context: declare this function by @operator.controller, or give it what it needs "
        "in another way"
    )
