"""What to wait for in one object: ``kubectl wait``'s strings, or a function (kubectl ``pkg/cmd/wait``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core.callables import callable_name
from ..errors import ConfigError
from ..objects.fields import Field, field
from ..objects.status_conditions import TRUE, find_status_condition

_JSONPATH = re.compile(r"jsonpath=(?:\{(?P<braced>[^{}]+)\}|(?P<bare>[^{}=]+))(?:=(?P<value>.*))?", re.DOTALL)

FORMS = (
    "'condition=Ready', 'condition=Ready=False', 'create', 'delete', 'jsonpath={.status.phase}=Running', "
    "'jsonpath={.status.loadBalancer.ingress}', or a function of the object"
)
"""The forms of a condition, for errors."""


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """A condition on an object.

    Attributes:
        text: Describes it in messages.
        is_met: Whether an object meets it.
        wants_deletion: Whether the absence of the object meets it, and nothing else does.
    """

    text: str
    is_met: Callable[[Any], bool]
    wants_deletion: bool = False


def wait_condition(condition: str | Callable[[Any], bool]) -> WaitCondition:
    """Return the condition that a string or function describes.

    Raises:
        ConfigError: It has another form.
    """
    if callable(condition):
        return WaitCondition(callable_name(condition), condition)
    if condition == "delete":
        return WaitCondition(condition, lambda _: False, wants_deletion=True)
    if condition == "create":
        return WaitCondition(condition, lambda _: True)
    if isinstance(condition, str):
        kind, _, status = condition.removeprefix("condition=").partition("=")
        if condition.startswith("condition=") and kind:
            return WaitCondition(condition, _HasStatus(kind, status or TRUE))
        if (match := _JSONPATH.fullmatch(condition)) is not None:
            path = field((match["braced"] or match["bare"]).removeprefix("$"))
            return WaitCondition(condition, _HasValue(path, match["value"]))
    raise ConfigError(f"a condition to wait for is {FORMS}, not {condition!r}")


@dataclass(frozen=True, slots=True)
class _HasStatus:
    """Whether a status condition has a status, and was not observed of an older generation of the object."""

    kind: str
    status: str

    def __call__(self, obj: Any) -> bool:
        condition = find_status_condition(obj, self.kind)
        if condition is None or str(condition.get("status")).lower() != self.status.lower():
            return False
        generation = _generation(obj)
        observed = condition.get("observedGeneration") or _observed_generation(obj)
        return not (isinstance(generation, int) and isinstance(observed, int) and observed < generation)


_generation = field("metadata.generation")
_observed_generation = field("status.observedGeneration")


@dataclass(frozen=True, slots=True)
class _HasValue:
    """Whether a field has a value, compared as text; None for any value."""

    path: Field
    value: str | None

    def __call__(self, obj: Any) -> bool:
        if self.value is None:
            return self.path(obj) not in (None, [])
        return self.path.values(obj) == [self.value]
