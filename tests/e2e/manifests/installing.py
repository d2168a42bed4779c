"""Install an operator as a user does: by kubectl, from what ``aioinformer manifests`` writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aioinformer import Client, LeaderElector
from aioinformer.operator import Manager, Operator, Right
from aioinformer.operator.definitions import install as install_definitions
from aioinformer.operator.manifests import Installation, to_yaml, write_kustomization
from aioinformer.operator.preflight import Needed, missing_rights
from aioinformer.operator.webhook_registration import registration_rights
from aioinformer.sharding import Sharding
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.kubectl import KubectlError

from .audit import PATIENCE, Audited

Object = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_CREATOR: list[Object] = [
    {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "creator"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}],
    },
    {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "creator"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "creator"},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": "creator"}],
    },
]
"""Permits a user who is no administrator to create ConfigMaps."""


DURATIONS: dict[str, Any] = {"lease_duration": 2.0, "renew_deadline": 1.5, "retry_period": 0.2}
"""Of Leases."""


def installation(
    name: str, watched: str | tuple[str, ...] | None = None, home: str = "", *, shards: int = 0
) -> Installation:
    """Return how two replicas of the websites operator are deployed."""
    return Installation(
        target="tests.e2e.manifests.websites:operator",
        name=name,
        image="example.com/websites:1",
        namespace=home,
        watched=watched,
        replicas=2,
        shards=shards,
    )


async def install(
    audited: Audited, admin: Client, operator: Operator, objects: list[Object], folder: Path
) -> None:
    """Apply an operator's manifests, and wait until its resources are served, and known to admission."""
    write_kustomization(objects, folder)
    await audited.kubectl("apply", "-k", str(folder))
    await install_definitions(admin, operator)
    for obj in objects:
        if obj["kind"] == "CustomResourceDefinition":
            await until_owners(audited, obj)


def assert_unchanged(applied: str) -> None:
    """Check what ``kubectl apply`` says of objects that it has applied before.

    Of a PodDisruptionBudget it always says that it is configured: its selector is replaced as a whole.
    """
    others = [line for line in applied.splitlines() if not line.startswith("poddisruptionbudget.")]
    assert {line.rpartition(" ")[2] for line in others} == {"unchanged"}


async def kubeconfig_of(audited: Audited, installed: Installation, folder: Path) -> Path:
    """Return a kubeconfig of the operator's ServiceAccount."""
    namespace = f"--namespace={installed.home}"
    token = (await audited.kubectl("create", "token", namespace, installed.name)).strip()
    config = json.loads(audited.kubeconfig.read_text())
    config["users"] = [{"name": "operator", "user": {"token": token}}]
    config["contexts"] = [
        {
            "name": "operator",
            "context": {"cluster": "tests", "user": "operator", "namespace": installed.home},
        }
    ]
    config["current-context"] = "operator"
    path = folder / "operator.kubeconfig"
    path.write_text(json.dumps(config))
    return path


@asynccontextmanager
async def running_operator(
    operator: Operator, client: Client, installed: Installation
) -> AsyncIterator[Manager]:
    """Run an operator as the leader, or as the only one of those that share the objects.

    Lists are no streams, as on servers that cannot stream them.
    """
    elector = LeaderElector(client, installed.name, installed.home, **DURATIONS) if installed.elects else None
    sharding = None
    if installed.shards:
        sharding = Sharding(client, installed.name, installed.home, slots=installed.shards, **DURATIONS)
    async with operator.manager(
        client,
        namespaces=installed.namespaces or None,
        leader_election=elector,
        sharding=sharding,
        use_watch_list=False,
    ) as manager:
        yield manager


def rights_of(operator: Operator, installed: Installation) -> list[Right]:
    """Return the rights of an installed operator."""
    return operator.rights(leader_election=installed.elects, sharding=installed.shards > 0)


async def until_permitted(client: Client, operator: Operator, installed: Installation) -> None:
    """Wait until the server's authorizer has seen the roles."""
    needed = [Needed(right, name=installed.name) for right in registration_rights(operator, installed.name)]
    for right in rights_of(operator, installed):
        if right.plural == "leases":
            needed.append(Needed(right, installed.home, installed.name if installed.elects else ""))
        else:
            where = (installed.namespaces if right.namespaced else ()) or ("",)
            needed += [Needed(right, namespace) for namespace in where]
    async with asyncio.timeout(PATIENCE):
        while await missing_rights(client, needed):
            pass


LEARNS = 60.0
"""Seconds until admission knows a new kind: it reads discovery every ten seconds, which lags on a loaded machine."""


async def until_owners(audited: Audited, definition: Object) -> None:
    """Wait until admission knows a kind as an owner. It looks for new ones rarely, and not for the administrator."""
    spec = definition["spec"]
    version = {"apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}", "kind": spec["names"]["kind"]}
    owner = {**version, "name": "a", "uid": "a", "blockOwnerDeletion": True}
    metadata = {"name": "owned", "namespace": "default", "ownerReferences": [owner]}
    owned = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await audited.kubectl("apply", "-f", "-", stdin=to_yaml(_CREATOR))
    async with asyncio.timeout(LEARNS):
        while True:
            try:
                await audited.kubectl(
                    "create", "--dry-run=server", "--as=creator", "--validate=false", "-f", "-", stdin=owned
                )
            except KubectlError as error:
                if "you can't set finalizers on" in str(error):
                    return


def without(obj: Object, verb: str, resource: str) -> Object:
    """Return a role without a verb of a resource, or without the resource; other objects as they are."""
    if "rules" not in obj:
        return obj
    kept = [
        {**rule, "resources": [name], "verbs": verbs}
        for rule in obj["rules"]
        for name in rule["resources"]
        if (verbs := _remaining(rule["verbs"], verb) if name == resource else rule["verbs"])
    ]
    return {**obj, "rules": kept}


def _remaining(verbs: list[str], verb: str) -> list[str]:
    return [other for other in verbs if other != verb] if verb else []


async def define_foreign_kinds(audited: ControlPlane) -> None:
    """Define the kinds of cert-manager and the Prometheus Operator that manifests have, with any spec."""
    for kind, group in (
        ("Issuer", "cert-manager.io"),
        ("Certificate", "cert-manager.io"),
        ("PodMonitor", "monitoring.coreos.com"),
        ("PrometheusRule", "monitoring.coreos.com"),
    ):
        definition = _foreign_definition(kind, group)
        await audited.kubectl("apply", "-f", "-", stdin=to_yaml([definition]))
        await audited.kubectl("wait", "--for=condition=Established", f"crd/{definition['metadata']['name']}")


def _foreign_definition(kind: str, group: str) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }
