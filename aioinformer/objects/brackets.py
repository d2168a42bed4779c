"""Finds where the nesting of JSON crosses a level, some 10 ms for each megabyte.

The steps work on many bytes at once. Python looks at single bytes only where a level may be crossed.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

MOST_LEVELS = 10_010
"""Levels that can be read: those of Go's encoding/json for an object, and a few of a list or a review around it."""

_WINDOW = 1 << 16
"""Bytes whose strings are blanked together."""

_PARTS = 8
_SMALL = _WINDOW // _PARTS**4
"""If a level may be crossed in a block, its parts are counted, down to blocks of 16 bytes."""

_OPEN, _CLOSE = b"[]"

_SQUARE = bytes.maketrans(b"{}", b"[]")
_BLANK = bytes.maketrans(b"[]{}", b"    ")
_OTHERS = bytes(set(range(256)) - set(b'"[]{}'))


def end_of_brackets(data: bytes, begin: int) -> int:
    """Return the end of the object or list that begins at ``begin``; 0 if there is none, or no end."""
    if data[begin : begin + 1] not in (b"{", b"["):
        return 0
    for place, opens in crossings(data, begin, first=1):
        if not opens:
            return place + 1
    return 0


def crossings(data: bytes, begin: int = 0, *, first: int, every: int = 0) -> Iterator[tuple[int, bool]]:
    """Yield where the nesting reaches certain levels, and where it leaves them.

    Args:
        data: JSON. Brackets in its strings do not count.
        begin: Where to begin, outside of strings.
        first: The first level.
        every: The distance of the other levels; 0 for only the first one, and no limit.

    Yields:
        The place of a bracket, and whether it opens.

    Raises:
        msgspec.DecodeError: There are more than MOST_LEVELS levels.
    """
    depth = 0
    below, level = -len(data) - 1, first  # the depths that leave a level, and reach the next one
    for offset, marks in _windows(data, begin):
        blocks = [(start, _WINDOW) for start in range(len(marks) // _WINDOW * _WINDOW, -1, -_WINDOW)]
        while blocks:
            start, size = blocks.pop()
            block = marks[start : start + size]
            opened, closed = block.count(_OPEN), block.count(_CLOSE)
            if depth + opened < level and depth - closed > below:
                depth += opened - closed
                continue
            if size > _SMALL:
                size //= _PARTS
                blocks.extend((start + part * size, size) for part in range(_PARTS - 1, -1, -1))
                continue
            for place, mark in enumerate(block, offset + start):
                if mark == _OPEN:
                    depth += 1
                    if depth < level:
                        continue
                    if depth > MOST_LEVELS and every:
                        raise msgspec.DecodeError(f"it is nested more than {MOST_LEVELS} levels deep")
                    yield place, True
                    below = depth - 1
                    level = min(depth + every, MOST_LEVELS + 1) if every else len(data) + 1
                elif mark == _CLOSE:
                    depth -= 1
                    if depth > below:
                        continue
                    yield place, False
                    level = depth + 1
                    below = depth - every if every and depth >= first else -len(data) - 1


def _windows(data: bytes, begin: int) -> Iterator[tuple[int, bytes]]:
    """Yield where each window begins, and its bytes: brackets become square ones, those in strings disappear."""
    quote = b""  # of a string that began in an earlier window
    while begin < len(data):
        end = begin + _WINDOW
        while data[end - 1 : end] == b"\\":  # no escape sequence may end in the next window
            end += _WINDOW
        window = quote + data[begin:end]
        offset = begin - len(quote)
        begin = end
        if b"\\" in window:
            window = window.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        # Strings without brackets disappear here. A quote that remains begins or ends a string with brackets, or is the
        # last one and begins a string that ends in the next window.
        marks = window.translate(None, _OTHERS).replace(b'""', b"")
        quote = b'"' if marks.count(b'"') % 2 else b""
        if b'"' in marks[:-1]:
            parts = window.split(b'"')
            parts[1::2] = b'"'.join(parts[1::2]).translate(_BLANK).split(b'"')
            window = b'"'.join(parts)
        yield offset, window.translate(_SQUARE)
