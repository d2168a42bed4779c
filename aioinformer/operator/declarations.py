"""What the author of an operator declares: resources that it owns, watches and uses."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar

from .._core.callables import callable_name, require_callback
from .._core.checks import require_list, require_options, require_text
from ..errors import ConfigError
from ..workqueue import RateLimiter
from .context import Context
from .controller_options import ControllerOptions
from .informer_triggers import Requests
from .kinds import CacheKey, ResourceReference, key_of, names_of, resource_named, show
from .predicates import PredicateFunc
from .requests import Reconciler, Request, Result
from .rights import APPLY, READ, Right

T = TypeVar("T")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Outcome = Awaitable[Result | None] | Result | None
"""What a reconciler returns."""

Handler = Callable[[Request[T]], Outcome] | Callable[[Request[T], Context], Outcome]
"""A reconciler, or a cleanup. It may leave out the context."""

Mapper = (
    Callable[[Any], Requests | Awaitable[Requests]] | Callable[[Any, Context], Requests | Awaitable[Requests]]
)
"""Returns the requests for an object. It may leave out the context."""


@dataclass(frozen=True, slots=True)
class Uses:
    """A resource that the operator uses without being triggered by it. With ``list`` and ``watch``, it is cached.

    Args:
        resource: A class, a Kind, a name such as ``"secrets"``, or a subresource such as ``"pods/eviction"``.
        verbs: The verbs that the operator uses: ``("get",)``, ``("create",)``.
        names: The names of the only objects that it uses, not by list and watch. For these, use a Kind with
            ``field_selector="metadata.name=NAME"``.
    """

    resource: ResourceReference
    verbs: Iterable[str] = READ
    names: Iterable[str] = ()

    @property
    def named(self) -> ResourceReference:
        """The resource, without the subresource."""
        return self.resource.partition("/")[0] if isinstance(self.resource, str) else self.resource

    @property
    def subresource(self) -> str:
        """The subresource, or ``""``."""
        return self.resource.partition("/")[2] if isinstance(self.resource, str) else ""

    @property
    def is_cached(self) -> bool:
        """Whether an informer reads it."""
        return not self.subresource and {"list", "watch"} <= set(self.verbs)

    @property
    def right(self) -> Right:
        """What a Role has to permit.

        Raises:
            ConfigError: The resource is unknown, or the verbs or names are invalid.
        """
        names = require_list("names", self.names)
        right = Right.of(
            resource_named(self.named), self.verbs, self.subresource, names or names_of(self.named)
        )
        for name in names:
            require_text("names", name)
        if names and (collective := {"list", "watch"}.intersection(right.verbs)):
            raise ConfigError(
                f"{show(self.named)}: names do not go with {' and '.join(sorted(collective))}: pass verbs=('get',), or "
                f"to cache one object Uses(Kind({show(self.named)}, field_selector='metadata.name={names[0]}'))"
            )
        return right


@dataclass(frozen=True, slots=True)
class Owned:
    """A resource whose objects are owned by the reconciled objects: see Owns.

    Args:
        resource: A class, a name, or a Kind.
        predicate: Which changes trigger a reconcile; None for all.
        controller_only: Whether only the owner that is the object's controller is reconciled.
        verbs: The verbs that the operator uses beside get, list and watch. If not given, those of an apply: create and
            patch.
    """

    resource: ResourceReference
    predicate: PredicateFunc[Any] | None = None
    controller_only: bool = True
    verbs: Iterable[str] = APPLY

    @property
    def right(self) -> Right:
        """What a Role has to permit beside reading.

        Raises:
            ConfigError: The resource is unknown, or the verbs are invalid.
        """
        return Right.of(resource_named(self.resource), self.verbs, names=names_of(self.resource))


@dataclass(frozen=True, slots=True)
class Watched:
    """Another resource that triggers reconciles: see Watch.

    Args:
        resource: A class, a name, or a Kind.
        map_func: ``map_func(obj)`` or ``map_func(obj, context)``: the requests for an object; plain or async.
        predicate: Which changes trigger a reconcile; None for all.
    """

    resource: ResourceReference
    map_func: Mapper
    predicate: PredicateFunc[Any] | None = None


class DeclaredOptions(ControllerOptions[T], total=False):
    """Options of a controller of an Operator, beside those of every Controller: see ControllerOptions.

    Attributes:
        name: The controller's name; the resource's if not given.
        status_verbs: The verbs that it uses on the status: ``("patch",)``. If not given, update and patch for a class
            with a field ``status``, else none.
        owns: Resources that it creates for each object: classes, names, Kinds, or Owned.
        watches: Other resources that trigger reconciles.
        uses: Resources that it uses without being triggered by them.
        cleanup: As for Controller; it may take the context as its second argument.
        rate_limiter: Returns a rate limiter, once for each run.
        conditions: Whether to keep the condition ``Ready`` of the objects. If not given, the operator's choice for a
            CustomResource class, and False for a name.
    """

    name: str | None
    status_verbs: Sequence[str] | None
    owns: Sequence[ResourceReference | Owned]
    watches: Sequence[Watched]
    uses: Sequence[Uses]
    cleanup: Handler[T] | None
    rate_limiter: Callable[[], RateLimiter[str]] | None
    conditions: bool


class TaskOptions(TypedDict, Generic[T], total=False):
    """Options of ``Operator.task`` and ``Operator.timer``.

    Attributes:
        name: Its name in logs, states and metrics; the function's if not given.
        when: ``when(obj)`` returns whether it is for an object; a plain function. None, the default, for all objects.
        uses: Resources that it uses.
        status_verbs: As for a controller.
        rate_limiter: As for a controller: how long to wait after an error.
    """

    name: str | None
    when: Callable[[T], bool] | None
    uses: Sequence[Uses]
    status_verbs: Sequence[str] | None
    rate_limiter: Callable[[], RateLimiter[str]] | None


class TimerOptions(TaskOptions[T], total=False):
    """Options of ``Operator.timer`` beside those of a task.

    Attributes:
        concurrency: How many objects it is called for at the same time. 1.
        timeout: Seconds after which a call is cancelled and counts as failed; None for no limit. 300.
    """

    concurrency: int
    timeout: float | None


def with_context(function: Callable[..., Any], context: Context) -> Callable[[Any], Any]:
    """Return a function of one argument, which passes the context on if the function takes it."""
    if not takes_context(function):
        return function

    def call(argument: Any) -> Any:
        return function(argument, context)

    call.__qualname__ = callable_name(function)  # for logs
    return call


def takes_context(function: Callable[..., Any]) -> bool:
    """Return whether a function takes the context: a second argument without a default, or one named ``context``."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
        signature.bind(None, None)
    except (TypeError, ValueError):
        return False
    named = [parameter for parameter in signature.parameters.values() if parameter.kind in _POSITIONAL]
    if len(named) > 1:
        return named[1].default is inspect.Parameter.empty or named[1].name == "context"
    wrapped = inspect.unwrap(function)  # what a decorator that takes any arguments calls
    return wrapped is function or takes_context(wrapped)


