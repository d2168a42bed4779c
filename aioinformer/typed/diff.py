"""diff(): what changed between two states of an object, by path."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from ..deltas import DeletedFinalStateUnknown
from ..objects.encoding import fields_of
from ..objects.json_values import same

Path = tuple[str | int, ...]

NOISE: Collection[Path] = (("metadata", "managedFields"), ("metadata", "resourceVersion"))
"""Paths that change with every write."""

_PLAIN = re.compile(r"[A-Za-z_$][\w$-]*")

_NAMES = ("name", "type", "key", "uid")
"""Fields that name the items of Kubernetes' lists, most common first. They are read, not written: see merging."""

LONGEST = 80
"""Characters of a value in a text."""


class _Item(str):
    """A step to the item of a list, by its name."""

    __slots__ = ()


class Change(NamedTuple):
    """A change of one field.

    Attributes:
        path: The steps to it: ``("spec", "containers", "web", "image")``. An item of a list is its name, if all items
            have one, or its index.
        old: The value before; ``msgspec.UNSET`` if the field was added.
        new: The value now; ``msgspec.UNSET`` if the field was removed.
    """

    path: Path
    old: Any
    new: Any

    @property
    def field(self) -> str:
        """The path as text: ``"spec.containers[web].image"``."""
        text = ""
        for step in self.path:
            if isinstance(step, (_Item, int)):
                text += f"[{step}]"
            elif _PLAIN.fullmatch(step):
                text += f".{step}" if text else step
            else:
                text += f"[{json.dumps(step)}]"
        return text

    def __str__(self) -> str:
        if self.old is msgspec.UNSET:
            return f"{self.field}: added {_text(self.new)}"
        if self.new is msgspec.UNSET:
            return f"{self.field}: removed {_text(self.old)}"
        return f"{self.field}: {_text(self.old)} -> {_text(self.new)}"


def diff(old: Any, new: Any, *, ignore: Collection[Path] = NOISE) -> list[Change]:
    """Return what changed between two states of an object, in the order of the fields.

    Lists are compared by their items' names (``name``, ``type``, ``key`` or ``uid``), or by index if they have none.

    Args:
        old: An object of any type: KubeObject, dict, Struct, model; or None if it does not exist.
        new: An object of any type, also another one. A tombstone counts as its last state.
        ignore: Paths to leave out; managedFields and resourceVersion if not given.
    """
    return [*_changes((), _fields(old), _fields(new), ignore)]


def _fields(obj: Any) -> Any:
    if isinstance(obj, DeletedFinalStateUnknown):
        obj = obj.obj
    return {} if obj is None else fields_of(obj)


def _changes(path: Path, old: Any, new: Any, ignore: Collection[Path]) -> Iterator[Change]:
    if path in ignore or old is new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        pairs: Iterator[tuple[str | int, Any, Any]] = (
            (name, old.get(name, msgspec.UNSET), new.get(name, msgspec.UNSET)) for name in {**old, **new}
        )
    elif isinstance(old, list) and isinstance(new, list):
        pairs = _items(old, new)
    else:
        if not same(old, new):
            yield Change(path, old, new)
        return
    for step, before, after in pairs:
        yield from _changes((*path, step), before, after, ignore)


def _items(old: list[Any], new: list[Any]) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield each item of two lists: its step, and its values, UNSET where it is missing."""
    if named := _by_name(old, new):
        before, after = named
        yield from (
            (_Item(name), before.get(name, msgspec.UNSET), after.get(name, msgspec.UNSET))
            for name in {**before, **after}
        )
        return
    for index, (was, now) in enumerate(zip_longest(old, new, fillvalue=msgspec.UNSET)):
        yield index, was, now


def _by_name(*lists: list[Any]) -> list[dict[str, Any]] | None:
    """Return the items of each list by the field that names them; None if no field does in all lists."""
    for key in _NAMES:
        named = [items for side in lists if (items := _with_name(side, key)) is not None]
        if len(named) == len(lists):
            return named
    return None


def _with_name(items: list[Any], key: str) -> dict[str, Any] | None:
    """Return items by a field; None if they do not all have it, each with another value."""
    named = {item[key]: item for item in items if isinstance(item, dict) and isinstance(item.get(key), str)}
    return named if len(named) == len(items) else None


def _text(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
