"""Descriptions of undecodable bytes for messages: the object's key and uid, or how the bytes begin.

They contain no data: an object may be a Secret, and many people can read logs.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .nesting import DECODE_ERRORS, reader_of

_LENGTH = 80

_TEXT = re.compile(
    rb'"kind"\s*:\s*"[A-Za-z]{0,60}"|"apiVersion"\s*:\s*"[a-z0-9./-]{0,60}"'  # shown
    rb'|"type"\s*:\s*"[A-Z]{0,20}"|"resourceVersion"\s*:\s*"[0-9]{0,20}"'  # shown, of a watch event
    rb'|"[A-Za-z]{1,30}"\s*:'  # shown: a field's name
    rb'|("[^"\\]*(?:\\.?[^"\\]*)*"?|-?[0-9][0-9.eE+-]*'  # hidden: strings and numbers,
    rb"|[A-Za-z0-9+/=_-]{20,})",  # and what may be base64
    re.DOTALL,
)


class _Metadata(msgspec.Struct):
    namespace: Any = None
    name: Any = None
    uid: Any = None


class _Object(msgspec.Struct):
    metadata: _Metadata | None = None
    kind: Any = None


_read_object = reader_of(_Object)


def describe(raw: bytes) -> str:
    """Describe an object's JSON by kind, key and uid; if it has none, by how it begins."""
    try:
        fields = _read_object(raw)
    except DECODE_ERRORS:
        return begins(raw)
    metadata = fields.metadata or _Metadata()
    if not metadata.name:
        return begins(raw)
    key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
    uid = f", uid {_plain(metadata.uid)}" if metadata.uid else ""
    return f"it is {_plain(fields.kind) or 'the object'} {_plain(key)}{uid}"


def begins(raw: bytes) -> str:
    """Describe bytes by how they begin, with ``...`` in place of strings and numbers."""
    return f"it begins {excerpt(raw)}"


def excerpt(raw: bytes) -> str:
    """Return how bytes begin, with ``...`` in place of strings and numbers, which may be secret."""
    beginning = bytes(raw[: 4 * _LENGTH])
    shown = _TEXT.sub(lambda match: b"..." if match[1] else match[0], beginning)
    return repr(shown[:_LENGTH])


def _plain(value: Any) -> str:
    """Return a value in one line of at most 300 characters."""
    text = str(value or "")[:300]
    return text if text.isprintable() else repr(text)
