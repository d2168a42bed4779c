"""ClusterRoles for the users of an operator's kinds, which become part of the cluster's view, edit and admin."""

from __future__ import annotations

from collections.abc import Iterator

from ...client.lookup import resource_of_class
from ..operator import Operator
from ..rights import READ
from .access import API_GROUP
from .installation import Installation, Object

EDIT = ("create", "update", "patch", "delete", "deletecollection")

_REPAIR = ("update", "patch")
"""What an admin may do with the status, and as an owner of other objects with the finalizers."""


def user_roles(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the ClusterRoles ``NAME-view``, ``NAME-edit`` and ``NAME-admin``; none if it has no kinds of its own.

    Kubernetes adds their rules to the roles view, edit and admin, and those of view to edit, of edit to admin.
    """
    kinds: dict[str, list[str]] = {}
    scaled: dict[str, list[str]] = {}
    for versions in operator.custom_resources():
        resource = resource_of_class(versions[0])
        kinds.setdefault(resource.group, []).append(resource.plural)
        if any(kind.__declaration__ is not None and kind.__declaration__.scale for kind in versions):
            scaled.setdefault(resource.group, []).append(f"{resource.plural}/scale")
    if not kinds:
        return
    view = [
        _rule(group, [*plurals, *(f"{plural}/status" for plural in plurals)], READ)
        for group, plurals in kinds.items()
    ]
    edit = [_rule(group, plurals, EDIT) for group, plurals in kinds.items()]
    for group, scales in scaled.items():
        view.append(_rule(group, scales, ("get",)))
        edit.append(_rule(group, scales, ("update", "patch")))
    admin = [
        _rule(group, [f"{plural}/{part}" for plural in plurals for part in ("status", "finalizers")], _REPAIR)
        for group, plurals in kinds.items()
    ]
    for role, rules in (("view", view), ("edit", edit), ("admin", admin)):
        metadata = installation.metadata(f"-{role}", "")
        metadata["labels"] = {**metadata["labels"], f"{API_GROUP}/aggregate-to-{role}": "true"}
        yield {"apiVersion": f"{API_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _rule(group: str, resources: list[str], verbs: tuple[str, ...]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": [*verbs]}
