"""The one door for JSON from other programs: reads all that API servers store, also what msgspec refuses.

msgspec refuses half a surrogate pair in a string, invalid UTF-8, and deep nesting: with CPython 3.11 it reads fewer
than 1,000 levels, and API servers accept 10,000, as Go does. These functions try msgspec first. If it fails, they
repair the strings, cut the JSON into pieces that msgspec can read, and put the values together. That takes some 50 ms
for each megabyte of nested bytes, and a fifth of it if the nested part is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .brackets import MOST_LEVELS as MOST_LEVELS
from .brackets import end_of_brackets as end_of_brackets
from .pieces import Pieces

T = TypeVar("T")

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
        whole = tidy(bytes(raw))
    try:
        return _decode_lenient(whole)
    except RecursionError:
        return Pieces(whole).value()


def decode_typed(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T:
    """Decode with a typed decoder, even if fields that it skips, or reads as ``Any`` or ``Raw``, are nested deeply.

    Raises:
        DECODE_ERRORS: It is not JSON, does not fit the type, or has more than MOST_LEVELS levels.
    """
    try:
        return decoder.decode(raw)
    except RecursionError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError):
        given = bytes(raw)  # msgspec checks surrogates also in fields that it skips
        if (whole := tidy(given)) == given:
            raise
        return decode_typed(decoder, whole)
    whole = tidy(bytes(raw))
    pieces = Pieces(whole, every=MOST_LEVELS)
    try:
        return pieces.with_whole_raws(decoder.decode(pieces.shallow))
    except DECODE_ERRORS:  # the decoder reads a part that was cut out
        pieces = Pieces(whole)
    try:
        return pieces.convert(decoder.type, decoder.dec_hook)
    except DECODE_ERRORS:  # of a recursive type
        return msgspec.convert(pieces.value(), decoder.type, str_keys=True, dec_hook=decoder.dec_hook)


def decode_object(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """Decode a JSON object to dicts and lists; see ``decode_any``.

    Raises:
        DECODE_ERRORS: It is not a JSON object, or has more than MOST_LEVELS levels.
    """
    return msgspec.convert(decode_any(raw), dict[str, Any])


def reader_of(
    type_: type[T], decode_hook: Callable[[type, Any], Any] | None = None
) -> Callable[[bytes | msgspec.Raw], T]:
    """Return the function that decodes JSON as a type that msgspec knows; see ``decode_typed``.

    Args:
        type_: The type.
        decode_hook: Returns a value as a type within it that msgspec does not know.
    """
    decoder = msgspec.json.Decoder(type_, dec_hook=decode_hook)
    decode = decoder.decode

    def read(raw: bytes | msgspec.Raw) -> T:
        try:
            return decode(raw)
        except DECODE_ERRORS:
            return decode_typed(decoder, raw)

    return read


def tidy(raw: bytes) -> bytes:
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
