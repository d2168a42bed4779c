"""YAML as the real server reads it: by the rules of Go's library, which takes ``y`` for true and ``1e3`` for 1000."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _texts, _value in (("y yes true on", True), ("n no false off", False)):
    for _text in _texts.split():
        _WORDS |= dict.fromkeys((_text, _text.capitalize(), _text.upper()), _value)

_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
"""Numbers that JSON lacks."""
_PLAIN = "!plain"
"""The tag of texts without quotes."""
_LARGEST = 2**64


def plain_value(text: str) -> Any:
    """Return the value of a text without quotes: None, a boolean, a number or a text.

    Raises:
        ValueError: JSON lacks the number.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NO_NUMBER.fullmatch(text):
        raise ValueError(f"json: unsupported value: {text}")
    digits = text.replace("_", "") if text[0] in "+-.0123456789" else ""
    if _INTEGER.fullmatch(digits) and -(_LARGEST // 2) <= (number := _integer(digits)) < _LARGEST:
        return number
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        if abs(value) != float("inf"):
            return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return text


def key_text(key: Any) -> str:
    """Return a key as JSON has it.

    Raises:
        ValueError: It is no text, boolean or number.
    """
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, (str, int)):
        return str(key)
    if isinstance(key, float):
        return f"{key:.8g}"
    raise ValueError(f"unsupported map key: {key!r}")


def _integer(digits: str) -> int:
    """Return an integer by Go's prefixes, where a leading 0 alone also means octal."""
    sign, digits = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return sign * (int(digits, 8) if is_octal else int(digits, 0))


@cache
def yaml_loader() -> Any:
    """Return the loader, a class of PyYAML."""
    import yaml

    class Loader(yaml.SafeLoader):
        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            if kind is yaml.ScalarNode and implicit[0] and value != "<<":
                return _PLAIN
            return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            return {key_text(key): value for key, value in super().construct_mapping(node, deep=deep).items()}

    Loader.add_constructor(_PLAIN, lambda loader, node: plain_value(node.value))
    return Loader
