"""Reads JSON that API servers store and msgspec refuses: deep nesting, and half a surrogate pair in a string.

With CPython 3.11, msgspec reads fewer than 1,000 levels. API servers accept 10,000, as Go does.
These functions are slow and used only after msgspec has failed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

MOST_LEVELS = 10_000
"""Levels that can be read, the limit of Go's encoding/json."""

_LEVELS_AT_ONCE = 100
"""Levels of one piece for msgspec: few enough at any stack depth of a program."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for bytes that are not JSON, do not fit the type, or are nested too deeply."""

_FLAT = re.compile(rb'(?:[^"\[\]{}]*"[^"\\]*"){0,100}[^"\[\]{}]*')
"""Skips numbers, and strings without escapes: a hundred, since each repetition takes memory."""

_CLOSING_QUOTE = re.compile(rb'(?<!\\)(?:\\\\)*"')

_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)

_decode_any = msgspec.json.Decoder().decode


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
        return _Cut(_tidy(bytes(raw))).value()


def decode_typed(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """Decode with a typed decoder, even if fields that it skips or reads as ``Any`` are nested deeply.

    Raises:
        DECODE_ERRORS: It is not JSON, does not fit the type, or has more than MOST_LEVELS levels.
    """
    try:
        return decoder.decode(raw)
    except (RecursionError, UnicodeDecodeError):
        cut = _Cut(_tidy(bytes(raw)))
    except msgspec.DecodeError:  # msgspec checks surrogates also in fields that it skips
        whole = bytes(raw)
        if (tidy := _tidy(whole)) == whole:
            raise
        return decode_typed(decoder, tidy)
    try:
        found = decoder.decode(cut.shallow)
    except DECODE_ERRORS:  # the decoder reads a field that was cut out
        return msgspec.convert(cut.value(), decoder.type, str_keys=True)
    cut.require_unseen(found)
    return found


def decode_parts(raw: bytes) -> dict[str, Any]:
    """Decode a JSON object so that msgspec can encode it again: deeply nested values are ``msgspec.Raw``.

    Raises:
        DECODE_ERRORS: It is not a JSON object, or has more than MOST_LEVELS levels.
    """
    return msgspec.convert(_Cut(_tidy(raw)).parts(), dict[str, Any])


def end_of_brackets(data: bytes, begin: int) -> int:
    """Return the end of the object or list that begins at ``begin``; 0 if there is none, or no end."""
    if data[begin : begin + 1] not in (b"{", b"["):
        return 0
    depth = 0
    for place, opens in _brackets(data, begin):
        depth += 1 if opens else -1
        if not depth:
            return place + 1
    return 0


def _brackets(data: bytes, begin: int) -> Iterator[tuple[int, bool]]:
    """Yield where each bracket is, without those in strings, and whether it opens. A string without an end ends it."""
    place = _end_of_flat(data, begin)
    while mark := data[place : place + 1]:
        if mark == b'"':
            closing = _CLOSING_QUOTE.search(data, place + 1)
            if closing is None:
                return
            place = closing.end()
        else:
            yield place, mark in b"[{"
            place += 1
        place = _end_of_flat(data, place)


def _end_of_flat(data: bytes, begin: int) -> int:
    found = _FLAT.match(data, begin)
    assert found is not None  # it matches nothing, too
    return found.end()


class _Cut:
    """JSON in pieces that msgspec can read. In a piece, a random number that is too large stands for each deeper piece.

    Args:
        raw: The JSON.

    Attributes:
        shallow: The outermost piece.
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._pieces: dict[str, tuple[int, int, bytes]] = {}
        """Begin, end and JSON of each piece, by the number that stands for it; inner pieces first."""
        self._mark = f"1e{secrets.randbits(64) | 1 << 63}"  # random, so the JSON cannot contain it
        open_pieces: list[tuple[int, list[bytes]]] = []
        outer: list[bytes] = []
        depth = copied = 0
        for place, opens in _brackets(raw, 0):
            if opens:
                depth += 1
                if depth > MOST_LEVELS:
                    raise msgspec.DecodeError(f"it is nested more than {MOST_LEVELS} levels deep")
                if depth % _LEVELS_AT_ONCE == 0:
                    outer.append(raw[copied:place])
                    open_pieces.append((place, outer))
                    outer, copied = [], place
            else:
                if depth % _LEVELS_AT_ONCE == 0 and open_pieces:
                    end = place + 1
                    outer.append(raw[copied:end])
                    begin, around = open_pieces.pop()
                    number = f"{self._mark}{len(self._pieces)}"
                    self._pieces[number] = begin, end, b"".join(outer)
                    around.append(number.encode())
                    outer, copied = around, end
                depth -= 1
        if open_pieces:
            raise msgspec.DecodeError("it ends within an object or a list")
        outer.append(raw[copied:])
        self.shallow = b"".join(outer)

    def require_unseen(self, found: Any) -> None:
        """Check that no Raw in the decoded outermost piece contains a number that stands for a piece.

        Raises:
            msgspec.DecodeError: A Raw contains one.
        """
        if self._mark.encode() in msgspec.json.encode(found, enc_hook=repr):
            raise msgspec.DecodeError("a field of type Raw is nested too deeply: give it the type Any")

    def value(self) -> Any:
        """Return the whole value."""
        values: dict[str, Any] = {}
        decode = self._decode(values, float)
        for number, (_, _, piece) in self._pieces.items():
            values[number] = decode(piece)
        return decode(self.shallow)

    def parts(self) -> Any:
        """Return the outermost piece's value, with a Raw for each deeper piece and each float."""
        raw = self._raw
        parts = {number: msgspec.Raw(raw[begin:end]) for number, (begin, end, _) in self._pieces.items()}
        return self._decode(parts, lambda text: msgspec.Raw(text.encode()))(self.shallow)

    @staticmethod
    def _decode(known: dict[str, Any], other: Callable[[str], Any]) -> Callable[[bytes], Any]:
        def number(text: str) -> Any:
            return known[text] if text in known else other(text)

        return msgspec.json.Decoder(float_hook=number).decode


def _tidy(raw: bytes) -> bytes:
    """Replace invalid UTF-8 and lone surrogates with U+FFFD."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raw = raw.decode(errors="replace").encode()
    return _LONE_SURROGATE.sub(lambda found: found[0] if len(found[2]) > 6 else found[1] + rb"\ufffd", raw)
