"""Annotations and class arguments that say what a CustomResourceDefinition has beyond Python's types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from .._core.checks import require_text

EXTENSION = "x-kubernetes-"
"""Prefix of the schema's keys that are Kubernetes' own, in ``Meta.extra``."""

VALIDATIONS = f"{EXTENSION}validations"

QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

SetOf = Meta(extra={f"{EXTENSION}list-type": "set"})
"""A list without duplicates, merged by server-side apply: ``Annotated[list[str], SetOf]``."""

PreserveUnknown = Meta(extra={f"{EXTENSION}preserve-unknown-fields": True})
"""The server keeps fields that the schema does not have: ``Annotated[Settings, PreserveUnknown]``."""

IntOrString = Annotated[int | str, Meta(extra={f"{EXTENSION}int-or-string": True})]
"""A number or a string, such as ``80`` or ``"http"``."""

Quantity = Annotated[int | str, Meta(extra={f"{EXTENSION}int-or-string": True, "pattern": QUANTITY})]
"""An amount, such as ``"500m"``, ``"1.5Gi"`` or ``2``."""


def MapOf(*keys: str) -> Meta:  # noqa: N802 - an annotation, as SetOf is
    """Return the annotation of a list of objects that these fields identify, merged by server-side apply.

    ``Annotated[list[Port], MapOf("port", "protocol")]``

    Args:
        *keys: Names as in JSON; each field is required or has a default.
    """
    return Meta(extra={f"{EXTENSION}list-type": "map", f"{EXTENSION}list-map-keys": list(keys)})


def Rule(  # noqa: N802 - an annotation
    rule: str,
    message: str = "",
    *,
    message_expression: str = "",
    reason: Literal[
        "", "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"
    ] = "",
    field_path: str = "",
    optional_old_self: bool = False,
) -> Meta:
    """Return a CEL rule: ``Annotated[str, Rule("self == oldSelf", message="cannot change")]``.

    A class takes rules about the whole object: ``class Website(CustomResource, …, rules=[Rule("…")])``.

    Args:
        rule: The expression; the value is ``self``, and the value before an update ``oldSelf``.
        message: What a refusal says; the rule itself if empty.
        message_expression: A CEL expression of the message.
        reason: The reason of the field's cause; ``FieldValueInvalid`` if empty.
        field_path: The field that the refusal names, such as ``".port"``.
        optional_old_self: Evaluate a rule with ``oldSelf`` also if there is no old value; it is an optional then.
    """
    options = {
        "message": message,
        "messageExpression": message_expression,
        "reason": reason,
        "fieldPath": field_path,
        "optionalOldSelf": optional_old_self,
    }
    validation = {"rule": rule, **{name: value for name, value in options.items() if value}}
    return Meta(extra={f"{VALIDATIONS}: {rule}": validation})


@dataclass(frozen=True)
class Column:
    """A column of ``kubectl get``.

    Attributes:
        name: The title.
        path: The field, such as ``".spec.replicas"`` or ``'.status.conditions[?(@.type=="Ready")].status'``.
        type: None for the field's own type.
        format: Such as ``"int32"`` or ``"password"``.
        description: A description.
        priority: 0 for the default view; more for ``-o wide``.

    Raises:
        ConfigError: The name or the path is no string.
    """

    name: str
    path: str
    type: Literal["integer", "number", "string", "boolean", "date"] | None = None
    format: str = ""
    description: str = ""
    priority: int = 0

    def __post_init__(self) -> None:
        require_text("Column: name", self.name, "Replicas")
        require_text("Column: path", self.path, ".spec.replicas")


@dataclass(frozen=True)
class Scale:
    """The fields of the scale subresource, for ``kubectl scale`` and autoscalers.

    Attributes:
        replicas: The wanted replicas, in the spec.
        status_replicas: The current replicas, in the status.
        selector: A label selector as a string, in the status; ``""`` for none. Autoscalers need one.

    Raises:
        ConfigError: A path is no string.
    """

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""

    def __post_init__(self) -> None:
        for name in ("replicas", "status_replicas", "selector"):
            require_text(f"Scale: {name}", getattr(self, name), ".spec.replicas")
