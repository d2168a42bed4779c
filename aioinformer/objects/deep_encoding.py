"""Encodes values that are nested more deeply than msgspec can encode."""

from __future__ import annotations

from typing import Any

import msgspec

from .pieces import paused_collector

_LEVELS = 200
"""Levels that are encoded at once."""


def encode_any(value: Any) -> bytes:
    """Encode a value as JSON. Dicts and lists may be nested to any depth.

    Raises:
        TypeError: JSON has no such value.
        ValueError: A value is not allowed in JSON, such as a string with half a surrogate pair.
        RecursionError: It contains itself.
    """
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        if not isinstance(value, (dict, list)):
            raise
        with paused_collector():
            return _encode_deep(value)


def _encode_deep(value: Any) -> bytes:
    """Encode the innermost levels first; their JSON takes their place in the levels around them."""
    encoded: dict[int, Any] = {}
    begun: set[int] = set()
    waiting = [(value, 1)]
    while waiting:
        container, level = waiting.pop()
        parts = container.values() if isinstance(container, dict) else container
        if id(container) not in begun:
            begun.add(id(container))
            waiting.append((container, level))  # again after its parts
            waiting.extend(
                (part, level + 1)
                for part in parts
                if isinstance(part, (dict, list)) and id(part) not in begun
            )
        elif id(container) not in encoded:
            whole: Any = [encoded.get(id(part), part) for part in parts]
            if isinstance(container, dict):
                whole = dict(zip(container, whole, strict=True))
            encoded[id(container)] = whole if level % _LEVELS else msgspec.Raw(msgspec.json.encode(whole))
    return msgspec.json.encode(encoded[id(value)])
