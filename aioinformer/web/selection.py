"""Selections: which objects a subscriber sees, by labels, fields and a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from .._core.callables import require_arguments, require_plain, require_sync_function
from .._core.checks import require_text
from ..errors import ConfigError, SelectorError
from ..objects.fields import Field, field
from ..objects.keys import labels_of
from ..objects.labels import LabelSelector

T = TypeVar("T")

LONGEST_SELECTOR = 1000
"""Characters of a selector in a request. Parsing blocks the event loop, and a stranger may have written it."""

MOST_STEPS = 50
"""Field names in all terms of a field selector together: each of them costs a decoder."""

_TERM = re.compile(r"(?P<path>(?:[^\\=!]|\\.)+?)(?P<operator>!=|==|=)(?P<value>(?:[^\\=]|\\.)*)", re.DOTALL)
_PARTS = re.compile(r"(?:[^\\,]|\\.)+", re.DOTALL)
_STEPS = re.compile(r"[.\[,]|^")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Selection(Generic[T]):
    """The objects that match a label selector, a field selector and a function, as far as given.

    Args:
        label_selector: As kubectl's ``-l``; or a mapping of labels.
        field_selector: As kubectl's ``--field-selector``, for any field:
            ``"spec.nodeName=node-1,status.phase!=Failed"``. A missing field equals the empty text.
        where: A plain function of an object. Its result must depend on the object alone.
        object_type: The type of objects, whose fields the field selector may name.

    Attributes:
        matches: Returns whether an object matches; None if all do.

    Raises:
        SelectorError: A selector cannot be parsed, or names a field that the type lacks.
        ConfigError: A selector or function has the wrong type.
    """

    __slots__ = ("matches",)

    def __init__(
        self,
        label_selector: str | LabelSelector | Mapping[str, Any] | None = None,
        field_selector: str | None = None,
        where: Callable[[T], bool] | None = None,
        *,
        object_type: Any = None,
    ) -> None:
        conditions: list[Callable[[T], bool]] = []
        if label_selector:
            labels = LabelSelector.of(label_selector)
            conditions.append(lambda obj: labels.matches(labels_of(obj)))
        if field_selector:
            conditions.extend(_field_conditions(field_selector, object_type))
        if where is not None:
            require_arguments("where", where, ("obj",))
            require_plain("where", where)
            function = where
            conditions.append(lambda obj: bool(require_sync_function("where", function(obj))))
        self.matches = _all_of(conditions)

    def __and__(self, other: Selection[T]) -> Selection[T]:
        """Return the selection of what both select."""
        both: Selection[T] = Selection()
        both.matches = _all_of([entry for entry in (self.matches, other.matches) if entry is not None])
        return both


def require_short(text: str) -> None:
    """Check the length of a selector that a stranger may have written.

    Raises:
        SelectorError: It is too long.
    """
    if len(text) > LONGEST_SELECTOR:
        raise SelectorError(f"a selector of {len(text)} characters; at most {LONGEST_SELECTOR} are read")


def _all_of(conditions: list[Callable[[T], bool]]) -> Callable[[T], bool] | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return lambda obj: all(condition(obj) for condition in conditions)


def _field_conditions(text: str, object_type: Any) -> Iterator[Callable[[Any], bool]]:
    require_text("field_selector", text, like="spec.nodeName=worker-1")
    require_short(text)
    if (steps := len(_STEPS.findall(text))) > MOST_STEPS:
        raise SelectorError(f"invalid field selector: it has {steps} names, and may have {MOST_STEPS}")
    if _PARTS.sub("", text).strip(","):
        raise SelectorError(f"invalid field selector: {text!r} ends with a backslash")
    for part in _PARTS.findall(text):
        if not (term := _TERM.fullmatch(part)):
            raise SelectorError(f"invalid field selector: {part!r} is no term such as spec.nodeName=worker-1")
        try:
            reader = field(_ESCAPED.sub(r"\1", term["path"]).strip())
            if object_type is not None:
                reader.require_known(object_type)
        except ConfigError as error:
            raise SelectorError(f"invalid field selector: {error}") from error
        yield _condition(reader, _ESCAPED.sub(r"\1", term["value"]), term["operator"] != "!=")


def _condition(reader: Field, wanted: str, is_wanted: bool) -> Callable[[Any], bool]:
    def matches(obj: Any) -> bool:
        try:
            values = reader.values(obj)
        except TypeError as error:
            raise SelectorError(f"invalid field selector: {error}") from error
        return (wanted in values or (not values and not wanted)) is is_wanted

    return matches
