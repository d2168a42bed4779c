"""Patterns: Go's syntax with Go's messages, and time that grows with the text alone."""

from __future__ import annotations

import time

import pytest

from aioinformer.testing.schema.patterns import Pattern, compile_pattern, find_all, matches

# As regexp.Compile of Go 1.26 says.
REFUSED = {
    r"a\Z": r"invalid escape sequence: `\Z`",
    r"\C": r"invalid escape sequence: `\C`",
    r"(a)\1": r"invalid escape sequence: `\1`",
    r"\x{110000}": r"invalid escape sequence: `\x{110000`",
    r"\xg": r"invalid escape sequence: `\xg`",
    "\\": "trailing backslash at end of expression: ``",
    "a{1,2000}": "invalid repeat count: `{1,2000}`",
    "a{3,1}": "invalid repeat count: `{3,1}`",
    "(a{100}){11}": "invalid repeat count: `{11}`",
    "a++": "invalid nested repetition operator: `++`",
    "a*?*": "invalid nested repetition operator: `*?*`",
    "*": "missing argument to repetition operator: `*`",
    "(|*)": "missing argument to repetition operator: `*`",
    "(?x)a": "invalid or unsupported Perl syntax: `(?x`",
    "(?#a)": "invalid or unsupported Perl syntax: `(?#`",
    "(?=a)": "invalid or unsupported Perl syntax: `(?=`",
    "(?!a)": "invalid or unsupported Perl syntax: `(?!`",
    "(?<=a)b": "invalid named capture: `(?<=a)b`",
    "(?<!a>)b": "invalid named capture: `(?<!a>`",
    "(?>a)": "invalid or unsupported Perl syntax: `(?>`",
    "(a)?(?(1)b|c)": "invalid or unsupported Perl syntax: `(?(`",
    "(?P=n)": "invalid or unsupported Perl syntax: `(?P`",
    "(a": "missing closing ): `(a`",
    "a)": "unexpected ): `a)`",
    "[a": "missing closing ]: `[a`",
    "[z-a]": "invalid character class range: `z-a`",
    "[[:foo:]]": "invalid character class range: `[:foo:]`",
    r"\pX": r"invalid character class range: `\pX`",
    "(" * 1001 + ")" * 1001: f"expression nests too deeply: `{'(' * 1001 + ')' * 1001}`",
}


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_what_go_refuses(pattern: str) -> None:
    with pytest.raises(ValueError) as raised:
        compile_pattern(pattern)
    assert str(raised.value) == f"error parsing regexp: {REFUSED[pattern]}"


MATCHES: list[tuple[str, str, bool]] = [
    (r"^\S+$", "a\u00a0b", True),  # a no-break space is no space in Go
    (r"^\S+$", "a\x0bb", True),
    (r"^\w+$", "\u00e4", False),
    (r"\bx\B.", "x\u00e4", False),
    ("^a$", "a\n", False),
    ("(?m)^a$", "b\na\n", True),
    ("a.b", "a\nb", False),
    ("(?s)a.b", "a\nb", True),
    ("(?i)k", "\u212a", True),
    ("(?i)[a-z]+$", "\u017f", True),
    ("(?-i:a)(?i:b)", "aB", True),
    (r"^\pL\p{Nd}\P{L}$", "\u00e41-", True),
    (r"^[\pL\d-]+$", "\u00e41-", True),
    (r"^[^\d\s]$", "1", False),
    ("^[]a]+$", "]a", True),
    ("^[[:alpha:][:^digit:]]$", "-", True),
    ("^(?P<x>a|b)(?<y>c)$", "bc", True),
    (r"^\Qa.b\E$", "a.b", True),
    (r"^\x41\x{42}\103$", "ABC", True),
    ("^a{2,3}$", "aaaa", False),
    ("^a{,3}$", "a{,3}", True),
    ("^(a|ab)(c|bcd)$", "abcd", True),
    ("(a*)*$", "b", True),
    ("^$", "", True),
    (r"\A\z", "", True),
]


@pytest.mark.parametrize(("pattern", "text", "wanted"), MATCHES)
def test_matches_as_in_go(pattern: str, text: str, wanted: bool) -> None:
    assert matches(pattern, text) is wanted


def test_all_matches_are_found() -> None:
    for pattern, text, wanted in (
        ("a|ab", "abab", ["a", "a"]),
        ("a*", "baab", ["", "aa", ""]),
        ("(a+?)b?", "aab", ["a", "ab"]),
        (r"\b", "a b", ["", "", "", ""]),
        ("x", "abc", []),
    ):
        assert [*find_all(Pattern(pattern), text)] == wanted


@pytest.mark.parametrize(
    "pattern", [r"^([a-zA-Z0-9]+[-.]?)+$", "^(a+)+$", r"^(\w+\s?)*$", "((a{0,20}){0,10})+$"]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    began = time.perf_counter()
    text = "a" * 20_000 + "!"
    assert matches(pattern, text) is matches(pattern, "a!")
    assert [*find_all(Pattern(pattern), text[-500:])] == [*find_all(Pattern(pattern), "!")]
    assert time.perf_counter() - began < 20  # Python's re takes years


def test_what_python_does_not_know_is_not_enforced() -> None:
    assert compile_pattern(r"\p{Greek}") is None
    assert matches(r"^\p{Greek}$", "a")
    assert compile_pattern("(" * 999 + "a" + ")" * 999) is None  # Go can
