"""Kubernetes' functions in CEL that the runtime lacks: quantities, addresses, URLs, versions, lists and sets.

Go has types for quantities and the like; here they are maps with one key, such as `{"quantity": "1/2"}`.
"""

from __future__ import annotations

import ipaddress
import re
from fractions import Fraction
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from aioinformer.testing.schema.patterns import compile_pattern, find_all
from aioinformer.testing.schema.scalars import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable

_Opaque = dict[str, Any]


class Function(NamedTuple):
    """A function in CEL.

    Attributes:
        name: Its name.
        is_member: Whether the first parameter stands before its name.
        parameters: The types: `string`, `int`, `bool`, `any`, `list`, or `object` for a quantity and the like.
        returns: The type of the result.
        call: What it does; an error that it raises is the rule's.
    """

    name: str
    is_member: bool
    parameters: tuple[str, ...]
    returns: str
    call: Callable[..., Any]


def _global(name: str, parameters: str, returns: str, call: Callable[..., Any]) -> Function:
    return Function(name, False, tuple(parameters.split()), returns, call)


def _member(name: str, parameters: str, returns: str, call: Callable[..., Any]) -> Function:
    return Function(name, True, tuple(parameters.split()), returns, call)


def _is(parse: Callable[..., Any]) -> Callable[..., bool]:
    """Return a function that tells whether another accepts a value."""

    def accepts(*values: Any) -> bool:
        try:
            parse(*values)
        except ValueError:
            return False
        return True

    return accepts


# Quantities


def _quantity(text: str) -> _Opaque:
    number, _ = parse_quantity(text)
    return {"quantity": str(number)}


def _value(quantity: Any) -> Fraction:
    return Fraction(quantity) if isinstance(quantity, int) else Fraction(quantity["quantity"])


def _integer(quantity: _Opaque) -> int:
    value = _value(quantity)
    if value.denominator != 1 or not -(2**63) <= value < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(value)


def _sign(quantity: _Opaque) -> int:
    value = _value(quantity)
    return (value > 0) - (value < 0)


def _sum(one: Any, other: Any) -> _Opaque:
    return {"quantity": str(_value(one) + _value(other))}


def _difference(one: Any, other: Any) -> _Opaque:
    return {"quantity": str(_value(one) - _value(other))}


# Addresses


def _ip(text: str) -> _Opaque:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f'IP Address "{text}" parse error during conversion from string') from None
    if "%" in text or (address.version == 6 and address.ipv4_mapped is not None):
        raise ValueError(f'IP Address "{text}" has a zone or is an IPv4-mapped IPv6 address')
    return {"ip": str(address)}


def _address(ip: _Opaque) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(ip["ip"])


def _is_link_local(ip: _Opaque, *, multicast: bool) -> bool:
    address = _address(ip)
    if not multicast:
        return address.is_link_local
    networks = {4: "224.0.0.0/24", 6: "ff02::/16"}
    return address in ipaddress.ip_network(networks[address.version])


def _is_global_unicast(ip: _Opaque) -> bool:
    address = _address(ip)
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _cidr(text: str) -> _Opaque:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal():
        raise ValueError(f'network address parse error during conversion from string: no "/" in "{text}"')
    return {"cidr": f"{_ip(address)['ip']}/{ipaddress.ip_interface(text).network.prefixlen}"}


def _interface(cidr: _Opaque) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    return ipaddress.ip_interface(cidr["cidr"])


def _contains_ip(cidr: _Opaque, ip: Any) -> bool:
    return _address(_ip(ip) if isinstance(ip, str) else ip) in _interface(cidr).network


def _contains_cidr(cidr: _Opaque, other: Any) -> bool:
    outer, inner = (
        _interface(cidr).network,
        _interface(_cidr(other) if isinstance(other, str) else other).network,
    )
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


# URLs


def _url(text: str) -> _Opaque:
    parts = urlsplit(text)
    if not (parts.scheme or text.startswith("/")) or re.search(r"[\x00-\x20\x7f]", text):
        raise ValueError(
            f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        )
    return {"url": text}


def _host_name(url: _Opaque) -> str:
    return urlsplit(url["url"]).netloc.rpartition("@")[2].removesuffix(f":{_port(url)}").strip("[]")


def _port(url: _Opaque) -> str:
    return str(urlsplit(url["url"]).port or "")


# Versions

_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)


def _semver(text: str, normalize: bool = False) -> _Opaque:
    if normalize:
        numbers, dash, rest = text.removeprefix("v").partition("-")
        parts = [part.lstrip("0") or "0" for part in numbers.split(".")]
        text = ".".join([*parts, "0", "0"][: max(3, len(parts))]) + dash + rest
    if text.count(".") < 2:
        raise ValueError("No Major.Minor.Patch elements found")
    if not _SEMVER.fullmatch(text):
        raise ValueError("Invalid character(s) found in version")
    return {"semver": text}


