"""A controller as it was declared: its checks, its rights, and the Controller that a run gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from .._core.callables import require_arguments, require_plain
from .._core.checks import require_list
from ..client.lookup import resource_of as api_resource_of
from ..events import EventRecorder
from ..objects.api_resources import APIResource
from ..resources import Resource
from ..workqueue import RateLimiter
from .context import Context
from .controller import Controller
from .controller_options import check_options, shared_options
from .declarations import (
    DeclaredOptions,
    Handler,
    Owned,
    Uses,
    Watched,
    require_handler,
    require_items,
    with_context,
)
from .informer_triggers import Owns, Watch
from .kinds import ResourceReference, base_of, custom_class, names_of, require_distinct, resource_named
from .mistakes import Mistakes
from .predicates import require_predicate
from .ready_condition import ReadyCondition, require_conditions
from .rights import READ, Right


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredController:
    """A controller as it was declared: see ``Operator.controller``.

    Attributes:
        resource: The resource that it reconciles.
        reconcile: The reconciler.
        options: Its options.
        keeps_conditions: Whether it keeps the condition ``Ready`` of its objects.
    """

    resource: ResourceReference
    reconcile: Handler[Any]
    options: DeclaredOptions[Any]
    keeps_conditions: bool = field(default=False, kw_only=True)

    @property
    def owned(self) -> list[Owned]:
        """The owned resources."""
        return [
            owned_kind if isinstance(owned_kind, Owned) else Owned(owned_kind)
            for owned_kind in self.options.get("owns", ())
        ]

    @property
    def watches(self) -> Sequence[Watched]:
        """The other resources that trigger reconciles."""
        return self.options.get("watches", ())

    @property
    def uses(self) -> Sequence[Uses]:
        """The resources that it uses without being triggered by them."""
        return self.options.get("uses", ())

    @property
    def finalizer(self) -> str | None:
        """The finalizer of the objects that it reconciles."""
        return self.options.get("finalizer")

    @property
    def primary(self) -> APIResource:
        """The resource that it reconciles."""
        return resource_named(self.resource)

    @property
    def title(self) -> str:
        """The controller's name."""
        return self.options.get("name") or str(self.primary)

    @property
    def triggers(self) -> list[ResourceReference]:
        """The resources whose changes trigger reconciles."""
        return [
            self.resource,
            *(owned_kind.resource for owned_kind in self.owned),
            *(watch.resource for watch in self.watches),
        ]

    @property
    def _status_verbs(self) -> Sequence[str]:
        if (given := self.options.get("status_verbs")) is not None:
            return given
        kind = custom_class(self.resource)
        return ("update", "patch") if kind is not None and "status" in kind.__struct_fields__ else ()

    @property
    def resources(self) -> list[ResourceReference]:
        """All resources that it names."""
        return [*self.triggers, *(use.named for use in self.uses)]

    def check(
        self, operator: str, others: Sequence[DeclaredController], named: Iterable[ResourceReference]
    ) -> None:
        """Check the declaration.

        Args:
            operator: The operator's name, for the message.
            others: The operator's other controllers.
            named: The resources that the operator names elsewhere.

        Raises:
            ConfigError: It is invalid; the message has all mistakes.
        """
        called = getattr(self.reconcile, "__name__", repr(self.reconcile))
        mistakes = Mistakes(f"{operator}: the controller {self.options.get('name') or called}")
        self._check_lists(mistakes)
        mistakes.raise_if_any()  # the other checks go through the lists
        mistakes.of(require_handler, "reconcile", self.reconcile)
        primary = mistakes.of(resource_named, self.resource)
        self._check_triggers(mistakes)
        theirs = (resource for other in others for resource in other.resources)
        mistakes.of(require_distinct, [*named, *theirs, *self.resources])
        self._check_options(mistakes)
        self._check_finalizer(mistakes)
        if primary is not None:
            if verbs := self.options.get("status_verbs"):
                mistakes.of(Right.of, primary, verbs, "status")
            self._check_others(mistakes, primary, others)
        if self.keeps_conditions:
            mistakes.of(require_conditions, self.resource)
        mistakes.raise_if_any()

    def _check_lists(self, mistakes: Mistakes) -> None:
        mistakes.of(require_list, "owns", self.options.get("owns", ()))
        mistakes.of(require_items, "watches", self.watches, Watched)
        mistakes.of(require_items, "uses", self.uses, Uses)

    def _check_triggers(self, mistakes: Mistakes) -> None:
        for use in (*self.owned, *self.uses):
            mistakes.of(attrgetter("right"), use)
        for watched in self.watches:
            mistakes.of(resource_named, watched.resource)
            mistakes.of(require_handler, "map_func", watched.map_func, "obj")
        triggers: list[Owned | Watched] = [*self.owned, *self.watches]
        for trigger in triggers:
            if trigger.predicate is not None:
                mistakes.of(require_predicate, "predicate", trigger.predicate)

    def _check_options(self, mistakes: Mistakes) -> None:
        check_options(self.options, mistakes)
        if (rate_limiter := self.options.get("rate_limiter")) is not None:
            mistakes.of(require_arguments, "rate_limiter", rate_limiter, ())
            if callable(rate_limiter):
                mistakes.of(require_plain, "rate_limiter", rate_limiter)

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
            if self.keeps_conditions and other.keeps_conditions and other.primary == primary:
                mistakes.add(
                    f"{other.title} keeps the condition Ready of the same objects: pass conditions=False to one of them"
                )

    def _check_finalizer(self, mistakes: Mistakes) -> None:
        cleanup = self.options.get("cleanup")
        if cleanup is not None:
            mistakes.of(require_handler, "cleanup", cleanup)
        if (self.finalizer is None) != (cleanup is None):
            missing = (
                "a cleanup" if cleanup is None else "a finalizer, such as 'example.com/what-it-protects'"
            )
            mistakes.add(f"finalizer and cleanup go together: add {missing}")

    def rights(self) -> Iterator[Right]:
        """Yield what the controller has to be permitted."""
        yield _right(self.resource, READ)
        if self._status_verbs:
            yield _right(self.resource, self._status_verbs, "status")
        if self.keeps_conditions:
            yield _right(self.resource, ("patch",), "status")
        if self.finalizer is not None:
            yield _right(self.resource, ("patch",))
        if self.owned:  # for the blockOwnerDeletion of owner references
            yield _right(self.resource, ("update",), "finalizers")
        for owned in self.owned:
            yield _right(owned.resource, READ)
            yield owned.right
        for watched in self.watches:
            yield _right(watched.resource, READ)
        for used in self.uses:
            yield used.right

    def controller(self, context: Context, recorder: EventRecorder | None = None) -> Controller[Any]:
        """Return a new Controller, for one run.

        Args:
            context: The run's context.
            recorder: Records Events about objects that fail; None for none.
        """
        # Classes and names give the same CachedResource everywhere, so reads include all writes.
        watches = (
            Watch(context.resource(watch.resource), with_context(watch.map_func, context), watch.predicate)
            for watch in self.watches
        )
        owns = (
            Owns(
                context.resource(owned_kind.resource),
                owned_kind.predicate,
                controller_only=owned_kind.controller_only,
            )
            for owned_kind in self.owned
        )
        primary = context.resource(self.resource)
        condition = None
        if self.keeps_conditions:
            stored = Resource(context.client, api_resource_of(context.client, base_of(self.resource)), dict)
            condition = ReadyCondition(self.title, primary, stored)
        cleanup = self.options.get("cleanup")
        return Controller(
            self.title,
            with_context(self.reconcile, context),
            primary,
            owns=owns,
            watches=watches,
            rate_limiter=self.make_rate_limiter(),
            cleanup=None if cleanup is None else with_context(cleanup, context),
            recorder=recorder,
            condition=condition,
            **shared_options(self.options),
        )

    def make_rate_limiter(self) -> RateLimiter[str] | None:
        """Return a new rate limiter, for one run; None for the default one."""
        make = self.options.get("rate_limiter")
        return None if make is None else make()


def _right(named: ResourceReference, verbs: Sequence[str], subresource: str = "") -> Right:
    """Return the right to use a resource; of a Kind that selects a name, to use this object."""
    return Right.of(resource_named(named), verbs, subresource, names_of(named))
