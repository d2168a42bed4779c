"""Operators of mutants: each changes one place in the syntax tree of a function, found by the names in it.

Source lines may be reformatted and reworded: an operator finds its place as long as the names are there.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class PlaceError(LookupError):
    """A function lacks the place that an operator changes, or has several of them. Says what was looked for."""


class Place(NamedTuple):
    """A node, and where its parent keeps it.

    Attributes:
        node: The node.
        parent: Its parent.
        field: The parent's field that has it.
        position: Its place in that field, if the field is a list.
    """

    node: ast.AST
    parent: ast.AST
    field: str
    position: int | None

    def replace(self, *nodes: ast.AST) -> None:
        """Put other nodes in its place."""
        if self.position is None:
            (node,) = nodes
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.position : self.position + 1] = nodes


def places_in(parent: ast.AST) -> Iterator[Place]:
    """Yield all nodes below a node, in the order of the source."""
    for field, value in ast.iter_fields(parent):
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield Place(node, parent, field, index)
                yield from places_in(node)


def mentions(node: ast.AST, name: str) -> bool:
    """Whether a variable or an attribute of this name is in a node."""
    return any(_name_of(part) == name for part in ast.walk(node))


def called_name(node: ast.AST | None) -> str:
    """Return the name of the function or method that a node calls or awaits; ``""`` if it calls none."""
    while isinstance(node, ast.Await | ast.YieldFrom):
        node = node.value
    return _name_of(node.func) if isinstance(node, ast.Call) else ""


def assigned_names(node: ast.AST) -> list[str]:
    """Return the names of the variables, attributes and containers that a statement assigns to."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    else:
        return []
    return [_name_of(target.value if isinstance(target, ast.Subscript) else target) for target in targets]


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def expression(code: str) -> ast.expr:
    """Parse an expression."""
    return ast.parse(code, mode="eval").body


class Operator(ABC):
    """Changes one place in a function."""

    @abstractmethod
    def apply(self, function: Function) -> None:
        """Change the function.

        Raises:
            PlaceError: The function does not have the place, or has several and the operator does not say which.
        """


@dataclass(frozen=True)
class AtPlace(Operator):
    """An operator that looks for one node.

    Args:
        name: The name that the node has in it.
        nth: Which of several such nodes, from 0; None if there must be one only.
    """

    what: ClassVar[str]
    """What it looks for, for messages."""

    name: str
    nth: int | None = None

    def __str__(self) -> str:
        return f"{self.what} {self.name!r}" if self.name else self.what

    def apply(self, function: Function) -> None:
        places = [place for place in places_in(function) if self.is_place(place)]
        if self.nth is None and len(places) > 1:
            raise PlaceError(f"{len(places)} places, and nth does not say which: {self}")
        if len(places) <= (self.nth or 0):
            raise PlaceError(f"only {len(places)}, not number {self.nth}: {self}" if places else f"no {self}")
        self.change(places[self.nth or 0])

    @abstractmethod
    def is_place(self, place: Place) -> bool:
        """Whether a node is what it looks for."""

    @abstractmethod
    def change(self, place: Place) -> None:
        """Change the node."""


@dataclass(frozen=True)
class OnCondition(AtPlace):
    """An operator on the condition of an ``if``, ``while``, conditional expression or comprehension."""

    what: ClassVar[str] = "condition that mentions"

    def is_place(self, place: Place) -> bool:
        return place.field in ("test", "ifs") and mentions(place.node, self.name)


@dataclass(frozen=True)
class Negate(OnCondition):
    """Negate a condition that mentions a name."""

    def change(self, place: Place) -> None:
        assert isinstance(place.node, ast.expr)
        place.replace(ast.UnaryOp(ast.Not(), place.node))


@dataclass(frozen=True, kw_only=True)
class ReplaceCondition(OnCondition):
    """Replace a condition that mentions a name by an expression, such as ``"True"``."""

    by: str

    def change(self, place: Place) -> None:
        place.replace(expression(self.by))


@dataclass(frozen=True)
class DropOperand(AtPlace):
    """Drop the operand of an ``and`` or ``or`` that mentions a name."""

    what: ClassVar[str] = "operand of and/or that mentions"

    def is_place(self, place: Place) -> bool:
        return isinstance(place.parent, ast.BoolOp) and mentions(place.node, self.name)

    def change(self, place: Place) -> None:
        place.replace()


