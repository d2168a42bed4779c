"""Expiry dates, and how doctor writes durations."""

from __future__ import annotations

import ssl
from typing import Any

from .findings import Finding, Level

DAY = 86_400.0

MOST_WARNED = 14 * DAY
"""Seconds before its end at which a certificate is warned of; a fifth of its life if that is less."""

TOKEN_WARNED = DAY
"""Seconds before its end at which a token is warned of that is not renewed."""


def describe_seconds(seconds: float) -> str:
    """Return a duration in words: ``"12 ms"``, ``"3.2 s"``, ``"5 min"``, ``"2 h"``, ``"40 days"``."""
    seconds = abs(seconds)
    for unit, size in (("days", DAY), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def judge_expiry(
    check: str, name: str, expires: float, now: float, do: str, *, lifetime: float = MOST_WARNED * 5
) -> Finding:
    """Return whether a certificate has expired, or soon will.

    Args:
        check: The check's name.
        name: What expires, such as ``"the server's certificate"``.
        expires: When, in seconds since 1970.
        now: The current time.
        do: How to renew it.
        lifetime: Seconds for which it is issued.
    """
    remaining = expires - now
    if remaining <= 0:
        return Finding(check, Level.FAULT, f"{name} expired {describe_seconds(remaining)} ago", do)
    text = f"{name} expires in {describe_seconds(remaining)}"
    if remaining < min(MOST_WARNED, lifetime / 5):
        return Finding(check, Level.WARNING, text, do)
    return Finding(check, Level.OK, text)


def judge_token(expires: float, now: float, *, is_renewed: bool, origin: str) -> Finding:
    """Return whether a token has expired, or soon will.

    Args:
        expires: When, in seconds since 1970.
        now: The current time.
        is_renewed: Whether others renew it.
        origin: Where it came from.
    """
    remaining = expires - now
    if remaining <= 0:
        do = (
            "Look at what renews it: the plugin, or who writes the token file"
            if is_renewed
            else "Get a new token: kubectl create token, or log in again"
        )
        text = f"the token expired {describe_seconds(remaining)} ago; {origin}"
        return Finding("credentials", Level.FAULT, text, do)
    text = f"the token expires in {describe_seconds(remaining)}"
    if is_renewed:
        return Finding("credentials", Level.OK, f"{text}, and is renewed")
    if remaining < TOKEN_WARNED:
        do = "Nothing renews it: in a pod use the service account's token, elsewhere an exec plugin"
        return Finding("credentials", Level.WARNING, f"{text}; {origin}", do)
    return Finding("credentials", Level.OK, text)


def validity_of(certificate: dict[str, Any]) -> tuple[float, float]:
    """Return from when and until when a certificate is valid, as ``ssl`` describes it, in seconds since 1970."""
    return (
        float(ssl.cert_time_to_seconds(str(certificate["notBefore"]))),
        float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))),
    )
