"""JSON that API servers store and msgspec refuses: nested deeply, or with half a surrogate pair in a text.

msgspec reads as many levels as CPython's recursion limit has left, fewer than 1,000. API servers take 10,000, as Go
does. What is here is tried only where msgspec has failed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

MOST_LEVELS = 10_000
"""Levels that are read, as many as by Go's encoding/json."""

_LEVELS_AT_ONCE = 100
"""Levels that msgspec is given in one piece: few enough wherever in a program that is."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are no JSON, not of the wanted shape, or nested too deeply."""

_FLAT = rb'[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SIMPLE = _FLAT
for _ in range(4):  # each level saves steps in Python, and may scan once more what is nested deeper
    _SIMPLE = rb"%b|[\[{](?:%b)*+[\]}]" % (_FLAT, _SIMPLE)
_BRACKETS = re.compile(rb"(?:%b)*+(?:([\[{])|([\]}])|.?)" % _SIMPLE, re.DOTALL)
"""Skips texts, numbers and what is nested little. The next bracket is group 1 if it opens, group 2 if it closes;
there is neither at the end, or at a quote without its other one."""

_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*+)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)

_decode_any = msgspec.json.Decoder().decode


def decode_any(raw: bytes | msgspec.Raw) -> Any:
    """Return what JSON says, as dicts and lists, also where msgspec refuses it.

    Bytes that are not UTF-8, and half a surrogate pair, become U+FFFD, as in Go. A float that is too large becomes
    infinite.

    Raises:
        DECODE_ERRORS: It is no JSON, or nested more than MOST_LEVELS deep.
    """
    try:
        return _decode_any(raw)
    except DECODE_ERRORS:
        return _Cut(_tidy(bytes(raw))).value()


def decode_typed(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """Return what a decoder gives, whatever the nesting and the texts of what it skips or takes as ``Any``.

    Raises:
        DECODE_ERRORS: It is no JSON, not of the wanted shape, or nested more than MOST_LEVELS deep.
    """
    try:
        return decoder.decode(raw)
    except (RecursionError, UnicodeDecodeError):
        cut = _Cut(_tidy(bytes(raw)))
    except msgspec.DecodeError:  # msgspec checks surrogates also in what it skips
        whole = bytes(raw)
        if (tidy := _tidy(whole)) == whole:
            raise
        return decode_typed(decoder, tidy)
    try:
        found = decoder.decode(cut.shallow)
    except DECODE_ERRORS:  # it reads what was cut out
        return msgspec.convert(cut.value(), decoder.type, str_keys=True)
    cut.require_unseen(found)
    return found


def decode_parts(raw: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object for msgspec to encode again: what is nested deeply is a Raw.

    Raises:
        DECODE_ERRORS: It is no JSON object, or nested more than MOST_LEVELS deep.
    """
    return msgspec.convert(_Cut(_tidy(raw)).parts(), dict[str, Any])


def end_of_brackets(data: bytes, begin: int) -> int:
    """Return where the object or list at ``begin`` ends; 0 if there is none, or if it does not end."""
    if data[begin : begin + 1] not in (b"{", b"["):
        return 0
    depth = 0
    for found in _BRACKETS.finditer(data, begin + 1):
        if found.lastindex == 1:
            depth += 1
        elif found.lastindex == 2:
            depth -= 1
            if depth < 0:
                return found.end()
        else:
            break
    return 0


class _Cut:
    """JSON in pieces that msgspec can read. A number that nothing can be stands for what is nested deeper.

    Args:
        raw: The JSON.

    Attributes:
        shallow: The outermost piece.
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._pieces: dict[str, tuple[int, int, bytes]] = {}
        """Where each piece is, and its JSON, by the number that stands for it; inner pieces first."""
        self._mark = f"1e{secrets.randbits(64) | 1 << 63}"  # nobody can have written it into the JSON
        open_pieces: list[tuple[int, list[bytes]]] = []
        outer: list[bytes] = []
        depth = copied = 0
        for found in _BRACKETS.finditer(raw):
            if found.lastindex == 1:
                depth += 1
                if depth > MOST_LEVELS:
                    raise msgspec.DecodeError(f"it is nested more than {MOST_LEVELS} levels deep")
                if depth % _LEVELS_AT_ONCE == 0:
                    begin = found.start(1)
                    outer.append(raw[copied:begin])
                    open_pieces.append((begin, outer))
                    outer, copied = [], begin
            elif found.lastindex == 2:
                if depth % _LEVELS_AT_ONCE == 0 and open_pieces:
                    end = found.end()
                    outer.append(raw[copied:end])
                    begin, around = open_pieces.pop()
                    number = f"{self._mark}{len(self._pieces)}"
                    self._pieces[number] = begin, end, b"".join(outer)
                    around.append(number.encode())
                    outer, copied = around, end
                depth -= 1
            else:
                break
        if open_pieces:
            raise msgspec.DecodeError("it ends within an object or a list")
        outer.append(raw[copied:])
        self.shallow = b"".join(outer)

    def require_unseen(self, found: Any) -> None:
        """Check that no Raw in what was decoded of the outermost piece has a number that stands for a piece.

        Raises:
            msgspec.DecodeError: One has.
        """
        if self._mark.encode() in msgspec.json.encode(found, enc_hook=repr):
            raise msgspec.DecodeError("a field of type Raw is nested too deeply: give it the type Any")

    def value(self) -> Any:
        """All of it."""
        values: dict[str, Any] = {}
        decode = self._decode(values, float)
        for number, (_, _, piece) in self._pieces.items():
            values[number] = decode(piece)
        return decode(self.shallow)

    def parts(self) -> Any:
        """The outermost piece; what is deeper, and each float, is a Raw."""
        raw = self._raw
        parts = {number: msgspec.Raw(raw[begin:end]) for number, (begin, end, _) in self._pieces.items()}
        return self._decode(parts, lambda text: msgspec.Raw(text.encode()))(self.shallow)

    @staticmethod
    def _decode(known: dict[str, Any], other: Callable[[str], Any]) -> Callable[[bytes], Any]:
        def number(text: str) -> Any:
            return known[text] if text in known else other(text)

        return msgspec.json.Decoder(float_hook=number).decode


def _tidy(raw: bytes) -> bytes:
    """The JSON with U+FFFD for what is no text."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raw = raw.decode(errors="replace").encode()
    return _LONE_SURROGATE.sub(lambda found: found[0] if len(found[2]) > 6 else found[1] + rb"\ufffd", raw)