@dataclass(frozen=True)
class DropCall(AtPlace):
    """Drop the statement that only calls, or awaits, a function of a name; or put another statement there."""

    instead: str = "pass"
    what: ClassVar[str] = "statement that calls"

    def is_place(self, place: Place) -> bool:
        return isinstance(place.node, ast.Expr) and called_name(place.node.value) == self.name

    def change(self, place: Place) -> None:
        place.replace(*ast.parse(self.instead).body)


@dataclass(frozen=True)
class DropAssignment(AtPlace):
    """Drop the statement that assigns a variable, an attribute or a container's item."""

    what: ClassVar[str] = "assignment to"

    def is_place(self, place: Place) -> bool:
        return self.name in assigned_names(place.node)

    def change(self, place: Place) -> None:
        place.replace(ast.Pass())


@dataclass(frozen=True, kw_only=True)
class ReplaceAssigned(DropAssignment):
    """Assign another value to a variable, an attribute or a container's item."""

    by: str

    def change(self, place: Place) -> None:
        assert isinstance(place.node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        place.node.value = expression(self.by)


@dataclass(frozen=True, kw_only=True)
class ReplaceReturn(AtPlace):
    """Return another value."""

    by: str
    name: str = ""
    what: ClassVar[str] = "return of"

    def is_place(self, place: Place) -> bool:
        return isinstance(place.node, ast.Return) and (not self.name or mentions(place.node, self.name))

    def change(self, place: Place) -> None:
        assert isinstance(place.node, ast.Return)
        place.node.value = expression(self.by)


@dataclass(frozen=True)
class OnCall(AtPlace):
    """An operator on a call."""

    what: ClassVar[str] = "call of"

    def is_place(self, place: Place) -> bool:
        return isinstance(place.node, ast.Call) and called_name(place.node) == self.name


@dataclass(frozen=True, kw_only=True)
class ReplaceCall(OnCall):
    """Replace a call by an expression."""

    by: str

    def change(self, place: Place) -> None:
        place.replace(expression(self.by))


@dataclass(frozen=True, kw_only=True)
class CallOther(OnCall):
    """Call the function or method of another name."""

    other: str

    def change(self, place: Place) -> None:
        assert isinstance(place.node, ast.Call)
        if isinstance(place.node.func, ast.Attribute):
            place.node.func.attr = self.other
        else:
            place.node.func = expression(self.other)


@dataclass(frozen=True, kw_only=True)
class ReplaceArgument(OnCall):
    """Pass another positional argument, the first by default."""

    by: str
    position: int = 0

    def change(self, place: Place) -> None:
        assert isinstance(place.node, ast.Call)
        if len(place.node.args) <= self.position:
            raise PlaceError(f"no call of {self.name!r} with a positional argument {self.position}")
        place.node.args[self.position] = expression(self.by)


@dataclass(frozen=True, kw_only=True)
class ReplaceExcept(AtPlace):
    """Catch other exceptions."""

    what: ClassVar[str] = "except of"
    by: str

    def is_place(self, place: Place) -> bool:
        return (
            isinstance(place.parent, ast.ExceptHandler)
            and place.field == "type"
            and mentions(place.node, self.name)
        )

    def change(self, place: Place) -> None:
        place.replace(expression(self.by))


def _one(body: Sequence[ast.stmt], what: str, is_it: Callable[[ast.AST], bool]) -> int:
    """Return which of the statements has the node in it."""
    indexes = [index for index, statement in enumerate(body) if any(map(is_it, ast.walk(statement)))]
    if len(indexes) != 1:
        raise PlaceError(f"{len(indexes) or 'no'} statement of its own block with a {what}")
    return indexes[0]


@dataclass(frozen=True)
class MoveBehind(Operator):
    """Move the function's statement that calls a name behind its statement that assigns another.

    Args:
        name: What is called, anywhere in a statement of the function's own block.
        behind: What is assigned, anywhere in a later one.
    """

    name: str
    behind: str

    def apply(self, function: Function) -> None:
        body = function.body
        moved = _one(body, f"call of {self.name!r}", lambda node: called_name(node) == self.name)
        target = _one(
            body, f"assignment to {self.behind!r}", lambda node: self.behind in assigned_names(node)
        )
        if moved >= target:
            raise PlaceError(f"no call of {self.name!r} before the assignment to {self.behind!r}")
        body.insert(target, body.pop(moved))
