"""A dict for very many keys that does not block the event loop when it grows."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from itertools import chain
from typing import Any, TypeVar

V = TypeVar("V")

SLICES = 64
"""A power of two."""

_NONE: Any = object()


class SlicedDict(MutableMapping[str, V]):
    """A mapping that spreads its keys over many dicts.

    A dict that grows to a million keys copies them all at once, which takes a tenth of a second. Here each dict has a
    64th of the keys.
    """

    __slots__ = ("_slices",)

    def __init__(self) -> None:
        self._slices: list[dict[str, V]] = [{} for _ in range(SLICES)]

    def _slice(self, key: object) -> dict[str, V]:
        return self._slices[hash(key) >> 32 & SLICES - 1]  # the slices' dicts use the low bits

    def __getitem__(self, key: str) -> V:
        return self._slice(key)[key]

    def __setitem__(self, key: str, value: V) -> None:
        self._slice(key)[key] = value

    def __delitem__(self, key: str) -> None:
        del self._slice(key)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._slice(key)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, in no order."""
        return chain.from_iterable(self._slices)

    def __len__(self) -> int:
        return sum(map(len, self._slices))

    def get(self, key: str, default: Any = None) -> Any:
        return self._slice(key).get(key, default)

    def pop(self, key: str, default: Any = _NONE) -> Any:
        part = self._slice(key)
        return part.pop(key) if default is _NONE else part.pop(key, default)

    def columns(self) -> tuple[tuple[str, ...], tuple[V, ...]]:
        """Return the keys, and their values in the same order: much faster than by iterating over items."""
        keys = tuple(chain.from_iterable(self._slices))
        return keys, tuple(chain.from_iterable(part.values() for part in self._slices))
