"""What a check of a value found: faults, as causes of a 422."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

ROOT = "<nil>"
"""The field of a fault without a path, as Go writes it."""


class Omitted:
    """Stands for a value that a message does not show."""


OMITTED = Omitted()

_REASONS = {
    "Invalid": ("FieldValueInvalid", "Invalid value"),
    "TypeInvalid": ("FieldValueTypeInvalid", "Invalid value"),
    "Required": ("FieldValueRequired", "Required value"),
    "NotSupported": ("FieldValueNotSupported", "Unsupported value"),
    "Duplicate": ("FieldValueDuplicate", "Duplicate value"),
    "Forbidden": ("FieldValueForbidden", "Forbidden"),
    "TooLong": ("FieldValueTooLong", "Too long"),
    "TooMany": ("FieldValueTooMany", "Too many"),
}
_SHOWN = frozenset(["Invalid", "TypeInvalid", "NotSupported", "Duplicate", "TooMany"])

BLOCKING = frozenset(["NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"])
"""The kinds of faults that keep rules in CEL from being evaluated."""


class Fault(NamedTuple):
    """A fault of a value (Go's field.Error).

    Attributes:
        kind: A kind of Go's field errors, such as `"Invalid"`.
        field: The path of the value.
        value: The value as the message shows it, or OMITTED.
        detail: What is wrong.
    """

    kind: str
    field: str
    value: Any = OMITTED
    detail: str = ""

    @property
    def message(self) -> str:
        """The message without the field."""
        text = _REASONS[self.kind][1]
        if self.kind in _SHOWN and self.value is not OMITTED:
            text += f": {show(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def cause(self) -> dict[str, str]:
        """The entry of `details.causes`."""
        return {"reason": _REASONS[self.kind][0], "message": self.message, "field": self.field or ROOT}

    def below(self, path: str) -> Fault:
        """Return the fault with its field below a path."""
        return self._replace(field=child(path, self.field) if self.field else path)


def child(path: str, name: str) -> str:
    """Return the path of a field."""
    return f"{path}.{name}" if path else name


def show(value: Any) -> str:
    """Return a value as Go's field errors show it."""
    if isinstance(value, float):
        return number(value)
    text = msgspec.json.encode(value, order="deterministic").decode()
    return text if isinstance(value, str) else text.translate(_ESCAPED)  # Go's JSON is fit for HTML


_ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}


def number(value: float) -> str:
    """Return a number as Go's `%v` writes it."""
    if isinstance(value, int):
        return str(value)
    parts = Decimal(repr(value)).normalize()
    if -4 <= parts.adjusted() < 6:
        return f"{parts:f}"
    mantissa, _, exponent = f"{parts:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"
