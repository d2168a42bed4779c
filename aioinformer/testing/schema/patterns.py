"""Regular expressions of Go's syntax (RE2), by Python's `re`."""

from __future__ import annotations

import re
from functools import cache

_POSIX = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:space:]": r"\s",
    "[:upper:]": "A-Z",
    "[:word:]": r"\w",
    "[:xdigit:]": "0-9A-Fa-f",
}
_TOKEN = re.compile(r"\\[\s\S]|\[\^?\]?(?:\[:\w+:\]|\\[\s\S]|[^\]\\])*\]|\(\?<(?![=!])|\$")
_ONLY_PERL = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9]")
_ONLY_GO = re.compile(r"\\[pPQC]|.\(\?[a-zA-Z-]+[):]", re.DOTALL)
_MESSAGES = {
    "missing ), unterminated subpattern": "missing closing ): `{}`",
    "unbalanced parenthesis": "unexpected ): `{}`",
    "unterminated character set": "missing closing ]: `{}`",
    "nothing to repeat": "missing argument to repetition operator: `{}`",
}


@cache
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Compile a regular expression; None if Go understands it and Python does not.

    Raises:
        ValueError: Go does not understand it; with Go's message.
    """
    for found in _ONLY_PERL.finditer(re.sub(r"\\\\", "__", pattern)):
        perl = found[0]
        why = (
            f"invalid escape sequence: `{perl}`"
            if perl[0] == "\\"
            else f"invalid or unsupported Perl syntax: `{perl[:3]}`"
        )
        raise ValueError(f"error parsing regexp: {why}")
    try:
        return re.compile(_TOKEN.sub(_translated, pattern), re.ASCII)
    except re.error as error:
        if _ONLY_GO.search(pattern):
            return None
        place = error.pos or 0
        shown = pattern[place] if error.msg == "nothing to repeat" else pattern[place:]
        if ")" in error.msg or "parenthesis" in error.msg:
            shown = pattern
        why = _MESSAGES.get(error.msg, f"{error.msg}: `{{}}`").format(shown)
        raise ValueError(f"error parsing regexp: {why}") from None


def matches(pattern: str, text: str) -> bool:
    """Return whether a text has a match of a valid pattern; True for one that Python does not understand."""
    compiled = compile_pattern(pattern)
    return compiled is None or compiled.search(text) is not None


def _translated(found: re.Match[str]) -> str:
    """Return what means in Python what a part of a pattern means in Go."""
    text = found[0]
    if text in ("$", r"\z"):
        return r"\Z"  # Python's $ also matches before a last newline
    if text == "(?<":
        return "(?P<"
    if text.startswith("["):
        for name, letters in _POSIX.items():
            text = text.replace(name, letters)
    return text
