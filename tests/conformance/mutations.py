"""Random changes of an object, most of which the real server refuses, drops or warns of."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

WRONG: tuple[Any, ...] = (7, -1, 1.5, "text", "", True, None, [], {}, ["a"], {"a": "b"})
"""Values of all types, to replace others with."""
NUMBERS = (0, -1, 1, 70_000, 2**31, 2**63)
STRINGS = ("", "UPPER_case", "not valid!", "x" * 300, "5", "a.b/c", "-a")


_IDENTITY = (("apiVersion",), ("kind",), ("metadata", "name"))


class Place(NamedTuple):
    """A field or an item, which is ``parent[key]``, and the keys on the way to it."""

    parent: Any
    key: Any
    way: tuple[Any, ...]

    @property
    def value(self) -> Any:
        return self.parent[self.key]

    @property
    def pointer(self) -> str:
        """The JSON pointer."""
        return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in self.way)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[Place]:
    """Return all fields and items in an object, except those that say which object it is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        here = (*way, key)
        if here in _IDENTITY:
            continue
        if here != ("metadata",):
            yield Place(value, key, here)
        yield from places(member, here)


def mutate(random: Random, obj: Any) -> Any:
    """Return a copy of an object with one change."""
    made = copy.deepcopy(obj)
    place = random.choice(list(places(made)))
    random.choice(_CHANGES)(random, place)
    return made


def _remove(random: Random, place: Place) -> None:
    del place.parent[place.key]


def _retype(random: Random, place: Place) -> None:
    place.parent[place.key] = copy.deepcopy(random.choice(WRONG))


def _misspell(random: Random, place: Place) -> None:
    if isinstance(place.parent, dict):
        place.parent[f"{place.key}x"] = place.parent.pop(place.key)
    else:
        _add_unknown(random, place)


def _add_unknown(random: Random, place: Place) -> None:
    target = place.value if isinstance(place.value, dict) else place.parent
    if isinstance(target, dict):
        target["nonsense"] = random.choice(WRONG)
    else:
        target.append(random.choice(WRONG))


def _exaggerate(random: Random, place: Place) -> None:
    if isinstance(place.value, list) and place.value:
        place.value.append(copy.deepcopy(place.value[0]))
    elif isinstance(place.value, int):
        place.parent[place.key] = random.choice(NUMBERS)
    elif isinstance(place.value, str):
        place.parent[place.key] = random.choice(STRINGS)
    else:
        _retype(random, place)


_CHANGES: tuple[Callable[[Random, Place], None], ...] = (
    _remove,
    _retype,
    _misspell,
    _add_unknown,
    _exaggerate,
    _exaggerate,
)
