"""Reads deeply nested JSON with a library that reads fewer levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import DecodeError
from .pieces import Pieces

T = TypeVar("T")


class DeepParts:
    """JSON with a string in place of each deeply nested part, and the parts' values.

    Args:
        raw: The JSON, tidy.

    Raises:
        DECODE_ERRORS: It is not JSON, or nested too deeply.
    """

    def __init__(self, raw: bytes) -> None:
        self._shallow, self._values = Pieces(raw).with_texts()

    def read(self, decode: Callable[[bytes], T]) -> T:
        """Return the model that ``decode`` returns for the JSON with strings, with the parts' values.

        Raises:
            DecodeError: The model has a type other than ``object`` for a part.
        """
        missing = set(self._values)

        def fill(value: Any) -> Any:
            if isinstance(value, str):
                missing.discard(value)
                return self._values.get(value, value)
            if isinstance(value, list):
                value[:] = map(fill, value)
            elif isinstance(value, dict):
                value.update((name, fill(part)) for name, part in value.items())
            elif (names := getattr(value, "openapi_types", None)) is not None:
                for name in names:
                    if (part := getattr(value, name)) is not None:
                        setattr(value, name, fill(part))
            return value

        try:
            model: T = fill(decode(self._shallow))
        except (AttributeError, TypeError) as error:  # a string in place of a model
            raise DecodeError("a typed field is nested too deeply, or has another type") from error
        if missing:
            raise DecodeError(f"a typed field of {type(model).__name__} is nested too deeply")
        return model
