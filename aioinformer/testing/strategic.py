"""Strategic merge patch: lists of objects merge by a key, with directives to delete, replace and order.

The real server reads merge keys off the Go types of its built-in resources. Here they are a table from the
name of a list's field to its key, which covers the common resources; a list whose field is not in the table is
replaced.
"""

from __future__ import annotations

import copy
from typing import Any

from aioinformer.testing.errors import bad_request

# The merge keys of k8s.io/api's `patchMergeKey` tags by field name.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "ports": ("containerPort", "port"),
    "resourceClaims": ("name",),
    "resourceClaimStatuses": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}

SETS = frozenset(["finalizers", "podCIDRs"])
"""The fields of lists of plain values that merge as sets."""

# Fields of which the patch replaces the others: volumes' sources and the deployment's strategy.
_RETAIN_KEYS = "$retainKeys"


def merge_key(field: str, items: list[Any]) -> str | None:
    """The key by which a list of objects merges, or None if the list is replaced."""
    for key in _MERGE_KEYS.get(field, ()):
        if all(isinstance(item, dict) for item in items) and any(key in item for item in items):
            return key
    return None


def strategic_merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """An object with a strategic merge patch applied; the arguments stay as they are.

    Raises:
        StatusError: 400 for a directive that cannot be understood.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: copy.deepcopy(value) for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    result = dict(target)
    if _RETAIN_KEYS in patch:
        retained = patch[_RETAIN_KEYS]
        result = {name: value for name, value in result.items() if name in retained}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [entry for entry in result.get(field) or [] if entry not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            current = result.get(name)
            result[name] = strategic_merge(current if isinstance(current, dict) else {}, value)
        elif isinstance(value, list):
            result[name] = _merge_list(name, result.get(name), value)
        else:
            result[name] = value
    for name, order in patch.items():
        if name.startswith("$setElementOrder/"):
            field = name.partition("/")[2]
            if isinstance(result.get(field), list):
                result[field] = _ordered(field, result[field], order)
    return result


def _merge_list(field: str, current: Any, patch: list[Any]) -> list[Any]:
    existing = list(current) if isinstance(current, list) else []
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [
            {name: value for name, value in item.items() if name != "$patch"}
            if isinstance(item, dict)
            else item
            for item in patch
            if not (isinstance(item, dict) and set(item) == {"$patch"})
        ]
    if field in SETS:
        return existing + [item for item in patch if item not in existing]
    key = merge_key(field, existing + patch)
    if key is None:
        return copy.deepcopy(patch)
    for item in patch:
        name = item.get(key)
        place = next((index for index, entry in enumerate(existing) if entry.get(key) == name), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del existing[place]
        elif place is None:
            existing.append(strategic_merge({}, item))
        else:
            existing[place] = strategic_merge(existing[place], item)
    return existing


def _ordered(field: str, items: list[Any], order: list[Any]) -> list[Any]:
    """Items in the order that the patch names; those it does not name keep their places before the rest."""
    key = merge_key(field, items)

    def identity(item: Any) -> Any:
        return item.get(key) if key is not None and isinstance(item, dict) else item

    wanted = [identity(entry) if isinstance(entry, dict) else entry for entry in order]
    named = [item for item in items if identity(item) in wanted]
    others = [item for item in items if identity(item) not in wanted]
    named.sort(key=lambda item: wanted.index(identity(item)))
    return named + others
