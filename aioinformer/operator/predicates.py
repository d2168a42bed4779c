"""Predicates: which changes trigger a reconcile (controller-runtime ``pkg/predicate``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from .._core.callables import callable_name, require_arguments, require_plain
from ..errors import ConfigError
from ..objects.fields import Field
from ..objects.json_values import same
from ..objects.keys import (
    is_deleting,
    labels_of,
    same_version,
    uid_of,
)
from ..objects.labels import LabelSelector
from ..objects.meta import Object
from .metadata import (
    ANNOTATIONS,
    DELETION_TIMESTAMP,
    FINALIZERS,
    GENERATION,
    LABELS,
    MetadataField,
    read_metadata,
)

T = TypeVar("T")


class Change(msgspec.Struct, Generic[Object], frozen=True, gc=False):
    """A change of an object. A ``Change[Pod]`` is a change of a Pod.

    Attributes:
        old: The object before; None if it was added.
        new: The object now; None if it was deleted.
        is_in_initial_list: Whether it was added by the first list.
    """

    old: Object | None
    new: Object | None
    is_in_initial_list: bool = False

    @property
    def obj(self) -> Object | None:
        """The object as it was last seen."""
        return self.old if self.new is None else self.new

    @property
    def states(self) -> list[Object]:
        """The old and the new object, or just the new one if this is a resync; without None."""
        states = [self.new] if self.is_sync else [self.old, self.new]
        return [state for state in states if state is not None]

    @property
    def is_update(self) -> bool:
        """Whether the object was neither added nor deleted."""
        return self.old is not None and self.new is not None

    @property
    def is_sync(self) -> bool:
        """Whether nothing changed: a resync."""
        return self.is_update and same_version(self.old, self.new)


def is_recreated(change: Change[Any]) -> bool:
    """Return whether an update replaces an object by another of the same name: the deletion was not seen."""
    return change.is_update and uid_of(change.old) != uid_of(change.new)


PredicateFunc = Callable[[Change[T]], bool]


class Predicate(ABC):
    """Decides whether a change triggers a reconcile. Combine with ``&``, ``|`` and ``~``, also with functions.

    Attributes:
        reads: The fields that it reads. A Struct as object type must declare them.
    """

    reads: tuple[MetadataField | Field, ...] = ()

    @abstractmethod
    def __call__(self, change: Change[Any]) -> bool:
        """Return whether the change passes."""

    def __and__(self, other: PredicateFunc[Any]) -> Predicate:
        require_predicate("&", other)
        both = When(lambda change: self(change) and other(change), f"({self!r} & {callable_name(other)})")
        return both._read_by(self, other)

    def __or__(self, other: PredicateFunc[Any]) -> Predicate:
        require_predicate("|", other)
        either = When(lambda change: self(change) or other(change), f"({self!r} | {callable_name(other)})")
        return either._read_by(self, other)

    def __invert__(self) -> Predicate:
        return When(lambda change: not self(change), f"~{self!r}")._read_by(self)

    def __rand__(self, other: PredicateFunc[Any]) -> Predicate:
        return When(other) & self

    def __ror__(self, other: PredicateFunc[Any]) -> Predicate:
        return When(other) | self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class When(Predicate):
    """A function as a predicate.

    Args:
        function: A plain function; returns whether a change passes.
        name: Its name in logs.

    Raises:
        ConfigError: It is not a plain function of one argument.
    """

    def __init__(self, function: PredicateFunc[Any], name: str = "") -> None:
        require_predicate("function", function)
        self._function = function
        self._name = name or callable_name(function)
        self._read_by(function)

    def __call__(self, change: Change[Any]) -> bool:
        return self._function(change)

    def __repr__(self) -> str:
        return self._name

    def _read_by(self, *parts: PredicateFunc[Any]) -> When:
        self.reads = tuple(field for part in parts for field in reads_of(part))
        return self


class _Changed(Predicate):
    """Passes updates that change something, and all additions, deletions and resyncs.

    An update by an object of the same name with another uid passes, too: it was deleted and recreated.
    """

    def __call__(self, change: Change[Any]) -> bool:
        if not change.is_update or self._differs(change.old, change.new):
            return True
        return change.is_sync or is_recreated(change)

    @abstractmethod
    def _differs(self, old: Any, new: Any) -> bool:
        """Return whether the two versions differ."""


class GenerationChanged(_Changed):
    """Passes updates of the spec, and marks for deletion; not those of status, labels or annotations.

    Kinds without a generation, such as ConfigMaps, always pass, as do additions, deletions and resyncs.
    """

    reads = (GENERATION,)

    def _differs(self, old: Any, new: Any) -> bool:
        generation = read_metadata(new, GENERATION)
        return not generation or generation != read_metadata(old, GENERATION)


class LabelsChanged(_Changed):
    """Passes updates of the labels, and all additions, deletions and resyncs."""

    reads = (LABELS,)

    def _differs(self, old: Any, new: Any) -> bool:
        return labels_of(old) != labels_of(new)


class AnnotationsChanged(_Changed):
    """Passes updates of the annotations, and all additions, deletions and resyncs."""

    reads = (ANNOTATIONS,)

    def _differs(self, old: Any, new: Any) -> bool:
        return _metadata_differs(old, new, ANNOTATIONS)


class FinalizersChanged(_Changed):
    """Passes updates of the finalizers, and all additions, deletions and resyncs."""

    reads = (FINALIZERS,)

    def _differs(self, old: Any, new: Any) -> bool:
        return _metadata_differs(old, new, FINALIZERS)


class FieldsChanged(_Changed):
    """Passes updates of certain fields, and all additions, deletions and resyncs.

    Args:
        *paths: As for ``field``: ``"spec.replicas"``, ``"status.conditions"``, ``"spec.containers[*].image"``. A path
            that no object has never differs. A Controller refuses a path that its Struct does not declare.

    Raises:
        ConfigError: A path is invalid, or there is none.
    """

    def __init__(self, *paths: str) -> None:
        if not paths:
            raise ConfigError("FieldsChanged takes paths, such as 'spec.replicas'")
        self._fields = [Field(path, in_place=True) for path in paths]
        self.reads = tuple(self._fields)

    def __repr__(self) -> str:
        return f"FieldsChanged({', '.join(repr(field.path) for field in self._fields)})"

    def _differs(self, old: Any, new: Any) -> bool:
        return not all(same(read(old), read(new)) for read in self._fields)


class Deleting(Predicate):
    """Passes objects that are marked for deletion, and deletions."""

    reads = (DELETION_TIMESTAMP,)

    def __call__(self, change: Change[Any]) -> bool:
        return change.new is None or is_deleting(change.new)


class LabelsMatch(Predicate):
    """Passes objects whose labels match now, or did before the update.

    Args:
        selector: As kubectl's ``-l``.

    Raises:
        SelectorError: It cannot be parsed.
    """

    reads = (LABELS,)

    def __init__(self, selector: str) -> None:
        self._selector = LabelSelector.parse(selector)
        self._text = selector

    def __call__(self, change: Change[Any]) -> bool:
        return any(
            obj is not None and self._selector.matches(labels_of(obj)) for obj in (change.new, change.old)
        )

    def __repr__(self) -> str:
        return f"LabelsMatch({self._text!r})"


def require_predicate(name: str, predicate: object) -> None:
    """Check that a predicate is a plain function of a change.

    Raises:
        ConfigError: It is not, or it is a class.
    """
    if isinstance(predicate, type):
        raise ConfigError(f"{name}: {predicate.__name__} is a class; create one: {predicate.__name__}()")
    if not callable(predicate):
        raise ConfigError(f"{name} must be a Predicate or a function of a Change, not {predicate!r}")
    require_plain(name, predicate)
    require_arguments(name, predicate, ("change",))


def reads_of(predicate: PredicateFunc[Any] | None) -> tuple[MetadataField | Field, ...]:
    """Return the fields that a predicate declares to read."""
    return predicate.reads if isinstance(predicate, Predicate) else ()


def _metadata_differs(old: Any, new: Any, field: MetadataField) -> bool:
    before, after = read_metadata(old, field), read_metadata(new, field)
    return (before or None) != (after or None)
