"""Find the items of an edited list in the list that was read: by their keys, else by equality; never by index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from ..errors import AmbiguousEditError
from ..objects.json_values import frozen, same
from ..objects.shapes import WHOLE, Fields, Items, Members, Shape, Values

_NAME = ("name",)

_Groups = dict[Hashable, tuple[list[int], list[int]]]
"""Places in the known and in the edited list, by what their items have in common."""


def match_items(
    path: str, shape: Items, original: list[Any], known: list[Any], edited: list[Any]
) -> list[int | None]:
    """Return the place of each edited item in the original list; None for an item that is taken as it is.

    Items with the same key are the same item, if that key is there once. Other items are the same if they are equal. An
    edited item that equals none is either new, or a changed one; it is taken as it is if no fields are lost either way.

    Args:
        path: The list's path, for messages.
        shape: What the class knows of the list.
        original: The items at the server.
        known: What the class has of them.
        edited: What the class should have.

    Raises:
        AmbiguousEditError: Fields that the class does not have would be lost, or may belong to one item or another.
    """
    return _Match(path, shape, original, known, edited).places()


class _Match:
    def __init__(
        self, path: str, shape: Items, original: list[Any], known: list[Any], edited: list[Any]
    ) -> None:
        self._path = path
        self._shape = shape
        self._original = original
        self._known = known
        self._edited = edited
        self._places: list[int | None] = [None] * len(edited)

    def places(self) -> list[int | None]:
        if len(self._known) != len(self._original):  # a transformer has changed the list
            self._require_known(range(len(self._original)), "the list was read with other items")
            return self._places
        keys = self._shape.keys or (_NAME if self._shape.is_custom else ())
        groups = _group(
            [key_of(item, self._shape, keys) for item in self._known],
            [key_of(item, self._shape, keys) for item in self._edited],
        )
        # An item without its key may be any that has no counterpart; so may one with another name.
        old, new = groups.pop(None, ([], []))
        is_open = bool(old or new) or not self._shape.keys
        for before, after in groups.values():
            if len(before) == len(after) == 1:
                self._places[after[0]] = before[0]
            elif (is_open and not (before and after)) or not self._shape.keys:
                old += before
                new += after
            else:
                self._match_equal(before, after)
        self._match_equal(sorted(old), sorted(new))
        return self._places

    def _match_equal(self, old: list[int], new: list[int]) -> None:
        """Match items by equality, among these places of the known and the edited list."""
        if not (old and new):
            return
        removed: list[int] = []
        changed: list[int] = []
        is_order_needed = False
        groups = _group(
            [frozen_as(self._shape.of, self._known[place]) for place in old],
            [frozen_as(self._shape.of, self._edited[place]) for place in new],
        )
        for before, after in groups.values():
            olds, news = [old[number] for number in before], [new[number] for number in after]
            if not olds or not news:
                removed += olds
                changed += news
                continue
            is_alike = all(same(self._original[olds[0]], self._original[place]) for place in olds[1:])
            if len(news) > len(olds):
                self._require_known(
                    olds, "an item is there more often than it was read, so it is unknown which is new"
                )
                changed += news[len(olds) :]
            elif len(news) < len(olds) and not is_alike:
                self._require_known(
                    olds, "items that are equal in the class differ, so which was removed is unknown"
                )
            is_order_needed |= not is_alike
            for old_place, new_place in zip(olds, news, strict=False):
                self._places[new_place] = old_place
        if removed and changed:
            self._require_known(
                removed, "an item equals none that was read, so it is a new one or a changed one"
            )
        if is_order_needed:
            matched = [place for at in new if (place := self._places[at]) is not None]
            if matched != sorted(matched):
                self._require_known(
                    matched, "items that are equal in the class differ, so which moved is unknown"
                )

    def _require_known(self, places: Sequence[int], why: str) -> None:
        """Check that the class knows all fields of items.

        Raises:
            AmbiguousEditError: It does not.
        """
        for place in places:
            original, known = self._original[place], self._known[place] if place < len(self._known) else None
            item = self._shape.of.for_value(original)
            if unknown := item.unknown(original, known):
                raise AmbiguousEditError(self._path, f"{why}. {_advice(self._shape, item, place, unknown)}")


def _group(known: Sequence[Hashable], edited: Sequence[Hashable]) -> _Groups:
    groups: _Groups = defaultdict(lambda: ([], []))
    for places, values in enumerate((known, edited)):
        for place, value in enumerate(values):
            groups[value][places].append(place)
    return groups


def frozen_as(shape: Shape, value: Any) -> Hashable:
    """Return a hashable value that is equal for JSON values that are the same in a class.

    A field that JSON may omit is the same as its default, and a set has no order.
    """
    shape = shape.for_value(value)
    if isinstance(value, dict) and isinstance(shape, (Fields, Values)):
        fields = shape.fields if isinstance(shape, Fields) else {}
        omitted = shape.omitted if isinstance(shape, Fields) else {}
        of = shape.of if isinstance(shape, Values) else WHOLE
        parts = (
            (name, frozen_as(fields.get(name, of), part))
            for name, part in value.items()
            if not (name in omitted and same(part, omitted[name]))
        )
        return "{", frozenset(parts)
    if isinstance(value, list) and isinstance(shape, Members):
        return "set", frozenset(map(frozen, value))
    if isinstance(value, list) and isinstance(shape, Items) and shape.of is not WHOLE:
        return "[", *(frozen_as(shape.of, part) for part in value)
    return frozen(value)


def key_of(item: Any, shape: Items, keys: Sequence[str]) -> Hashable:
    """Return the key of an item; None if it lacks a part."""
    if not (keys and isinstance(item, dict)):
        return None
    of = shape.of.for_value(item)
    omitted = of.omitted if isinstance(of, Fields) else {}
    parts = [item.get(name, omitted.get(name)) for name in keys]
    return None if None in parts else tuple(map(frozen, parts))


def _advice(shape: Items, item: Shape, place: int, unknown: str) -> str:
    name = item.name if isinstance(item, Fields) else "the class"
    has = item.fields if isinstance(item, Fields) else ()
    if lacking := [key for key in shape.keys if key not in has]:
        keys = f"give {name} the fields that identify an item ({', '.join(lacking)})"
    elif shape.keys:
        keys = f"give each item its own {' and '.join(shape.keys)}"
    else:
        keys = 'say which fields identify an item, as in Annotated[list[...], MapOf("name")]'
    return (
        f"{name} lacks a field of item {place} as it was read ({unknown}). Nothing was written. Either {keys}; or give "
        f"{name} the field; or type the list as list[dict[str, Any]]; or send a patch"
    )
