"""Random classes that know a part of a kind."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

import msgspec

from aioinformer import typed

from .kinds import EditedKind
from .nodes import Anything, ListOf, MapOf, Node, Object, Scalar, SetOf

Keys = tuple[str, ...]

_numbers = itertools.count(1)


@dataclass(eq=False)
class View:
    """What a class knows of a node.

    Attributes:
        node: The node.
        type: The annotation.
        fields: Of an Object, the known fields by their names in JSON.
        inner: Of a list or map, what it knows of the items.
        keys: Of a list, the fields by which the library tells items apart; empty if the class does not have them.
        defaults: Of an Object, the values of known fields that a new object has.
        omits: Whether JSON omits these.
    """

    node: Node
    type: Any
    fields: dict[str, View] = field(default_factory=dict)
    inner: View | None = None
    keys: Keys = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    omits: bool = False

    def known_part(self, value: Any) -> Any:
        """Return the part of a JSON value that the class knows."""
        if self.fields or isinstance(self.node, Object):
            known = {
                name: view.known_part(value[name]) for name, view in self.fields.items() if name in value
            }
            if self.omits:
                return {name: part for name, part in known.items() if part != self.defaults.get(name, _NONE)}
            return {**{name: part for name, part in self.defaults.items() if name not in known}, **known}
        if self.inner is not None and isinstance(self.node, ListOf):
            return [self.inner.known_part(item) for item in value]
        if self.inner is not None:
            return {name: self.inner.known_part(part) for name, part in value.items()}
        return value

    def fill(self, value: Any) -> Any:
        """Return a JSON value with the defaults of the class where it lacks them."""
        if isinstance(value, dict) and isinstance(self.node, Object):
            defaults = {} if self.omits else self.defaults
            return {
                **{name: default for name, default in defaults.items() if name not in value},
                **{
                    name: self.fields[name].fill(part) if name in self.fields else part
                    for name, part in value.items()
                },
            }
        if self.inner is not None and isinstance(value, dict):
            return {name: self.inner.fill(part) for name, part in value.items()}
        if self.inner is not None and isinstance(value, list):
            return [self.inner.fill(part) for part in value]
        return value

    def has_unknown(self, value: Any) -> bool:
        """Return whether a JSON value has fields that the class does not have."""
        if isinstance(self.node, Object):
            return any(
                name not in self.fields or self.fields[name].has_unknown(part) for name, part in value.items()
            )
        if self.inner is None:
            return False
        return any(map(self.inner.has_unknown, value if isinstance(value, list) else value.values()))

    def is_lost(self, value: Any) -> bool:
        """Return whether server-side apply of what the class knows removes fields that it does not have."""
        if isinstance(self.node, Object):
            if self.node.is_atomic:
                return self.has_unknown(value)
            return any(view.is_lost(value[name]) for name, view in self.fields.items() if name in value)
        if self.inner is None:
            return False
        if isinstance(self.node, ListOf) and not self.keys:
            return self.has_unknown(value)
        return any(map(self.inner.is_lost, value if isinstance(value, list) else value.values()))

    @property
    def lacks_keys(self) -> bool:
        """Whether the server needs fields that the class does not have, to tell items of a list apart."""
        inner = [*self.fields.values(), *filter(None, [self.inner])]
        if (
            isinstance(self.node, ListOf)
            and self.inner is not None
            and {*self.node.keys} - {*self.inner.fields}
        ):
            return True
        return any(view.lacks_keys for view in inner)

    def make(self, random: Random) -> Any:
        """Return a new JSON value with fields that the class knows, as the server gets it."""
        return self.known_part(self.node.make(random))

    def convert(self, value: Any) -> Any:
        """Return a JSON value as the class has it."""
        return msgspec.convert(value, self.type)


_NONE = object()


class Metadata(msgspec.Struct, rename="camel", kw_only=True):
    """The metadata that an update needs."""

    name: str
    namespace: str = ""
    resource_version: str = ""


def class_of(kind: EditedKind, part: str, random: Random, *, has_defaults: bool = True) -> View:
    """Return a class that knows some of the fields within one part of a kind, such as ``"spec"``."""
    builder = _Builder(random, map_of=kind.map_of, has_defaults=has_defaults)
    bases = (Metadata,) if part == "metadata" else ()
    view = builder.view(kind.node.fields[part], bases=bases)
    # An empty list of a Role is null at the server.
    fields: list[Any] = [
        ("api_version", str),
        ("kind", str),
        ("metadata", Metadata),
        (part, view.type | None, None),
    ]
    if part == "metadata":
        del fields[2]
    made = msgspec.defstruct(kind.kind, fields, rename="camel", kw_only=True)
    return View(kind.node, made, {part: view})


class _Builder:
    def __init__(self, random: Random, *, map_of: bool, has_defaults: bool) -> None:
        self._random = random
        self._map_of = map_of
        self._has_defaults = has_defaults

    def view(self, node: Node, *, is_needed: Keys = (), bases: tuple[type, ...] = ()) -> View:
        if isinstance(node, Scalar):
            return View(node, node.type)
        if isinstance(node, Anything):
            return View(node, Any)
        if isinstance(node, SetOf):
            kinds: list[Any] = [set[node.item.type], frozenset[node.item.type]]  # type: ignore[name-defined]
            return View(node, self._random.choice(kinds))
        if isinstance(node, MapOf):
            inner = self.view(node.value)
            return View(node, dict[str, inner.type], inner=inner)  # type: ignore[name-defined]
        if isinstance(node, ListOf):
            return self._list(node)
        assert isinstance(node, Object)
        return self._object(node, is_needed, bases)

    def _list(self, node: ListOf) -> View:
        says_keys = bool(node.keys) and self._random.random() < 0.8
        inner = self.view(node.item, is_needed=node.keys if says_keys else ())
        type_: Any = list[inner.type]  # type: ignore[name-defined]
        has_keys = all(key in inner.fields for key in node.keys)
        if self._map_of and says_keys:
            type_ = Annotated[type_, typed.MapOf(*node.keys)]
        is_keyed = has_keys and (says_keys or node.is_conventional or not self._map_of)
        return View(node, type_, inner=inner, keys=node.keys if is_keyed else ())

    def _object(self, node: Object, is_needed: Keys, bases: tuple[type, ...]) -> View:
        share = self._random.choice([0.4, 0.7, 1.0])
        chosen = [name for name in node.fields if name in is_needed or self._random.random() < share]
        view = View(node, None, omits=self._random.random() < 0.2)
        fields: list[Any] = []
        for name in chosen:
            inner = view.fields[name] = self.view(node.fields[name])
            default = getattr(node.fields[name], "default", None)
            is_required = name in node.required
            if not self._has_defaults or (view.omits and isinstance(default, str)):
                default = None  # msgspec compares by identity, so it omits only some of the strings
            if default is not None and name not in is_needed and self._random.random() < 0.5:
                view.defaults[name] = default
                fields.append((name, inner.type, default))
            elif is_required and not view.omits:
                fields.append((name, inner.type))
            else:
                fields.append((name, inner.type | None, None))
        view.type = msgspec.defstruct(
            f"Part{next(_numbers)}", fields, bases=bases or None, kw_only=True, omit_defaults=view.omits
        )
        return view
