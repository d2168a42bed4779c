"""The rights of an operator as RBAC objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..kinds import resource_named
from ..operator import Operator
from ..rights import EVENTS, LEASES, Right
from .installation import Installation, Object

_API_GROUP = "rbac.authorization.k8s.io"

_OF_CLUSTER = "default"
"""The namespace of Events about cluster-scoped objects."""


def access(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the ServiceAccount, and the roles with their bindings.

    An operator of all namespaces gets a ClusterRole. One of a single namespace gets a Role there, and a ClusterRole
    only for cluster-scoped resources. The leader's Lease is in the namespace that the operator runs in.
    """
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": installation.metadata()}
    rights = operator.rights(leader_election=False)
    if installation.watched is None:
        yield from _role(installation, rules(rights))
    else:
        yield from _role(installation, rules(right for right in rights if not right.namespaced))
        own = rules(right for right in rights if right.namespaced)
        yield from _role(installation, own, installation.watched)
        if operator.events and not all(
            resource_named(resource).namespaced for resource in operator.reconciled
        ):
            events = [
                right for right in rights if right.plural == EVENTS.plural and right.group == EVENTS.group
            ]
            yield from _role(installation, rules(events), _OF_CLUSTER, "-events")
    if installation.elects:
        create, use = rules([Right.of(LEASES, ("create",)), Right.of(LEASES, ("get", "update"))])
        use["resourceNames"] = [operator.name]  # of a create, the server's authorizer does not know the name
        yield from _role(installation, [create, use], installation.home, "-leader-election")


def rules(rights: Iterable[Right]) -> list[Object]:
    """Return rights as the rules of a Role: one for all resources of a group with the same verbs."""
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for right in rights:
        resources.setdefault((right.group, right.verbs), []).append(right.resource)
    return [
        {"apiGroups": [group], "resources": names, "verbs": [*verbs]}
        for (group, verbs), names in resources.items()
    ]


def _role(
    installation: Installation, granted: list[Object], namespace: str = "", suffix: str = ""
) -> Iterator[Object]:
    """Yield a Role in a namespace, or a ClusterRole, with its binding; nothing if it would grant nothing."""
    if not granted:
        return
    kind = "Role" if namespace else "ClusterRole"
    metadata = installation.metadata(suffix, namespace)
    role = {"apiGroup": _API_GROUP, "kind": kind, "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": installation.name, "namespace": installation.home}
    yield _object(kind, metadata, rules=granted)
    yield _object(f"{kind}Binding", metadata, roleRef=role, subjects=[subject])


def _object(kind: str, metadata: Object, **fields: object) -> Object:
    return {"apiVersion": f"{_API_GROUP}/v1", "kind": kind, "metadata": metadata, **fields}
