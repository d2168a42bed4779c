"""Faults of labels and label selectors, with the real server's causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.objects.labels import SPEC_OPERATORS, label_key_faults, label_value_faults
from aioinformer.testing.errors import field_forbidden, field_invalid, field_required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Faults = Iterator[dict[str, str]]


def label_faults(path: str, labels: Mapping[str, str]) -> _Faults:
    """Yield the causes for invalid labels."""
    for key, value in labels.items():
        for why in label_key_faults(key):
            yield field_invalid(path, key, why)
        for why in label_value_faults(value):
            yield field_invalid(path, value, why)


def selector_faults(path: str, selector: Mapping[str, Any]) -> _Faults:
    """Yield the causes for mistakes in a selector of `matchLabels` and `matchExpressions`."""
    yield from label_faults(f"{path}.matchLabels", selector.get("matchLabels") or {})
    for number, expression in enumerate(selector.get("matchExpressions") or ()):
        place, operator, values = (
            f"{path}.matchExpressions[{number}]",
            expression["operator"],
            expression.get("values"),
        )
        known = SPEC_OPERATORS.get(operator)
        if known is None:
            yield field_invalid(f"{place}.operator", operator, "not a valid selector operator")
        elif known.takes_values and not values:
            yield field_required(f"{place}.values", f"must be specified when {_is_one(takes_values=True)}")
        elif values and not known.takes_values:
            why = f"may not be specified when {_is_one(takes_values=False)}"
            yield field_forbidden(f"{place}.values", why)
        for why in label_key_faults(expression["key"]):
            yield field_invalid(f"{place}.key", expression["key"], why)
        for index, value in enumerate(values or ()):
            for why in label_value_faults(value):
                yield field_invalid(f"{place}.values[{index}]", value, why)


def _is_one(*, takes_values: bool) -> str:
    names = [f"'{name}'" for name, known in SPEC_OPERATORS.items() if known.takes_values is takes_values]
    return f"`operator` is {' or '.join(names)}"
