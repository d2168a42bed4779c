"""Cuts deeply nested JSON into pieces that msgspec can read, and puts the values together."""

from __future__ import annotations

import gc
import re
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar, cast

import msgspec

from .brackets import MOST_LEVELS, crossings

T = TypeVar("T")

_LEVELS = 200
"""Most levels of one piece for msgspec: few enough at any stack depth of a program."""

_TOP_LEVELS = 50
"""Levels that stay in the outermost piece: more than metadata has."""

_FEW = 64
"""The number of places to cut is small if each has this many bytes on average."""


class Pieces:
    """JSON in pieces that msgspec can read. A random number that is too large for any type stands for a piece.

    Args:
        raw: The JSON, tidy.
        every: Most levels of an inner piece. With more than the default, only the outermost piece can be read.

    Attributes:
        shallow: The outermost piece.

    Raises:
        msgspec.DecodeError: It has more than MOST_LEVELS levels, or ends within an object or a list.
    """

    def __init__(self, raw: bytes, every: int = _LEVELS) -> None:
        self._raw = raw
        self._pieces: list[tuple[int, int, bytes]] = []
        """Begin, end and JSON of each piece; inner pieces first."""
        self._digits = str(secrets.randbits(64) | 1 << 63)  # random, so the JSON cannot contain it
        self._number = re.compile(rb" 1e%b(\d+) " % self._digits.encode())
        open_pieces: list[tuple[int, list[bytes]]] = []
        outer: list[bytes] = []
        copied = 0
        for place, opens in _few_crossings(raw, every):
            if opens:
                outer.append(raw[copied:place])
                open_pieces.append((place, outer))
                outer, copied = [], place
            else:
                end = place + 1
                outer.append(raw[copied:end])
                begin, around = open_pieces.pop()
                around.append(f" 1e{self._digits}{len(self._pieces)} ".encode())
                self._pieces.append((begin, end, b"".join(outer)))
                outer, copied = around, end
        if open_pieces:
            raise msgspec.DecodeError("it ends within an object or a list")
        outer.append(raw[copied:])
        self.shallow = b"".join(outer)

    def value(self) -> Any:
        """Return the whole value."""
        with pause_collector():
            return self._decode(self.shallow, self._values())

    def with_whole_raws(self, decoded: T) -> T:
        """Return what was decoded from the outermost piece, with the whole JSON in each Raw."""
        if self._digits.encode() not in msgspec.json.encode(decoded, enc_hook=repr):
            return decoded
        return cast("T", _map_raws(decoded, self._whole, ()))

    def convert(self, type_: type[T], decode_hook: Callable[[type, Any], Any] | None = None) -> T:
        """Return the value as a type, which has ``Any`` or ``Raw`` where the JSON is nested deeply.

        Args:
            type_: The type.
            decode_hook: Returns a value as a type within it that msgspec does not know.

        Raises:
            DECODE_ERRORS: It is not JSON, or does not fit the type.
        """
        with pause_collector():
            values = self._values()
            read: list[Any] = []

            def number(text: str) -> Any:
                if text not in values:
                    return float(text)
                read.append(values[text])
                return values[text]

            decoded = msgspec.json.Decoder(type_, float_hook=number, dec_hook=decode_hook).decode(
                self.shallow
            )
            if len(read) == len(self._number.findall(self.shallow)):
                return decoded
            return cast("T", _map_raws(decoded, self._whole, frozenset(map(id, read))))

    def with_texts(self) -> tuple[bytes, dict[str, Any]]:
        """Return the outermost piece with strings in place of the numbers, and the values for these strings."""
        with pause_collector():
            values = self._values()
        numbers = [f"1e{self._digits}{match[1].decode()}" for match in self._number.finditer(self.shallow)]
        shallow = self._number.sub(rb'"1e%b\1"' % self._digits.encode(), self.shallow)
        return shallow, {number: values[number] for number in numbers}

    def _whole(self, raw: bytes) -> bytes:
        """Put the whole pieces into a part of the outermost piece."""

        def piece(number: re.Match[bytes]) -> bytes:
            begin, end, _ = self._pieces[int(number[1])]
            return self._raw[begin:end]

        return self._number.sub(piece, b" %b " % raw).strip()

    def _values(self) -> dict[str, Any]:
        """Return the value of each piece by the number that stands for it."""
        values: dict[str, Any] = {}
        for index, (_, _, piece) in enumerate(self._pieces):
            values[f"1e{self._digits}{index}"] = self._decode(piece, values)
        return values

    @staticmethod
    def _decode(piece: bytes, values: dict[str, Any]) -> Any:
        def number(text: str) -> Any:
            return values[text] if text in values else float(text)

        return msgspec.json.Decoder(float_hook=number).decode(piece)


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause the garbage collector, which would search the many new lists and dicts again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _few_crossings(raw: bytes, every: int) -> list[tuple[int, bool]]:
    """Return where to cut. The levels are random, so no object can have most of its brackets there."""
    limit = len(raw) // _FEW + 2 * MOST_LEVELS // _LEVELS
    tries = 5
    while True:
        first = _TOP_LEVELS + secrets.randbelow(_LEVELS - _TOP_LEVELS)
        places = crossings(raw, first=first, every=every)
        few = list(islice(places, limit))
        tries -= 1
        if len(few) < limit or not tries:
            return few + list(places)


def _map_raws(value: Any, change: Callable[[bytes], bytes], others: Collection[int]) -> Any:
    """Change each Raw in a decoded value, except in the values with other ids."""
    if isinstance(value, msgspec.Raw):
        return msgspec.Raw(change(bytes(value)))
    if id(value) in others:
        return value
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            msgspec.structs.force_setattr(value, name, _map_raws(getattr(value, name), change, others))
    elif isinstance(value, dict):
        for name, part in value.items():
            value[name] = _map_raws(part, change, others)
    elif isinstance(value, list):
        value[:] = [_map_raws(part, change, others) for part in value]
    elif type(value) is tuple:
        return tuple(_map_raws(part, change, others) for part in value)
    return value