def _release(version: _Opaque) -> tuple[Any, ...]:
    """Return a sort key; a pre-release comes before its release."""
    match = _SEMVER.fullmatch(version["semver"])
    assert match is not None
    *numbers, before = match.groups()
    parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (before or "").split(".")]
    return (*map(int, numbers), before is None, parts)


def _rank(value: _Opaque) -> Any:
    return _value(value) if "quantity" in value else _release(value)


def _compare(one: _Opaque, other: _Opaque) -> int:
    return int(_rank(one) > _rank(other)) - int(_rank(one) < _rank(other))


# Lists, sets and text


def _is_subset(outer: list[Any], inner: list[Any]) -> bool:
    return all(value in outer for value in inner)


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    compiled = compile_pattern(pattern)
    if compiled is None:
        raise ValueError(f"the embedded server cannot evaluate the pattern {pattern}")
    matches = islice(find_all(compiled, text), None if most < 0 else most)
    return [*matches]


FUNCTIONS = [
    _global("quantity", "string", "object", _quantity),
    _global("isQuantity", "string", "bool", _is(_quantity)),
    _global("sign", "object", "int", _sign),
    _member("sign", "object", "int", _sign),
    _member("asInteger", "object", "int", _integer),
    _member("isInteger", "object", "bool", _is(_integer)),
    _member("asApproximateFloat", "object", "double", lambda quantity: float(_value(quantity))),
    *(
        _member(name, f"object {other}", "object", call)
        for name, call in (("add", _sum), ("sub", _difference))
        for other in ("object", "int")
    ),
    _member("isGreaterThan", "object object", "bool", lambda one, other: _compare(one, other) > 0),
    _member("isLessThan", "object object", "bool", lambda one, other: _compare(one, other) < 0),
    _member("compareTo", "object object", "int", _compare),
    _global("semver", "string", "object", _semver),
    _global("semver", "string bool", "object", _semver),
    _global("isSemver", "string", "bool", _is(_semver)),
    _global("isSemver", "string bool", "bool", _is(_semver)),
    *(
        _member(name, "object", "int", lambda version, place=place: _release(version)[place])
        for place, name in enumerate(("major", "minor", "patch"))
    ),
    _global("ip", "string", "object", _ip),
    _member("ip", "object", "object", lambda cidr: {"ip": str(_interface(cidr).ip)}),
    _global("isIP", "string", "bool", _is(_ip)),
    _global("ip.isCanonical", "string", "bool", lambda text: _ip(text)["ip"] == text),
    _member("family", "object", "int", lambda ip: _address(ip).version),
    _member("isUnspecified", "object", "bool", lambda ip: _address(ip).is_unspecified),
    _member("isLoopback", "object", "bool", lambda ip: _address(ip).is_loopback),
    _member("isLinkLocalMulticast", "object", "bool", lambda ip: _is_link_local(ip, multicast=True)),
    _member("isLinkLocalUnicast", "object", "bool", lambda ip: _is_link_local(ip, multicast=False)),
    _member("isGlobalUnicast", "object", "bool", _is_global_unicast),
    _global("cidr", "string", "object", _cidr),
    _global("isCIDR", "string", "bool", _is(_cidr)),
    _member("containsIP", "object string", "bool", _contains_ip),
    _member("containsIP", "object object", "bool", _contains_ip),
    _member("containsCIDR", "object string", "bool", _contains_cidr),
    _member("containsCIDR", "object object", "bool", _contains_cidr),
    _member("prefixLength", "object", "int", lambda cidr: _interface(cidr).network.prefixlen),
    _member("masked", "object", "object", lambda cidr: {"cidr": str(_interface(cidr).network)}),
    _global("url", "string", "object", _url),
    _global("isURL", "string", "bool", _is(_url)),
    _member("getScheme", "object", "string", lambda url: urlsplit(url["url"]).scheme),
    _member("getHost", "object", "string", lambda url: urlsplit(url["url"]).netloc.rpartition("@")[2]),
    _member("getHostname", "object", "string", _host_name),
    _member("getPort", "object", "string", _port),
    _member("getEscapedPath", "object", "string", lambda url: urlsplit(url["url"]).path),
    _member(
        "getQuery",
        "object",
        "object",
        lambda url: parse_qs(urlsplit(url["url"]).query, keep_blank_values=True),
    ),
    _member(
        "find", "string string", "string", lambda text, pattern: next(iter(_find_all(text, pattern)), "")
    ),
    _member("findAll", "string string", "list", _find_all),
    _member("findAll", "string string int", "list", _find_all),
    _member(
        "isSorted",
        "list",
        "bool",
        lambda values: all(a <= b for a, b in pairwise(values)),
    ),
    _member("sum", "list", "any", sum),
    _member("min", "list", "any", min),
    _member("max", "list", "any", max),
    _global("sets.contains", "list list", "bool", _is_subset),
    _global(
        "sets.equivalent",
        "list list",
        "bool",
        lambda one, other: _is_subset(one, other) and _is_subset(other, one),
    ),
    _global("sets.intersects", "list list", "bool", lambda one, other: any(value in one for value in other)),
]
