"""What messages say of bytes that cannot be decoded: which object they are, or how they begin. They quote no data.

An object may be a Secret, and a message goes to logs that many can read.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .nesting import DECODE_ERRORS, decode_typed

_LENGTH = 80

_TEXT = re.compile(
    rb'"(?:kind|apiVersion|type|resourceVersion)"\s*:\s*"[^"\\]{0,60}"'  # is told
    rb'|"[A-Za-z]{1,30}"\s*:'  # a field's name, too
    rb'|("[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[A-Za-z0-9+/=_-]{20,})',  # not what is in texts, nor what may be base64
    re.DOTALL,
)


class _Metadata(msgspec.Struct):
    namespace: Any = None
    name: Any = None
    uid: Any = None


class _Object(msgspec.Struct):
    metadata: _Metadata | None = None
    kind: Any = None


_object_decoder = msgspec.json.Decoder(_Object)


def described(raw: bytes) -> str:
    """Return what a message may end with about an object's JSON: kind, key and uid; or how it begins, without data."""
    try:
        found = decode_typed(_object_decoder, raw)
    except DECODE_ERRORS:
        return begins(raw)
    metadata = found.metadata or _Metadata()
    if not metadata.name:
        return begins(raw)
    key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
    uid = f", uid {_plain(metadata.uid)}" if metadata.uid else ""
    return f"it is {_plain(found.kind) or 'the object'} {_plain(key)}{uid}"


def begins(raw: bytes) -> str:
    """Return what a message may end with about bytes: how they begin, ``…`` in place of texts."""
    return f"it begins {excerpt(raw)}"


def excerpt(raw: bytes) -> str:
    """Return how bytes begin, for messages: ``…`` in place of texts, which may be a Secret's."""
    beginning = bytes(raw[: 4 * _LENGTH])
    shown = _TEXT.sub(lambda found: b"..." if found[1] else found[0], beginning)
    return repr(shown[:_LENGTH])


def _plain(value: Any) -> str:
    """A value of an object in one line, not too long."""
    text = str(value or "")[:300]
    return text if text.isprintable() else repr(text)
