"""Reads deeply nested JSON with a library that reads fewer levels."""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import DecodeError
from .pieces import Pieces

T = TypeVar("T")


class DeepParts:
    """JSON with a string in place of each deeply nested part, and the parts' values.

    Args:
        raw: The JSON, tidy.

    Attributes:
        shallow: The JSON with strings.

    Raises:
        DECODE_ERRORS: It is not JSON, or nested too deeply.
    """

    def __init__(self, raw: bytes) -> None:
        self.shallow, self._values = Pieces(raw).with_texts()

    def fill(self, model: T) -> T:
        """Put the values in place of the strings in a model of kubernetes_asyncio, and return it.

        Raises:
            DecodeError: The model has dropped a part, because it has a type other than ``object`` for it.
        """
        missing = set(self._values)

        def filled(value: Any) -> Any:
            if isinstance(value, str):
                missing.discard(value)
                return self._values.get(value, value)
            if isinstance(value, list):
                value[:] = map(filled, value)
            elif isinstance(value, dict):
                value.update((name, filled(part)) for name, part in value.items())
            elif (names := getattr(value, "openapi_types", None)) is not None:
                for name in names:
                    if (part := getattr(value, name)) is not None:
                        setattr(value, name, filled(part))
            return value

        model = filled(model)
        if missing:
            raise DecodeError(f"a typed field of {type(model).__name__} is nested too deeply")
        return model
