"""The formats of strings and numbers that CustomResourceDefinitions may name; all others are ignored."""

from __future__ import annotations

import base64
import ipaddress
import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}

_OCTETS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
_HEX = r"[0-9a-f]"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_LOOSE_DURATION = re.compile(r"\d+\s*(?:n|u|µ|mi|ms|s|m|h|d|w)[A-Za-zµ]*", re.IGNORECASE)
_HOSTNAME_LABEL = re.compile(r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?")


def is_known_format(schema_type: str, name: str) -> bool:
    """Return whether values are checked against a format; other formats are ignored."""
    if schema_type in ("", "string"):
        return _normal(name) in _CHECKS
    return name in _NUMBERS.get(schema_type, ())


def fits_format(name: str, text: str) -> bool:
    """Return whether a string has a format."""
    check = _CHECKS.get(_normal(name))
    return check is None or check(text)


def _normal(name: str) -> str:
    return name.replace("-", "")


def _pattern(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _is_ip(text: str, version: int) -> bool:
    if version == 4 and _OCTETS.fullmatch(text):  # leading zeros are allowed
        return all(int(part) < 256 for part in text.split("."))
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text and (address.version == version if version == 6 else "." in text)


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    most = 32 if _is_ip(address, 4) and ":" not in address else 128 if _is_ip(address, 6) else -1
    return bool(slash) and length.isdecimal() and int(length) <= most


def _is_date(text: str) -> bool:
    known = f"2{text[1:]}" if text.startswith("0000-") else text  # a leap year that Python has
    try:
        date.fromisoformat(known)
    except ValueError:
        return False
    return len(text) == 10


def _is_date_time(text: str) -> bool:
    day, _, moment = text.lower().partition("t")
    match = _TIME.fullmatch(moment)
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    return bool(_GO_DURATION.fullmatch(text) or _LOOSE_DURATION.search(text))


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return bool(text)


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    last = labels[-1]
    return (
        len(text.encode()) <= 255
        and all(_HOSTNAME_LABEL.fullmatch(label) for label in labels)
        and (len(labels) == 1 or (last.isalpha() and len(last) > 1))
    )


def _is_uri(text: str) -> bool:
    return bool(re.match(r"(?:[A-Za-z][A-Za-z0-9+.-]*:|/)", text)) and not re.search(r"[\x00-\x20\x7f]", text)


def _is_isbn(text: str, digits: tuple[int, ...] = (10, 13)) -> bool:
    plain = re.sub(r"[\s-]", "", text)
    if len(plain) == 10 and 10 in digits and re.fullmatch("[0-9]{9}[0-9X]", plain):
        return sum((10 - i) * (10 if c == "X" else int(c)) for i, c in enumerate(plain)) % 11 == 0
    if len(plain) == 13 and 13 in digits and plain.isdecimal():
        return sum(int(c) * (1 if i % 2 == 0 else 3) for i, c in enumerate(plain)) % 10 == 0
    return False


def _is_credit_card(text: str) -> bool:
    plain = re.sub("[^0-9]+", "", text)
    if not re.fullmatch(
        r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
        r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}",
        plain,
    ):
        return False
    doubled = (int(c) * (2 if i % 2 else 1) for i, c in enumerate(reversed(plain)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _uuid(third: str = _HEX, fourth: str = _HEX) -> Callable[[str], bool]:
    return _pattern(
        f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}{_HEX}{{3}}-?{fourth}{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE
    )


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CHANNEL = r"\s*([01]?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])\s*"

_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern("[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _pattern(r"(?:.*<)?[^\s@<>,]+@[^\s@<>,]+>?"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_ip(text, 4),
    "ipv6": lambda text: _is_ip(text, 6),
    "cidr": _is_cidr,
    "mac": _pattern(
        r"[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4,18}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,9}[0-9a-fA-F]{4}"
    ),
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": _is_isbn,
    "isbn10": lambda text: _is_isbn(text, (10,)),
    "isbn13": lambda text: _is_isbn(text, (13,)),
    "creditcard": _is_credit_card,
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _pattern("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _pattern(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "byte": _is_base64,
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and bool(re.fullmatch(_LABEL, text)),
    "k8slongname": lambda text: len(text) <= 253 and bool(re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", text)),
}
