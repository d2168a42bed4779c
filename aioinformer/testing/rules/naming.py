"""The names of a CustomResourceDefinition: requested and accepted.

The rules are those of apiextensions-apiserver's naming controller (pkg/controller/status, v1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.objects import is_true, with_condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.testing.objects import Object

_RESOURCES = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
}
_KINDS = {"kind": "KindConflict", "listKind": "ListKindConflict"}


def with_names(definition: Object, taken: Iterable[Object], now: str) -> Object:
    """Return a definition with its accepted names in the status; it is established once all names were accepted.

    Args:
        definition: The definition.
        taken: The accepted names of every definition of its group.
        now: The time.
    """
    wanted, accepted = definition["spec"]["names"], accepted_names(definition)
    status = dict(definition.get("status") or {})
    names: Object = {}
    conflict: tuple[str, str] | None = None
    taken = list(taken)
    for fields in (_RESOURCES, _KINDS):
        used = {name for other in taken for field in fields for name in _as_list(other.get(field))}
        for field, reason in fields.items():
            had = _as_list(accepted.get(field))
            faults = [
                f'"{name}" is already in use'
                for name in _as_list(wanted.get(field))
                if name in used and name not in had
            ]
            if faults:
                conflict = reason, faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            if name := (accepted if faults else wanted).get(field):
                names[field] = name
    if categories := wanted.get("categories"):
        names["categories"] = categories
    status["acceptedNames"] = {"plural": "", "kind": ""} | names
    if conflict is None:
        status = with_condition(status, "NamesAccepted", True, "NoConflicts", "no conflicts found", now)
        reason, message = "InitialNamesAccepted", "the initial names have been accepted"
    else:
        status = with_condition(status, "NamesAccepted", False, *conflict, now)
        reason, message = "NotAccepted", "not all names are accepted"
    if not is_established(definition):
        status = with_condition(status, "Established", conflict is None, reason, message, now)
    return {**definition, "status": status}


def accepted_names(definition: Object) -> Object:
    """Return the accepted names of a definition."""
    names: Object = (definition.get("status") or {}).get("acceptedNames") or {}
    return names


def has_names(definition: Object) -> bool:
    """Return whether all names of a definition are accepted."""
    return is_true(definition, "NamesAccepted")


def is_established(definition: Object) -> bool:
    """Return whether the names of a definition were accepted at least once, so that it is served."""
    return is_true(definition, "Established")


def _as_list(names: Any) -> list[str]:
    return names if isinstance(names, list) else [names] if names else []
