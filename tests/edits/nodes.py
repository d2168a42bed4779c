"""What objects look like: a tree of nodes, which makes random values and schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Schema = dict[str, Any]


class Node:
    """A part of an object."""

    def make(self, random: Random) -> Any:
        """Return a new value."""
        raise NotImplementedError

    def schema(self) -> Schema:
        """Return the structural schema of a CustomResourceDefinition."""
        raise NotImplementedError


@dataclass(eq=False)
class Scalar(Node):
    """A string, number or boolean.

    Attributes:
        type: Its Python type.
        choices: The values that it may have; None for ``template`` with a number that hardly another value has.
        template: Of a string; of numbers the smallest.
        default: The default of a class's field, for some classes.
    """

    type: type
    choices: tuple[Any, ...] | None = None
    template: Any = "v{}"
    default: Any = None

    def make(self, random: Random) -> Any:
        if self.choices is not None:
            return random.choice(self.choices)
        number = random.randrange(1_000_000)
        if self.type is str:
            return str(self.template).format(number)
        return self.template + number % 30_000 if self.type is int else self.template + number / 2

    def schema(self) -> Schema:
        return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[self.type]}


@dataclass(eq=False)
class Anything(Node):
    """A value that the class has as ``Any``."""

    def make(self, random: Random) -> Any:
        number = random.randrange(1_000_000)
        choices: list[Callable[[], Any]] = [
            lambda: number,
            lambda: f"a{number}",
            lambda: random.choice([True, False, 1, 0, 1.5]),
            lambda: [number, random.choice([1, True, "1"]), {"k": number}],
            lambda: {"x": random.choice([1, True]), f"k{number}": {"deep": [{"n": number}]}},
        ]
        return random.choice(choices)()

    def schema(self) -> Schema:
        return {"x-kubernetes-preserve-unknown-fields": True}


@dataclass(eq=False)
class Object(Node):
    """Named fields.

    Attributes:
        fields: By their names in JSON.
        required: Fields that every object has.
        always: Fields that are no part of edits, with their values.
        is_atomic: Whether server-side apply replaces it as a whole.
    """

    fields: dict[str, Node]
    required: tuple[str, ...] = ()
    always: dict[str, Any] = field(default_factory=dict)
    is_atomic: bool = False

    def make(self, random: Random) -> Any:
        made = {
            name: node.make(random)
            for name, node in self.fields.items()
            if name in self.required or random.random() < 0.75
        }
        return {**self.always, **made}

    def schema(self) -> Schema:
        properties = {name: node.schema() for name, node in self.fields.items()}
        return {"type": "object", "properties": properties}


@dataclass(eq=False)
class ListOf(Node):
    """A list.

    Attributes:
        item: Its items.
        keys: The fields that identify an item for the server; empty if the list is atomic.
        least: The fewest items.
        most: The most items.
        is_conventional: Whether the keys are those of every kind, so that classes need not say them.
    """

    item: Node
    keys: tuple[str, ...] = ()
    least: int = 0
    most: int = 4
    is_conventional: bool = False

    def make(self, random: Random) -> Any:
        made: list[Any] = []
        for _ in range(random.randint(self.least, self.most)):
            item = self.item.make(random)
            if self.keys and any(all(item.get(key) == old.get(key) for key in self.keys) for old in made):
                continue
            made.append(item)
        return made

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": self.item.schema()}
        if self.keys:
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*self.keys]}
            schema["items"]["required"] = [*self.keys]
        return schema


@dataclass(eq=False)
class SetOf(Node):
    """A list without order and without duplicates."""

    item: Scalar

    def make(self, random: Random) -> Any:
        return [*dict.fromkeys(self.item.make(random) for _ in range(random.randint(0, 4)))]

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema(), "x-kubernetes-list-type": "set"}


@dataclass(eq=False)
class MapOf(Node):
    """An object with any names."""

    value: Node
    name: str = "k{}"

    def make(self, random: Random) -> Any:
        return {self.new_name(random): self.value.make(random) for _ in range(random.randint(0, 3))}

    def new_name(self, random: Random) -> str:
        return self.name.format(random.randrange(1_000_000))

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.value.schema()}


def normal(node: Node, value: Any) -> Any:
    """Return a value with sets in a fixed order."""
    if isinstance(node, Object) and isinstance(value, dict):
        return {
            name: normal(node.fields[name], part) if name in node.fields else part
            for name, part in value.items()
        }
    if isinstance(node, MapOf) and isinstance(value, dict):
        return {name: normal(node.value, part) for name, part in value.items()}
    if isinstance(node, ListOf) and isinstance(value, list):
        return [normal(node.item, part) for part in value]
    if isinstance(node, SetOf) and isinstance(value, list):
        return sorted(value, key=repr)
    return value
