"""Regular expressions of Go's syntax, matched in time that grows with the text alone, as RE2 does.

Python's `re` takes exponential time for patterns such as `^(a+)+$`, which a definition of a tenant may have.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer._core.go_syntax import Assertion, Char, Choice, Repeat, Sequence, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_STEPS = 100_000
"""Steps of a pattern, whose repetitions are copies; Go's limit is 3 million."""

_MOST_KNOWN = 10_000
"""Transitions that a pattern remembers."""

_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")

_EDGE, _NEWLINE, _LETTER, _OTHER = range(4)
"""Kinds of the characters beside a place in the text; _EDGE is none."""

_Step = tuple[Any, ...]
"""A step of a pattern: (Char.has, next), (Assertion.kind, next), or (None, *the next ones, the preferred one first)."""


class Pattern:
    """A compiled pattern.

    Args:
        pattern: The pattern, in Go's syntax.

    Raises:
        ValueError: Go does not understand it; with Go's message.
        NotImplementedError: Go understands it, but it is too large, or has characters that Python does not know.
    """

    def __init__(self, pattern: str) -> None:
        self._steps: list[_Step] = [()]  # the first one is the end
        self._begin = self._add(parse(pattern), 0)
        self._known: dict[tuple[frozenset[int], int, str], tuple[frozenset[int], bool]] = {}

    def matches(self, text: str) -> bool:
        """Return whether a part of the text matches."""
        known, begin = self._known, self._begin
        waiting, before = frozenset([begin]), _EDGE
        for char in text:
            key = waiting, before, char
            if (reached := known.get(key)) is None:
                reached = self._reach(waiting, before, char)
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                known[key] = reached
            waiting, is_match = reached
            if is_match:
                return True
            before = _kind_of(char)
        return 0 in self._places(sorted(waiting), before, _EDGE)

    def find(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        """Return where the first match from a place on begins and ends; None if there is none."""
        best: tuple[int, int] | None = None
        threads: dict[int, int] = {}  # where each began, by its step; the preferred one first
        for at in range(begin, len(text) + 1):
            if best is None:
                threads.setdefault(self._begin, at)
            before = _kind_of(text[at - 1]) if at else _EDGE
            after = _kind_of(text[at]) if at < len(text) else _EDGE
            moved: dict[int, int] = {}
            seen: set[int] = set()
            for step, begins_at in threads.items():
                places = self._places([step], before, after, seen)
                is_match = 0 in places
                for place in places[: places.index(0)] if is_match else places:
                    has, following = self._steps[place]
                    if at < len(text) and has(text[at]):
                        moved.setdefault(following, begins_at)
                if is_match:
                    best = begins_at, at
                    break
            if not moved and best is not None:
                return best
            threads = moved
        return best

    def _reach(self, waiting: frozenset[int], before: int, char: str) -> tuple[frozenset[int], bool]:
        """Return the steps that wait for the next character, and whether the text up to this one matches."""
        places = self._places(sorted(waiting), before, _kind_of(char))
        following = (self._steps[place] for place in places if place)
        reached = frozenset([self._begin, *(step for has, step in following if has(char))])
        return reached, 0 in places

    def _places(self, steps: list[int], before: int, after: int, seen: set[int] | None = None) -> list[int]:
        """Return the steps that need a character, and the end, that some steps lead to; preferred ones first."""
        seen = set() if seen is None else seen
        places = []
        left = steps[::-1]
        while left:
            number = left.pop()
            if number in seen:
                continue
            seen.add(number)
            step = self._steps[number]
            if not step or callable(step[0]):
                places.append(number)
            elif step[0] is None:
                left += step[:0:-1]
            elif _holds(step[0], before, after):
                left.append(step[1])
        return places

    def _add(self, tree: Any, following: int) -> int:
        """Add the steps of a tree, and return the first one."""
        if isinstance(tree, Char):
            return self._put((tree.has, following))
        if isinstance(tree, Assertion):
            return self._put((tree.kind, following))
        if isinstance(tree, Sequence):
            for part in reversed(tree.parts):
                following = self._add(part, following)
            return following
        if isinstance(tree, Choice):
            return self._put((None, *(self._add(part, following) for part in tree.parts)))
        assert isinstance(tree, Repeat)
        return self._add_repeat(tree, following)

    def _add_repeat(self, tree: Repeat, following: int) -> int:
        end = following

        def choose(part: int) -> _Step:
            return (None, part, end) if tree.is_greedy else (None, end, part)

        if tree.most is None:
            again = self._put(())
            self._steps[again] = choose(self._add(tree.part, again))
            following = again
        else:
            for _ in range(tree.most - tree.least):
                following = self._put(choose(self._add(tree.part, following)))
        for _ in range(tree.least):
            following = self._add(tree.part, following)
        return following

    def _put(self, step: _Step) -> int:
        if len(self._steps) >= _MOST_STEPS:
            raise NotImplementedError("the pattern is too large for the embedded server")
        self._steps.append(step)
        return len(self._steps) - 1


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern | None:
    """Compile a regular expression; None if Go understands it and this module does not.

    Raises:
        ValueError: Go does not understand it; with Go's message.
    """
    try:
        return Pattern(pattern)
    except (NotImplementedError, RecursionError):
        return None


def matches(pattern: str, text: str) -> bool:
    """Return whether a text has a match of a valid pattern; True for one that this module does not understand."""
    compiled = compile_pattern(pattern)
    return compiled is None or compiled.matches(text)


def find_all(pattern: Pattern, text: str) -> Iterator[str]:
    """Yield all matches in a text, without an empty one right after another one, as Go does."""
    at, last_end = 0, -1
    while at <= len(text) and (span := pattern.find(text, at)) is not None:
        begin, end = span
        if begin < end or begin != last_end:
            yield text[begin:end]
        last_end = end
        at = end if begin < end else end + 1


def _kind_of(char: str) -> int:
    return _NEWLINE if char == "\n" else _LETTER if char in _WORD else _OTHER


def _holds(kind: str, before: int, after: int) -> bool:
    match kind:
        case "begin":
            return before == _EDGE
        case "end":
            return after == _EDGE
        case "begin line":
            return before in (_EDGE, _NEWLINE)
        case "end line":
            return after in (_EDGE, _NEWLINE)
    return ((before == _LETTER) != (after == _LETTER)) is (kind == "boundary")
