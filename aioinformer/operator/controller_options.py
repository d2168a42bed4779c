"""ControllerOptions: the options that a Controller and a controller of an Operator have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

from .._core.checks import require_count, require_list, require_seconds
from .finalizing import require_finalizer
from .mistakes import Mistakes
from .predicates import PredicateFunc, require_predicate
from .source_trigger import Source, SourceTrigger

T = TypeVar("T")

TIMEOUT = 300.0
"""Default timeout of a reconcile, in seconds."""


class ControllerOptions(TypedDict, Generic[T], total=False):
    """Options of a Controller, and of a controller of an Operator.

    Attributes:
        predicate: Which changes of the objects to reconcile trigger a reconcile; None, the default, for all.
        sources: Requests from elsewhere: async iterables, or functions that return one.
        concurrency: How many objects are reconciled at the same time. 1.
        timeout: Seconds after which a reconcile is cancelled and counts as failed, whatever it then returns; None for
            no limit. 300.
        finalizer: The finalizer to add before an object is first reconciled; None, the default, for the Reconciler's.
        cache_sync_timeout: Seconds after which the manager's other controllers stop waiting for the caches that only
            this controller needs. This controller starts when they have synced. None, the default, makes the others
            wait for ever.
    """

    predicate: PredicateFunc[T] | None
    sources: Iterable[Source]
    concurrency: int
    timeout: float | None
    finalizer: str | None
    cache_sync_timeout: float | None


def _unless_none(check: Callable[[str, Any], object]) -> Callable[[str, Any], object]:
    return lambda name, value: None if value is None else check(name, value)


def _require_sources(name: str, sources: list[Source]) -> None:
    for source in sources:
        SourceTrigger(source)


_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "predicate": _unless_none(require_predicate),
    "sources": _require_sources,
    "concurrency": partial(require_count, least=1),
    "timeout": _unless_none(require_seconds),
    "finalizer": _unless_none(require_finalizer),
    "cache_sync_timeout": _unless_none(require_seconds),
}


def shared_options(options: ControllerOptions[T]) -> ControllerOptions[T]:
    """Return those of an Operator's controller that its Controller takes unchanged."""
    return {name: value for name, value in options.items() if name in _CHECKS}  # type: ignore[return-value]


def check_options(options: ControllerOptions[Any], mistakes: Mistakes) -> None:
    """Check the values of options, and make a list of the sources, which may be iterated only once.

    Args:
        options: The options. Others among them are not checked.
        mistakes: Gets what is wrong.
    """
    options["sources"] = mistakes.of(require_list, "sources", options.get("sources", ())) or []
    for name, check in _CHECKS.items():
        if name in options:
            mistakes.of(check, name, options[name])  # type: ignore[literal-required]
