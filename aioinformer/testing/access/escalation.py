"""Escalation: with RBAC, users grant only rights that they have, unless they may `escalate` or `bind` roles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aioinformer.testing import errors
from aioinformer.testing.access.authorization import Access, permits
from aioinformer.testing.schema.gotext import quote
from aioinformer.testing.storage.builtin import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from aioinformer.testing.access.authorization import Authorizer, Rule
    from aioinformer.testing.objects import Object
    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType

_ROLES = (ROLES, CLUSTER_ROLES)
_BINDINGS = (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
_EVERYTHING: Sequence[Rule] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_FREE_METADATA = ("finalizers", "managedFields", "ownerReferences")
"""The metadata that a user without the granted rights may change."""


def check_grant(
    authorizer: Authorizer, request: Request, resource: ResourceType, new: Object, old: Object | None
) -> None:
    """Refuse a role or a binding that grants rights which the request's user lacks.

    Raises:
        StatusError: 403; 404 for a binding to a role that does not exist.
    """
    if resource.group != ROLES.group or (
        old is not None and _rules_and_aggregation(new) == _rules_and_aggregation(old)
    ):
        return
    if resource in _ROLES:
        needed, rules = replace(request, verb="escalate"), new.get("rules") or []
    else:
        role = new["roleRef"]
        granted = next((role_type for role_type in _ROLES if role_type.kind == role["kind"]), None)
        if granted is None:
            return  # invalid
        needed = replace(request, verb="bind", resource=granted.plural, name=role["name"])
        rules = list(authorizer.rules_of(role, request.namespace))
    if authorizer.permits(needed):
        return
    if resource in _BINDINGS and authorizer.role(new["roleRef"], request.namespace) is None:
        raise errors.not_found(resource, new["roleRef"]["name"])
    name, owned = new["metadata"].get("name", ""), list(authorizer.rules_for(request))
    if missing := _missing(rules, owned):
        who = f'user "{request.user}" (groups={quote(request.groups)})'
        why = f"{who} is attempting to grant RBAC permissions not currently held:"
        raise errors.forbidden(resource, name, "\n".join([why, *missing]))
    aggregates = any(
        (role_before_or_after or {}).get("aggregationRule") for role_before_or_after in (new, old)
    )
    if aggregates and _missing(_EVERYTHING, owned):
        raise errors.forbidden(
            resource, name, "must have cluster-admin privileges to use the aggregationRule"
        )


def _rules_and_aggregation(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _FREE_METADATA}
    return {**obj, "metadata": metadata}


def _missing(rules: Iterable[Rule], owned: Sequence[Rule]) -> list[str]:
    """Return what the owned rules do not permit, as the real server shows it."""
    lacking = [
        access
        for rule in rules
        for access in _accesses(rule)
        if not any(permits(rule, access) for rule in owned)
    ]
    verbs: dict[Access, list[str]] = {}
    for access in lacking:  # the verbs of a path have a line each
        what = access if access.path else access._replace(verb="")
        verbs.setdefault(what, []).append(access.verb)
    return sorted({f"{{{_show(what)}, Verbs:{quote(names)}}}" for what, names in verbs.items()})


def _accesses(rule: Mapping[str, Any]) -> Iterator[Access]:
    """Yield each single right of a rule."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Access(verb, "", "", path=path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or [""]:
                    yield Access(verb, group, resource, name)


def _show(access: Access) -> str:
    if access.path:
        return f"NonResourceURLs:{quote([access.path])}"
    names = f", ResourceNames:{quote([access.name])}" if access.name else ""
    return f"APIGroups:{quote([access.group])}, Resources:{quote([access.resource])}{names}"
