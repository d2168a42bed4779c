"""The one door for JSON from other programs: reads all that API servers store, also what msgspec refuses.

msgspec refuses deep nesting (with CPython 3.11 it reads fewer than 1,000 levels; API servers accept 10,000, as Go does),
half a surrogate pair in a string, and invalid UTF-8. These functions try msgspec first. If it fails, they repair the
strings, cut the JSON into pieces that msgspec can read, and put the values together. That takes some 50 ms for each
megabyte of nested bytes, and a quarter of it if the nested part is not read.
"""

from __future__ import annotations

import gc
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import msgspec

from .brackets import MOST_LEVELS as MOST_LEVELS
from .brackets import crossings
from .brackets import end_of_brackets as end_of_brackets

T = TypeVar("T")

_LEVELS = 200
"""Most levels of one piece for msgspec: few enough at any stack depth of a program."""

_TOP_LEVELS = 50
"""Levels that stay in the outermost piece: more than metadata has."""

_FEW = 64
"""The number of places to cut is small if each has this many bytes on average."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for bytes that are not JSON, do not fit the type, or are nested too deeply."""

_HALF_PAIR = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
"""Half a surrogate pair, where each backslash begins an escape sequence."""

_decode_any = msgspec.json.Decoder().decode
_decode_lenient = msgspec.json.Decoder(float_hook=float).decode


def decode_any(raw: bytes | msgspec.Raw) -> Any:
    """Decode JSON to dicts and lists, even if msgspec refuses it.

    Bytes that are not UTF-8, and half a surrogate pair, become U+FFFD, as in Go. Floats that are too large become
    infinity.

    Raises:
        DECODE_ERRORS: It is not JSON, or has more than MOST_LEVELS levels.
    """
    try:
        return _decode_any(raw)
    except DECODE_ERRORS:
        tidy = _tidy(bytes(raw))
    try:
        return _decode_lenient(tidy)
    except RecursionError:
        return Pieces(tidy).value()


def decode_typed(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """Decode with a typed decoder, even if fields that it skips, or reads as ``Any`` or ``Raw``, are nested deeply.

    Raises:
        DECODE_ERRORS: It is not JSON, does not fit the type, or has more than MOST_LEVELS levels.
    """
    try:
        return decoder.decode(raw)
    except RecursionError:
        pass
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
    ):  # msgspec checks surrogates also in fields that it skips
        whole = bytes(raw)
        if (tidy := _tidy(whole)) == whole:
            raise
        return decode_typed(decoder, tidy)
    tidy = _tidy(bytes(raw))
    pieces = Pieces(tidy, every=MOST_LEVELS)
    try:
        decoded = decoder.decode(pieces.shallow)
    except DECODE_ERRORS:  # the decoder reads a field that was cut out
        return msgspec.convert(Pieces(tidy).value(), decoder.type, str_keys=True)
    return pieces.with_whole_raws(decoded)


def decode_object(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """Decode a JSON object to dicts and lists; see ``decode_any``.

    Raises:
        DECODE_ERRORS: It is not a JSON object, or has more than MOST_LEVELS levels.
    """
    return msgspec.convert(decode_any(raw), dict[str, Any])


def reader_of(type_: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """Return the function that decodes JSON as a type that msgspec knows; see ``decode_typed``."""
    decoder = msgspec.json.Decoder(type_)
    decode = decoder.decode

    def read(raw: bytes | msgspec.Raw) -> T:
        try:
            return decode(raw)
        except DECODE_ERRORS:
            return decode_typed(decoder, raw)

    return read


class Pieces:
    """JSON in pieces that msgspec can read. A random number that is too large for any type stands for a piece.

    Args:
        raw: The JSON, without half surrogate pairs.
        every: Most levels of one piece, except the outermost. With more than the default, only the outermost piece can be read.

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
        with _paused_collector():
            return self._decode(self.shallow, self._values())

    def with_whole_raws(self, decoded: T) -> T:
        """Return what was decoded from the outermost piece, with the whole JSON in each Raw.

        Raises:
            msgspec.DecodeError: A number that stands for a piece was read as another type, such as a Decimal.
        """
        if self._is_in(decoded):
            decoded = _map_raws(decoded, self._whole)
            if self._is_in(decoded):
                raise msgspec.DecodeError("a field is nested too deeply: give it the type Any")
        return decoded

    def with_texts(self) -> tuple[bytes, Callable[[str], Any]]:
        """Return the outermost piece with strings in place of the numbers, and the function that reads these strings.

        It returns other strings as they are.
        """
        values = self._values()
        return self._number.sub(rb'"1e%b\1"' % self._digits.encode(), self.shallow), lambda text: values.get(
            text, text
        )

    def _is_in(self, decoded: Any) -> bool:
        return self._digits.encode() in msgspec.json.encode(decoded, enc_hook=repr)

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
def _paused_collector() -> Iterator[None]:
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
    for _ in range(5):
        first = _TOP_LEVELS + secrets.randbelow(_LEVELS - _TOP_LEVELS)
        places = crossings(raw, first=first, every=every)
        few = list(islice(places, limit))
        if len(few) < limit:
            return few
    return few + list(places)


def _map_raws(value: Any, change: Callable[[bytes], bytes]) -> Any:
    """Change each Raw in a decoded value."""
    if isinstance(value, msgspec.Raw):
        return msgspec.Raw(change(bytes(value)))
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            msgspec.structs.force_setattr(value, name, _map_raws(getattr(value, name), change))
    elif isinstance(value, dict):
        for name, part in value.items():
            value[name] = _map_raws(part, change)
    elif isinstance(value, list):
        value[:] = [_map_raws(part, change) for part in value]
    elif type(value) is tuple:
        return tuple(_map_raws(part, change) for part in value)
    return value


def _tidy(raw: bytes) -> bytes:
    """Replace invalid UTF-8 and half surrogate pairs with U+FFFD."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raw = raw.decode(errors="replace").encode()
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    # Bytes that UTF-8 never has stand for pairs of backslashes, so that each backslash begins an escape sequence.
    escapes = raw.replace(b"\\\\", b"\xff\xff")
    return _HALF_PAIR.sub(rb"\\ufffd", escapes).replace(b"\xff\xff", b"\\\\")
