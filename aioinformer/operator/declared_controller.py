"""A controller as it was declared: its checks, its rights, and the Controller that a run gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from .._core.callables import require_arguments, require_plain
from .._core.checks import require_count, require_list, require_seconds
from ..objects.api_resources import APIResource
from ..workqueue import RateLimiter
from .context import Context
from .controller import TIMEOUT, Controller
from .declarations import (
    Handler,
    Owned,
    Uses,
    Watched,
    require_handler,
    require_items,
    with_context,
)
from .finalizing import require_finalizer
from .informer_triggers import Owns, Watch
from .kinds import Named, custom_class, declared, require_distinct
from .mistakes import Mistakes
from .predicates import PredicateFunc, require_predicate
from .rights import READ, Right
from .source_trigger import Source, SourceTrigger


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredController:
    """A controller as it was declared: see ``Operator.controller``."""

    resource: Named
    reconcile: Handler[Any]
    name: str | None = None
    status_verbs: Sequence[str] | None = None
    owns: Sequence[Named | Owned] = ()
    watches: Sequence[Watched] = ()
    uses: Sequence[Uses] = ()
    sources: Sequence[Source] = ()
    predicate: PredicateFunc[Any] | None = None
    finalizer: str | None = None
    cleanup: Handler[Any] | None = None
    concurrency: int = 1
    timeout: float | None = TIMEOUT
    rate_limiter: Callable[[], RateLimiter[str]] | None = None
    cache_sync_timeout: float | None = None

    @property
    def owned(self) -> list[Owned]:
        """The owned resources."""
        return [each if isinstance(each, Owned) else Owned(each) for each in self.owns]

    @property
    def primary(self) -> APIResource:
        """The resource that it reconciles."""
        return declared(self.resource)

    @property
    def title(self) -> str:
        """The controller's name."""
        return self.name or str(self.primary)

    @property
    def triggers(self) -> list[Named]:
        """The resources whose changes trigger reconciles."""
        return [
            self.resource,
            *(each.resource for each in self.owned),
            *(each.resource for each in self.watches),
        ]

    @property
    def _status_verbs(self) -> Sequence[str]:
        if self.status_verbs is not None:
            return self.status_verbs
        kind = custom_class(self.resource)
        return ("update", "patch") if kind is not None and "status" in kind.__struct_fields__ else ()

    @property
    def resources(self) -> list[Named]:
        """All resources that it names."""
        return [*self.triggers, *(each.named for each in self.uses)]

    def check(self, operator: str, others: Sequence[DeclaredController], named: Iterable[Named]) -> None:
        """Check the declaration.

        Args:
            operator: The operator's name, for the message.
            others: The operator's other controllers.
            named: The resources that the operator names elsewhere.

        Raises:
            ConfigError: It is invalid; the message has all mistakes.
        """
        called = getattr(self.reconcile, "__name__", repr(self.reconcile))
        mistakes = Mistakes(f"{operator}: the controller {self.name or called}")
        self._check_lists(mistakes)
        mistakes.raise_if_any()  # the other checks go through the lists
        mistakes.of(require_handler, "reconcile", self.reconcile)
        primary = mistakes.of(declared, self.resource)
        self._check_triggers(mistakes)
        theirs = (resource for other in others for resource in other.resources)
        mistakes.of(require_distinct, [*named, *theirs, *self.resources])
        self._check_options(mistakes)
        self._check_finalizer(mistakes)
        if primary is not None:
            if self.status_verbs:
                mistakes.of(Right.of, primary, self._status_verbs, "status")
            self._check_others(mistakes, primary, others)
        mistakes.raise_if_any()

    def _check_lists(self, mistakes: Mistakes) -> None:
        mistakes.of(require_list, "owns", self.owns)
        mistakes.of(require_items, "watches", self.watches, Watched)
        mistakes.of(require_items, "uses", self.uses, Uses)
        mistakes.of(require_list, "sources", self.sources)

    def _check_triggers(self, mistakes: Mistakes) -> None:
        for each in (*self.owned, *self.uses):
            mistakes.of(attrgetter("right"), each)
        for source in self.sources:
            mistakes.of(SourceTrigger, source)
        for watched in self.watches:
            mistakes.of(declared, watched.resource)
            mistakes.of(require_handler, "map_func", watched.map_func, "obj")
        triggers: list[Owned | Watched] = [*self.owned, *self.watches]
        for predicate in (self.predicate, *(trigger.predicate for trigger in triggers)):
            if predicate is not None:
                mistakes.of(require_predicate, "predicate", predicate)

    def _check_options(self, mistakes: Mistakes) -> None:
        mistakes.of(require_count, "concurrency", self.concurrency, least=1)
        for name, seconds in (("timeout", self.timeout), ("cache_sync_timeout", self.cache_sync_timeout)):
            if seconds is not None:
                mistakes.of(require_seconds, name, seconds)
        if self.rate_limiter is not None:
            mistakes.of(require_arguments, "rate_limiter", self.rate_limiter, ())
            if callable(self.rate_limiter):
                mistakes.of(require_plain, "rate_limiter", self.rate_limiter)

    def _check_others(
        self, mistakes: Mistakes, primary: APIResource, others: Sequence[DeclaredController]
    ) -> None:
        for other in others:
            if other.title == self.title:
                mistakes.add(f"another controller is named {self.title} already: pass name= to one of them")
            if self.finalizer and (other.primary, other.finalizer) == (primary, self.finalizer):
                mistakes.add(
                    f"{other.title} has the finalizer {self.finalizer} of the same objects: give each its own"
                )

    def _check_finalizer(self, mistakes: Mistakes) -> None:
        if self.cleanup is not None:
            mistakes.of(require_handler, "cleanup", self.cleanup)
        if (self.finalizer is None) != (self.cleanup is None):
            missing = (
                "a cleanup" if self.cleanup is None else "a finalizer, such as 'example.com/what-it-protects'"
            )
            mistakes.add(f"finalizer and cleanup go together: add {missing}")
        if self.finalizer is not None:
            mistakes.of(require_finalizer, "finalizer", self.finalizer)

    def rights(self) -> Iterator[Right]:
        """Yield what the controller has to be permitted."""
        primary = self.primary
        yield Right.of(primary, READ)
        if self._status_verbs:
            yield Right.of(primary, self._status_verbs, "status")
        if self.finalizer is not None:
            yield Right.of(primary, ("patch",))
        if self.owns:  # for the blockOwnerDeletion of owner references
            yield Right.of(primary, ("update",), "finalizers")
        for owned in self.owned:
            yield Right.of(declared(owned.resource), READ)
            yield owned.right
        for watched in self.watches:
            yield Right.of(declared(watched.resource), READ)
        for used in self.uses:
            yield used.right

    def controller(self, context: Context) -> Controller[Any]:
        """Return a new Controller, for one run."""
        # Classes and names give the same CachedResource everywhere, so reads include all writes.
        watches = (
            Watch(context.resource(each.resource), with_context(each.map_func, context), each.predicate)
            for each in self.watches
        )
        owns = (
            Owns(context.resource(each.resource), each.predicate, controller_only=each.controller_only)
            for each in self.owned
        )
        return Controller(
            self.title,
            with_context(self.reconcile, context),
            context.resource(self.resource),
            predicate=self.predicate,
            owns=owns,
            watches=watches,
            sources=self.sources,
            concurrency=self.concurrency,
            timeout=self.timeout,
            rate_limiter=None if self.rate_limiter is None else self.rate_limiter(),
            finalizer=self.finalizer,
            cleanup=None if self.cleanup is None else with_context(self.cleanup, context),
            cache_sync_timeout=self.cache_sync_timeout,
        )
