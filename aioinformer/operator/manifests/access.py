"""The rights of an operator as RBAC objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..kinds import declared
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
        yield from _cluster_role(installation, rules(rights))
    else:
        yield from _cluster_role(installation, rules(each for each in rights if not each.namespaced))
        own = rules(each for each in rights if each.namespaced)
        yield from _role(installation, own, installation.watched)
        if operator.events and not all(declared(each).namespaced for each in operator.reconciled):
            events = [each for each in rights if each.plural == EVENTS.plural and each.group == EVENTS.group]
            yield from _role(installation, rules(events), _OF_CLUSTER, "-events")
    if installation.elects:
        lease = [
            *rules([Right.of(LEASES, ("create",))]),  # its name is not known to the server's authorizer yet
            *(
                {**rule, "resourceNames": [operator.name]}
                for rule in rules([Right.of(LEASES, ("get", "update"))])
            ),
        ]
        yield from _role(installation, lease, installation.home, "-leader-election")


def rules(rights: Iterable[Right]) -> list[Object]:
    """Return rights as the rules of a Role: one for all resources of a group with the same verbs."""
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in rights:
        resources.setdefault((each.group, each.verbs), []).append(each.resource)
    return [
        {"apiGroups": [group], "resources": names, "verbs": [*verbs]}
        for (group, verbs), names in resources.items()
    ]


def _cluster_role(installation: Installation, granted: list[Object]) -> Iterator[Object]:
    if granted:
        metadata = installation.metadata(namespace="")
        yield _object("ClusterRole", metadata, rules=granted)
        yield _binding("ClusterRole", metadata, installation)


def _role(
    installation: Installation, granted: list[Object], namespace: str, suffix: str = ""
) -> Iterator[Object]:
    if granted:
        metadata = installation.metadata(suffix, namespace)
        yield _object("Role", metadata, rules=granted)
        yield _binding("Role", metadata, installation)


def _binding(kind: str, metadata: Object, installation: Installation) -> Object:
    subject = {"kind": "ServiceAccount", "name": installation.name, "namespace": installation.home}
    role = {"apiGroup": _API_GROUP, "kind": kind, "name": metadata["name"]}
    return _object(f"{kind}Binding", metadata, roleRef=role, subjects=[subject])


def _object(kind: str, metadata: Object, **fields: object) -> Object:
    return {"apiVersion": f"{_API_GROUP}/v1", "kind": kind, "metadata": metadata, **fields}
