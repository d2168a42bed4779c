"""Integers as Go's package strconv reads them, with its messages."""

from __future__ import annotations

import re

_SIGNED = re.compile("[+-]?[0-9]+")
_UNSIGNED = re.compile("[0-9]+")


def parse_int(text: str, function: str = "ParseInt") -> int:
    """Return a signed number of 64 bits; `function` stands in the error.

    Raises:
        ValueError: The text is no such number.
    """
    return _parse(_SIGNED, text, function, range(-(2**63), 2**63))


def parse_uint(text: str) -> int:
    """Return an unsigned number of 64 bits.

    Raises:
        ValueError: The text is no such number.
    """
    return _parse(_UNSIGNED, text, "ParseUint", range(2**64))


def _parse(pattern: re.Pattern[str], text: str, function: str, valid: range) -> int:
    why = "invalid syntax"
    if pattern.fullmatch(text):
        digits = text.lstrip("+-0")[:21] or "0"  # enough to see that a number is too large
        number = -int(digits) if text.startswith("-") else int(digits)
        if number in valid:
            return number
        why = "value out of range"
    raise ValueError(f'strconv.{function}: parsing "{text}": {why}')
