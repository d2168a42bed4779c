"""Texts in place of the deep parts of JSON values, so that what recurses can process the values."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from ...objects.nested_encoding import encode_nested

_LEVELS = 100


class DeepTexts:
    """Texts that stand for the deep parts of JSON values. Equal parts have equal texts."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)  # random, so the JSON cannot contain it
        self._parts: dict[str, Any] = {}

    def cut(self, value: Any, depth: int = 0) -> Any:
        """Return a value with texts in place of the parts below _LEVELS."""
        if not isinstance(value, (dict, list)):
            return value
        if depth == _LEVELS:
            text = self._mark + hashlib.sha256(encode_nested(value)).hexdigest()
            self._parts[text] = value
            return text
        if isinstance(value, dict):
            return {name: self.cut(part, depth + 1) for name, part in value.items()}
        return [self.cut(part, depth + 1) for part in value]

    def restore(self, value: Any) -> Any:
        """Return a value with the parts in place of their texts."""
        if isinstance(value, dict):
            return {name: self.restore(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.restore(part) for part in value]
        return self._parts.get(value, value) if isinstance(value, str) else value