def require_handler(name: str, function: object, argument: str = "request") -> None:
    """Check that a function can be called with one argument, or with it and the context.

    Raises:
        ConfigError: It cannot, or is a class or a Reconciler, of which only a method can.
    """
    if isinstance(function, (type, Reconciler)):
        kind = function if isinstance(function, type) else type(function)
        what = "a class" if kind is function else "a Reconciler, which only a Controller made by hand takes"
        method = "reconcile" if issubclass(kind, Reconciler) else "method"
        raise ConfigError(
            f"{name} must be a function of ({argument}) or ({argument}, context), and {kind.__name__} is {what}: "
            f"pass a method of an object, such as {kind.__name__}().{method}"
        )
    is_two = callable(function) and takes_context(function)
    require_callback(name, function, (argument, "context") if is_two else (argument,))


def require_items(name: str, given: Iterable[T], item: type) -> tuple[T, ...]:
    """Return the objects of an option that is a list.

    Raises:
        ConfigError: It is no list, or an object is not of the class.
    """
    items = require_list(name, given)
    for value in items:
        if not isinstance(value, item):
            raise ConfigError(
                f"{name} takes {item.__name__} objects, such as {item.__name__}({value!r}, ...), not {value!r}"
            )
    return tuple(items)


def unique(named: Iterable[ResourceReference]) -> list[ResourceReference]:
    """Return each resource once, however its name is written."""
    by_key: dict[CacheKey, ResourceReference] = {}
    for resource in named:
        by_key.setdefault(key_of(resource), resource)
    return [*by_key.values()]


def require_declared(
    operator: str, decorator: str, resource: object, given: Iterable[str], known: type
) -> None:
    """Check that a decorator was called with a resource, and the names of its options.

    Args:
        operator: The operator's name, for the message.
        decorator: The decorator's name.
        resource: Its first argument.
        given: Its keyword arguments.
        known: The TypedDict of its options.

    Raises:
        ConfigError: It got a function, so it decorates nothing.
        TypeError: There is no such option.
    """
    if inspect.isroutine(resource):
        raise ConfigError(
            f"{operator}: {decorator} takes a resource, not {resource.__name__}: write a class or a name, as in "
            f'@operator.{decorator}("pods")'
        )
    require_options(given, known.__annotations__)
