"""Which changes are worth a reconcile (controller-runtime ``pkg/predicate``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from ..errors import ConfigError
from ..handlers import callable_name, require_arguments, require_plain
from ..objects.fields import Field, is_same
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
    """What happened to an object.

    A ``Change[Pod]`` is one of a Pod; a ``Change`` one of anything.

    Attributes:
        old: What it was; None if it is new here.
        new: What it is; None if it is gone.
        is_in_initial_list: Whether it was there before the controller.
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
        """What it was and what it is, as far as there is a difference."""
        states = [self.new] if self.is_sync else [self.old, self.new]
        return [state for state in states if state is not None]

    @property
    def is_update(self) -> bool:
        """Whether it is neither new nor gone."""
        return self.old is not None and self.new is not None

    @property
    def is_sync(self) -> bool:
        """Whether nothing has changed: a resync, for which somebody has asked."""
        return self.is_update and same_version(self.old, self.new)


def is_made_anew(change: Change[Any]) -> bool:
    """Whether an update is of one object to another of its name: nobody saw the deletion between them."""
    return change.is_update and uid_of(change.old) != uid_of(change.new)


PredicateFunc = Callable[[Change[T]], bool]


class Predicate(ABC):
    """Whether a change is worth a reconcile. Combine them with ``&``, ``|`` and ``~``, also with functions.

    Attributes:
        reads: What of the metadata it reads, or elsewhere, which a Struct has to have.
    """

    reads: tuple[MetadataField | Field, ...] = ()

    @abstractmethod
    def __call__(self, change: Change[Any]) -> bool:
        """Whether it passes."""

    def __and__(self, other: PredicateFunc[Any]) -> Predicate:
        require_predicate("&", other)
        both = When(lambda change: self(change) and other(change), f"({self!r} & {_name(other)})")
        return both._reading(self, other)

    def __or__(self, other: PredicateFunc[Any]) -> Predicate:
        require_predicate("|", other)
        either = When(lambda change: self(change) or other(change), f"({self!r} | {_name(other)})")
        return either._reading(self, other)

    def __invert__(self) -> Predicate:
        return When(lambda change: not self(change), f"~{self!r}")._reading(self)

    def __rand__(self, other: PredicateFunc[Any]) -> Predicate:
        return When(other) & self

    def __ror__(self, other: PredicateFunc[Any]) -> Predicate:
        return When(other) | self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class When(Predicate):
    """A function as a predicate.

    Args:
        function: A plain function: whether a change passes.
        name: What logs call it.

    Raises:
        ConfigError: It is no plain function.
    """

    def __init__(self, function: PredicateFunc[Any], name: str = "") -> None:
        require_predicate("function", function)
        self._function = function
        self._name = name or callable_name(function)
        self._reading(function)

    def __call__(self, change: Change[Any]) -> bool:
        return self._function(change)

    def __repr__(self) -> str:
        return self._name

    def _reading(self, *parts: PredicateFunc[Any]) -> When:
        self.reads = tuple(field for part in parts for field in reads_of(part))
        return self


class _Changed(Predicate):
    """Passes updates in which something is not what it was. What is new, is gone or is synced passes always.

    So does what was deleted and made anew between two lists, which is an update.
    """

    def __call__(self, change: Change[Any]) -> bool:
        if not change.is_update or self._differs(change.old, change.new):
            return True
        return change.is_sync or is_made_anew(change)

    @abstractmethod
    def _differs(self, old: Any, new: Any) -> bool:
        """Whether it is not what it was."""


class GenerationChanged(_Changed):
    """Updates of the spec, and marks for deletion; not those of status, labels or annotations.

    Kinds whose generation the server does not count, such as ConfigMaps, pass always. What is new, gone or synced
    passes always.
    """

    reads = (GENERATION,)

    def _differs(self, old: Any, new: Any) -> bool:
        generation = read_metadata(new, GENERATION)
        return not generation or generation != read_metadata(old, GENERATION)


class LabelsChanged(_Changed):
    """Updates of the labels. What is new, gone or synced passes always."""

    reads = (LABELS,)

    def _differs(self, old: Any, new: Any) -> bool:
        return labels_of(old) != labels_of(new)


class AnnotationsChanged(_Changed):
    """Updates of the annotations. What is new, gone or synced passes always."""

    reads = (ANNOTATIONS,)

    def _differs(self, old: Any, new: Any) -> bool:
        return _metadata_differs(old, new, ANNOTATIONS)


class FinalizersChanged(_Changed):
    """Updates of the finalizers. What is new, gone or synced passes always."""

    reads = (FINALIZERS,)

    def _differs(self, old: Any, new: Any) -> bool:
        return _metadata_differs(old, new, FINALIZERS)


class FieldsChanged(_Changed):
    """Updates of some fields. What is new, gone or synced passes always.

    Args:
        *paths: As those of ``field``: ``"spec.replicas"``, ``"status.conditions"``, ``"spec.containers[*].image"``. One
            that no object has never differs; one that a Struct does not name is refused by who is given the predicate.

    Raises:
        ConfigError: A path is none.
    """

    def __init__(self, *paths: str) -> None:
        if not paths:
            raise ConfigError("FieldsChanged takes paths, such as 'spec.replicas'")
        self._fields = [Field(path, in_place=True) for path in paths]
        self.reads = tuple(self._fields)

    def __repr__(self) -> str:
        return f"FieldsChanged({', '.join(repr(each.path) for each in self._fields)})"

    def _differs(self, old: Any, new: Any) -> bool:
        return not all(is_same(read(old), read(new)) for read in self._fields)


class Deleting(Predicate):
    """Objects that are marked for deletion, or gone."""

    reads = (DELETION_TIMESTAMP,)

    def __call__(self, change: Change[Any]) -> bool:
        return change.new is None or is_deleting(change.new)


class LabelsMatch(Predicate):
    """Objects whose labels match, or did before this update.

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
    """See that something can be asked whether a change passes.

    Raises:
        ConfigError: It is no plain function of a change, or a class.
    """
    if isinstance(predicate, type):
        raise ConfigError(f"{name}: {predicate.__name__} is a class; make one: {predicate.__name__}()")
    if not callable(predicate):
        raise ConfigError(f"{name} must be a predicate, or a function of a Change, not {predicate!r}")
    require_plain(name, predicate)
    require_arguments(name, predicate, ("change",))


def reads_of(predicate: PredicateFunc[Any] | None) -> tuple[MetadataField | Field, ...]:
    """What of an object a predicate is known to read."""
    return predicate.reads if isinstance(predicate, Predicate) else ()


def _metadata_differs(old: Any, new: Any, field: MetadataField) -> bool:
    before, after = read_metadata(old, field), read_metadata(new, field)
    return (before or None) != (after or None)


def _name(predicate: PredicateFunc[Any]) -> str:
    return repr(predicate) if isinstance(predicate, Predicate) else callable_name(predicate)
