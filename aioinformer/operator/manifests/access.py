"""The rights of an operator as RBAC objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..kinds import resource_named
from ..operator import Operator
from ..rights import ELECT, EVENTS, LEASES, REVIEW_TOKENS, SHARE, Right, split_names
from ..webhook_registration import registration_rights
from .installation import Installation, Object

API_GROUP = "rbac.authorization.k8s.io"

_OF_CLUSTER = "default"
"""The namespace of Events about cluster-scoped objects."""


def access(operator: Operator, installation: Installation) -> Iterator[Object]:
    """Yield the ServiceAccount, and the roles with their bindings.

    An operator of all namespaces gets a ClusterRole. One of some namespaces gets a Role in each, and a ClusterRole only
    for cluster-scoped resources. The Leases of a leader or of slots are in the namespace that the operator runs in.
    """
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": installation.metadata()}
    rights = operator.rights(leader_election=False)
    if not installation.namespaces:
        yield from _role(installation, rules(rights))
    else:
        yield from _role(installation, rules(right for right in rights if not right.namespaced))
        own = rules(right for right in rights if right.namespaced)
        for namespace in installation.namespaces:
            yield from _role(installation, own, namespace)
        if operator.events and not all(
            resource_named(resource).namespaced for resource in operator.reconciled
        ):
            events = [
                right for right in rights if right.plural == EVENTS.plural and right.group == EVENTS.group
            ]
            yield from _role(installation, rules(events), _OF_CLUSTER, "-events")
        if operator.events and installation.home not in installation.namespaces:
            events = [Right.of(EVENTS, ("create", "patch"))]  # about its Pods and its Lease
            yield from _role(installation, rules(events), installation.home, "-own-events")
    if not installation.static_webhooks:
        registering = rules(registration_rights(operator, installation.name))
        yield from _role(installation, registering, suffix="-webhook")
    if installation.metrics_auth:
        yield from _role(installation, rules(REVIEW_TOKENS), suffix="-metrics-auth")
    if installation.elects:
        lease = Right.of(LEASES, ELECT, names=[installation.name])
        yield from _role(installation, rules([lease]), installation.home, "-leader-election")
    if installation.shards:
        yield from _role(installation, rules([Right.of(LEASES, SHARE)]), installation.home, "-sharding")


def rules(rights: Iterable[Right]) -> list[Object]:
    """Return rights as the rules of a Role: one for all resources of a group with the same verbs."""
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for part in (part for right in rights for part in split_names(right)):
        resources.setdefault((part.group, part.verbs, part.names), []).append(part.resource)
    return [
        {
            "apiGroups": [group],
            "resources": list(dict.fromkeys(plurals)),
            **({"resourceNames": [*names]} if names else {}),
            "verbs": [*verbs],
        }
        for (group, verbs, names), plurals in resources.items()
    ]


def _role(
    installation: Installation, granted: list[Object], namespace: str = "", suffix: str = ""
) -> Iterator[Object]:
    """Yield a Role in a namespace, or a ClusterRole, with its binding; nothing if it would grant nothing."""
    if not granted:
        return
    kind = "Role" if namespace else "ClusterRole"
    metadata = installation.metadata(suffix, namespace)
    role = {"apiGroup": API_GROUP, "kind": kind, "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": installation.name, "namespace": installation.home}
    yield _object(kind, metadata, rules=granted)
    yield _object(f"{kind}Binding", metadata, roleRef=role, subjects=[subject])


def _object(kind: str, metadata: Object, **fields: object) -> Object:
    return {"apiVersion": f"{API_GROUP}/v1", "kind": kind, "metadata": metadata, **fields}
