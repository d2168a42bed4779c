"""Scalars of built-in kinds as Go's types read and write them: numbers, bytes, times and quantities."""

from __future__ import annotations

import base64
import re
import string
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.objects import wrong_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.testing.schema.node import Node

_LIMITS = {"int32": 2**31, "int64": 2**63}


class UnreadableError(ValueError):
    """A value does not fit the type of its field; the message is Go's."""


def read_scalar(node: Node, value: Any, field: str) -> Any:
    """Return a scalar in Go's form.

    Args:
        node: The schema.
        value: The value, not None; the Python API also takes bytes, times and so on, as JSON would write them.
        field: Go's name of the struct and the path of the field, for the message.

    Raises:
        UnreadableError: The value does not fit.
    """
    read = _FORMATS.get(node.format)
    if read is not None:
        return read(value, field)
    value = _plain(value)
    match node.type:
        case "string" if isinstance(value, str):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "integer":
            return _integer(value, field, node.format or "int64")
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    raise UnreadableError(wrong_type(field, node.go, value))


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | dict | list) else msgspec.to_builtins(value)


def _integer(value: Any, field: str, type_: str) -> int:
    limit = _LIMITS[type_]
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return value
    message = wrong_type(field, type_, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        message = message.replace("number", f"number {msgspec.json.encode(value).decode()}", 1)
    raise UnreadableError(message)


def _int_or_string(value: Any, field: str) -> int | str:
    return value if isinstance(value, str) else _integer(value, field, "int32")


# Bytes

_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?")
_BASE64_LETTERS = string.ascii_letters + string.digits + "+/"


def _bytes(value: Any, field: str) -> str:
    given = _plain(value)
    if not isinstance(given, str):
        raise UnreadableError(wrong_type(field, "[]uint8", given))
    if _BASE64.fullmatch(given):
        return given
    try:
        return base64.b64encode(
            base64.b64decode(given.replace("\n", "").replace("\r", ""), validate=True)
        ).decode()
    except ValueError:
        good = len(given) - len(given.lstrip(_BASE64_LETTERS))
        place = good if good < len(given) else good // 4 * 4
        raise UnreadableError(f"illegal base64 data at input byte {place}") from None


# Times

# The elements of Go's time layouts, each with its pattern.
_DATE = (
    *(("2006", "[0-9]{4}"), ("-", "-"), ("01", "[0-9]{2}"), ("-", "-"), ("02", "[0-9]{2}"), ("T", "T")),
    *(("15", "[0-9]{2}"), (":", ":"), ("04", "[0-9]{2}"), (":", ":")),
)
_ZONE = ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}")
_SECONDS = (*_DATE, ("05", r"[0-9]{2}([.,][0-9]+)?"), _ZONE)
_MICROSECONDS = (*_DATE, ("05", "[0-9]{2}"), (".000000", r"\.[0-9]{6}"), _ZONE)
_MOMENT = (
    "[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)


def _time_of(layout: Sequence[tuple[str, str]], precision: str, canonical: str) -> Callable[[Any, str], str]:
    written = "".join(element for element, _ in layout)

    def read_time(value: Any, field: str) -> str:
        text = _plain(value)
        if not isinstance(text, str):
            raise UnreadableError(wrong_type(field, "string", text))
        if re.fullmatch(canonical, text):
            return text
        rest = text
        for element, pattern in layout:
            match = re.match(pattern, rest)
            if match is None:
                why = f'parsing time "{text}" as "{written}": cannot parse "{rest}" as "{element}"'
                raise UnreadableError(why)
            rest = rest[match.end() :]
        if rest:
            raise UnreadableError(f'parsing time "{text}": extra text: "{rest}"')
        try:
            moment = datetime.fromisoformat(text.replace(",", ".")).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            part = str(error).partition(" ")[0]
            raise UnreadableError(f'parsing time "{text}": {part} out of range') from None
        return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"

    return read_time


# Quantities

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENTS = [f"e{power}" if power else "" for power in range(-9, 120, 3)]
_LARGEST_BINARY = 2**63 - 1
_QUANTITY = re.compile(r"([+-]?[0-9.]{1,1000})([eEinumkKMGTP]*[-+]?[0-9]*)")
_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def quantity(value: Any) -> tuple[Fraction, str]:
    """Return the number of a quantity, and its suffix.

    Raises:
        UnreadableError: The value is no quantity.
    """
    given = _plain(value)
    text = str(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""
    return parse_quantity(text.strip())


@lru_cache
def parse_quantity(text: str) -> tuple[Fraction, str]:
    """Return the number of a quantity, in whole billionths, and its suffix.

    Exponents have two digits at most, numbers a thousand; the real server takes more.

    Raises:
        UnreadableError: The text is no quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnreadableError(_NO_QUANTITY)
    digits, suffix = match.groups()
    if digits.count(".") > 1 or not any(map(str.isdigit, digits)):
        raise UnreadableError(_NO_QUANTITY)
    exponent = re.fullmatch("[eE]([+-]?[0-9]{1,2})", suffix)
    if exponent is None and suffix not in _DECIMAL and suffix not in _BINARY:
        raise UnreadableError("unable to parse quantity's suffix")
    is_binary = bool(suffix) and suffix in _BINARY
    if is_binary:
        number = Fraction(digits) * 2 ** _BINARY[suffix]
    else:
        number = Fraction(digits) * Fraction(10) ** (int(exponent[1]) if exponent else _DECIMAL[suffix])
    size = Fraction(ceil(abs(number) * 10**9), 10**9)
    if is_binary:
        size = min(size, Fraction(_LARGEST_BINARY))
    return (-size if number < 0 else size), suffix


def show_quantity(number: Fraction, suffix: str) -> str:
    """Return a quantity in Go's form, which keeps the kind of its suffix."""
    if suffix and suffix in _BINARY and abs(number) >= 1024 and number.denominator == 1:
        return _with_suffix(int(number), [*_BINARY], 1024)
    names = [*_DECIMAL] if suffix in _DECIMAL or suffix in _BINARY else _EXPONENTS
    return _with_suffix(int(number * 10**9), names, 1000)


def in_thousandths(text: str) -> str:
    """Return a quantity in whole thousandths, rounded away from zero, as those in lists of resources are."""
    number, suffix = parse_quantity(text)
    size = Fraction(ceil(abs(number) * 1000), 1000)
    return show_quantity(-size if number < 0 else size, suffix)


def _quantity(value: Any, field: str) -> str:
    del field  # Go's message does not name it
    return show_quantity(*quantity(value))


def _with_suffix(number: int, names: Sequence[str], step: int) -> str:
    """Return a number, counted in the smallest unit, with the largest suffix that keeps it whole."""
    if number == 0:
        return "0"
    place = 0
    while place < len(names) - 1 and number % step == 0:
        number, place = number // step, place + 1
    return f"{number}{names[place]}"


_TIME = f"{_MOMENT}Z"
_MICRO_TIME = rf"{_MOMENT}\.[0-9]{{6}}Z"

CANONICAL = {
    "byte": f"^{_BASE64.pattern}$",
    "microTime": f"^{_MICRO_TIME}$",
    "quantity": "^(0|[1-9][0-9]{0,2}(m|k|M|G|T|Ki|Mi|Gi|Ti)?)$",
    "time": f"^{_TIME}$",
}
"""Patterns of what Go writes as it was read; other values of a format may be valid too."""

_FORMATS: dict[str, Callable[[Any, str], Any]] = {
    "byte": _bytes,
    "int-or-string": _int_or_string,
    "microTime": _time_of(_MICROSECONDS, "microseconds", _MICRO_TIME),
    "quantity": _quantity,
    "time": _time_of(_SECONDS, "seconds", _TIME),
}
