"""The syntax of Go's regular expressions, which API servers use for patterns: a parser with Go's messages.

It follows regexp/syntax/parse.go of Go 1.26, without what only makes matching faster.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

MOST_REPEATS = 1000
"""The most copies that a repetition, or nested ones together, may have."""

MOST_LEVELS = 1000

Has = Callable[[str], bool]
"""Whether a class of characters has a character."""


class Char(NamedTuple):
    """Matches one character."""

    has: Has


class Assertion(NamedTuple):
    """Matches no character, but a place in the text.

    Attributes:
        kind: The beginning or end of the text or of a line, or a boundary of words, or none.
    """

    kind: Literal["begin", "end", "begin line", "end line", "boundary", "no boundary"]


class Sequence(NamedTuple):
    """Matches all parts, one after the other."""

    parts: list[Any]


class Choice(NamedTuple):
    """Matches one of the parts, rather an earlier one."""

    parts: list[Any]


class Repeat(NamedTuple):
    """Matches a part several times.

    Attributes:
        most: None for any number.
        is_greedy: Whether more times are preferred.
    """

    part: Any
    least: int
    most: int | None
    is_greedy: bool


class _Flags(NamedTuple):
    ignores_case: bool = False
    is_multi_line: bool = False
    dot_has_newline: bool = False
    is_lazy: bool = False


class _Group(NamedTuple):
    """An open group: what is before it and the flags there, and whether it is captured."""

    choices: list[Any]
    parts: list[Any]
    flags: _Flags
    is_captured: bool


_PERL: dict[str, str] = {"d": "0-9", "s": "\t\n\f\r ", "w": "0-9A-Za-z_"}
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\0-\x7f", "blank": "\t ", "cntrl": "\0-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@[-`{-~", "space": "\t-\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASSERTIONS: dict[str, Any] = {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}
_TIMES = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_CATEGORIES: dict[str, tuple[tuple[str, ...], bool]] = {
    **{
        name: ((name,), False)
        for name in (
            *("C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn"),
            *("N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps"),
            *("S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
        )
    },
    "Lc": (("Ll", "Lt", "Lu"), False),
    "Assigned": (("Cn",), True),
}
"""The categories of Unicode: the beginnings of their names in Python, and whether all others are meant."""
_MORE_CASES = {"k": "\u212a", "s": "\u017f", "\u00e5": "\u212b"}
_CODE_POINT = "0*(?:10[0-9A-Fa-f]{4}|[0-9A-Fa-f]{1,5})"
_HEXADECIMAL = re.compile(rf"([0-9A-Fa-f]{{2}})|\{{({_CODE_POINT})\}}")
_NOT_HEXADECIMAL = re.compile(rf"\{{(?:{_CODE_POINT})?.?|.{{0,2}}", re.DOTALL)
_OCTAL = re.compile("0[0-7]{0,2}|[1-7][0-7]{1,2}")
_POSIX_CLASS = re.compile(r"\[:(.*?):\]", re.DOTALL)
_NAMED = re.compile(r"\(\?P?<")


def parse(pattern: str) -> Any:
    """Return the tree of a regular expression.

    Raises:
        ValueError: Go does not understand it; with Go's message.
        NotImplementedError: It has a script of Unicode, such as ``\\p{Greek}``, which Python does not know.
    """
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = _Flags()
        self._groups: list[_Group] = []
        self._choices: list[Any] = []
        self._parts: list[Any] = []
        self._copies: dict[int, tuple[int, int]] = {}
        """By a part's identity: the most copies of what it repeats, and its levels."""

    def parse(self) -> Any:
        repeated_at = -1  # where the repetition began that ends here
        while (char := self._peek()) is not None:
            begin = self._at
            if char in "*+?" or (char == "{" and _TIMES.match(self._pattern, begin)):
                self._repeat(repeated_at)
                repeated_at = begin
                continue
            repeated_at = -1
            self._at += 1
            match char:
                case "(":
                    self._open()
                case ")":
                    self._close()
                case "|":
                    self._choices.append(Sequence(self._parts))
                    self._parts = []
                case "[":
                    self._parts.append(Char(self._class(begin)))
                case "^":
                    self._parts.append(Assertion("begin line" if self._flags.is_multi_line else "begin"))
                case "$":
                    self._parts.append(Assertion("end line" if self._flags.is_multi_line else "end"))
                case ".":
                    self._parts.append(Char(_any if self._flags.dot_has_newline else _any_in_line))
                case "\\":
                    self._read_escaped(begin)
                case _:
                    self._literal(char)
        if self._groups:
            raise _error("missing closing )", self._pattern)
        return self._choice()

    def _peek(self) -> str | None:
        return self._pattern[self._at] if self._at < len(self._pattern) else None

    def _literal(self, char: str) -> None:
        self._parts.append(Char(self._fold(lambda other: other == char)))

    def _fold(self, has: Has) -> Has:
        """Return whether a class has a character, or has it in another case if that does not matter here."""
        if not self._flags.ignores_case:
            return has
        return lambda char: any(map(has, _cases(char)))

    # -- groups and repetitions ----------------------------------------------------------------------------

    def _open(self) -> None:
        begin = self._at - 1
        if self._peek() != "?":
            self._enter(is_captured=True)
            return
        rest = self._pattern[begin:]
        if (named := _NAMED.match(rest)) and len(rest) > named.end():
            end = rest.find(">")
            if end < 0:
                raise _error("invalid named capture", rest)
            if not re.fullmatch("[A-Za-z0-9_]+", rest[named.end() : end]):
                raise _error("invalid named capture", rest[: end + 1])
            self._at = begin + end + 1
            self._enter(is_captured=True)
            return
        self._at += 1
        flags, value, saw_flag = self._flags, True, False
        names = {"i": "ignores_case", "m": "is_multi_line", "s": "dot_has_newline", "U": "is_lazy"}
        while (char := self._peek()) is not None:
            self._at += 1
            if char in names:
                flags, saw_flag = flags._replace(**{names[char]: value}), True
            elif char == "-" and value:
                value, saw_flag = False, False
            elif char in ":)" and (value or saw_flag):
                if char == ":":
                    self._enter(is_captured=False)
                self._flags = flags
                return
            else:
                break
        raise _error("invalid or unsupported Perl syntax", self._pattern[begin : self._at])

    def _enter(self, *, is_captured: bool) -> None:
        self._groups.append(_Group(self._choices, self._parts, self._flags, is_captured))
        self._choices, self._parts = [], []

    def _close(self) -> None:
        if not self._groups:
            raise _error("unexpected )", self._pattern)
        group = self._groups.pop()
        inner = self._choice(is_captured=group.is_captured)
        self._choices, self._parts, self._flags = group.choices, group.parts, group.flags
        self._parts.append(inner)

    def _choice(self, *, is_captured: bool = False) -> Any:
        """Return what the group has so far."""
        choices = [*self._choices, Sequence(self._parts)]
        made = Choice(choices) if len(choices) > 1 else choices[0]
        inside = [self._copies.get(id(part), (1, 1)) for choice in choices for part in choice.parts]
        levels = max((levels for _, levels in inside), default=0) + is_captured
        levels += any(len(choice.parts) > 1 for choice in choices) + (len(choices) > 1)
        if levels > MOST_LEVELS:
            raise _error("expression nests too deeply", self._pattern)
        self._copies[id(made)] = max((copies for copies, _ in inside), default=1), levels
        return made

    def _repeat(self, repeated_at: int) -> None:
        begin = self._at
        if times := _TIMES.match(self._pattern, begin):
            least = int(times[1][:9])
            most: int | None = least if not times[2] else int(times[3][:9]) if times[3] else None
            self._at = times.end()
        else:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._pattern[begin]]
            self._at += 1
        is_too_large = times and max(least, most or 0) > MOST_REPEATS
        if is_too_large or (most is not None and least > most):
            raise _error("invalid repeat count", self._pattern[begin : self._at])
        is_lazy = self._flags.is_lazy
        if self._peek() == "?":
            self._at += 1
            is_lazy = not is_lazy
        if repeated_at >= 0:
            raise _error("invalid nested repetition operator", self._pattern[repeated_at : self._at])
        if not self._parts:
            raise _error("missing argument to repetition operator", self._pattern[begin : self._at])
        part = self._parts.pop()
        copies, levels = self._copies.get(id(part), (1, 1))
        if times:
            copies *= max(most if most is not None else least, 1)
            if copies > MOST_REPEATS:
                raise _error("invalid repeat count", self._pattern[begin : self._at])
        if levels >= MOST_LEVELS:
            raise _error("expression nests too deeply", self._pattern)
        made = Repeat(part, least, most, not is_lazy)
        self._copies[id(made)] = copies, levels + 1
        self._parts.append(made)

    # -- characters ----------------------------------------------------------------------------------------

    def _read_escaped(self, begin: int) -> None:
        char = self._peek()
        if char in _ASSERTIONS:
            self._at += 1
            self._parts.append(Assertion(_ASSERTIONS[char]))
        elif char == "Q":
            text, _, _ = self._pattern[self._at + 1 :].partition("\\E")
            self._at = min(self._at + 1 + len(text) + 2, len(self._pattern))
            for literal in text:
                self._literal(literal)
        elif (has := self._class_escape(begin)) is not None:
            self._parts.append(Char(has))
        else:
            self._literal(self._escape(begin))

    def _class_escape(self, begin: int) -> Has | None:
        """Read ``\\d``, ``\\pL`` and the like after their backslash; None if another escape is there."""
        char = self._peek()
        if char is not None and char.lower() in _PERL:
            self._at += 1
            return _negate_if(char.isupper(), self._fold(_ranges(_PERL[char.lower()])))
        if char in ("p", "P"):
            return self._category(begin, is_negated=char == "P")
        return None

    def _category(self, begin: int, *, is_negated: bool) -> Has:
        rest = self._pattern[begin:]
        if len(rest) == 2:
            raise _error("invalid character class range", rest)
        end = rest.find("}") if rest[2] == "{" else 2
        if end < 0:
            raise _error("invalid character class range", rest)
        name = rest[3:end] if rest[2] == "{" else rest[2]
        self._at = begin + end + 1
        if name.startswith("^"):
            name, is_negated = name[1:], not is_negated
        plain = re.sub("[_ -]", "", name).capitalize()
        if plain == "Any":
            return lambda _: not is_negated
        if plain == "Ascii":
            return _negate_if(is_negated, self._fold(_ranges("\0-\x7f")))
        if plain in _CATEGORIES:
            wanted, is_other = _CATEGORIES[plain]
            has = self._fold(lambda char: unicodedata.category(char).startswith(wanted))
            return _negate_if(is_negated is not is_other, has)
        if len(plain) > 2 and plain.isalpha():
            raise NotImplementedError(f"Python does not know the characters of {name}")
        raise _error("invalid character class range", rest[: end + 1])

    def _escape(self, begin: int) -> str:
        """Read an escaped character after its backslash."""
        char = self._peek()
        if char is None:
            raise _error("trailing backslash at end of expression", "")
        self._at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        if octal := _OCTAL.match(self._pattern, begin + 1):
            self._at = octal.end()
            return chr(int(octal[0], 8))
        if char == "x":
            return self._hexadecimal(begin)
        if char.isascii() and not char.isalnum():
            return char
        raise _error("invalid escape sequence", self._pattern[begin : self._at])

    def _hexadecimal(self, begin: int) -> str:
        number = _HEXADECIMAL.match(self._pattern, self._at)
        if number is None:
            wrong = _NOT_HEXADECIMAL.match(self._pattern, self._at)
            raise _error("invalid escape sequence", self._pattern[begin : wrong.end() if wrong else None])
        self._at = number.end()
        return chr(int(number[1] or number[2], 16))

    def _class(self, begin: int) -> Has:
        """Read a class of characters after its bracket."""
        is_negated = self._peek() == "^"
        self._at += is_negated
        members: list[Has] = []
        ranges: list[tuple[str, str]] = []
        is_first = True
        while self._peek() != "]" or is_first:
            is_first = False
            at = self._at
            if named := _POSIX_CLASS.match(self._pattern, at):
                name = named[1].removeprefix("^")
                if name not in _POSIX:
                    raise _error("invalid character class range", named[0])
                members.append(_negate_if(named[1] != name, self._fold(_ranges(_POSIX[name]))))
                self._at = named.end()
                continue
            if self._peek() == "\\":
                self._at += 1
                if (has := self._class_escape(at)) is not None:
                    members.append(has)
                    continue
                self._at = at
            low = high = self._member(begin)
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                high = self._member(begin)
                if high < low:
                    raise _error("invalid character class range", self._pattern[at : self._at])
            ranges.append((low, high))
        self._at += 1
        members.append(self._fold(lambda char: any(low <= char <= high for low, high in ranges)))
        return _negate_if(is_negated, lambda char: any(has(char) for has in members))

    def _member(self, begin: int) -> str:
        """Read one character of a class."""
        char = self._peek()
        if char is None:
            raise _error("missing closing ]", self._pattern[begin:])
        self._at += 1
        return self._escape(self._at - 1) if char == "\\" else char


def _error(what: str, where: str) -> ValueError:
    return ValueError(f"error parsing regexp: {what}: `{where}`")


def _any(_: str) -> bool:
    return True


def _any_in_line(char: str) -> bool:
    return char != "\n"


def _negate_if(is_negated: bool, has: Has) -> Has:
    return (lambda char: not has(char)) if is_negated else has


def _ranges(text: str) -> Has:
    """Return the class of some characters and ranges: ``0-9_``."""
    ranges = []
    while text:
        is_range = text[1:2] == "-"
        ranges.append((text[0], text[2] if is_range else text[0]))
        text = text[3 if is_range else 1 :]
    return lambda char: any(low <= char <= high for low, high in ranges)


def _cases(char: str) -> list[str]:
    """Return a character in all its cases; of a k, that is also the sign of kelvin."""
    lower = char.upper().lower()
    cases = {char, char.lower(), char.upper(), lower, *_MORE_CASES.get(lower, "")}
    return [case for case in cases if len(case) == 1]
