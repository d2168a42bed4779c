"""Install an operator as a user does: by kubectl, from what ``aioinformer manifests`` writes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from aioinformer import Client
from aioinformer.operator import Operator
from aioinformer.operator.definitions import install as install_definitions
from aioinformer.operator.manifests import Installation, write_kustomization
from aioinformer.operator.preflight import Needed, missing_rights
from tests.kubernetes.kubectl import KubectlError

from .audit import PATIENCE, Audited

Object = dict[str, Any]


def installation(name: str, watched: str | None = None, home: str = "") -> Installation:
    """Return how two replicas of the websites operator are deployed."""
    return Installation(
        target="tests.e2e.manifests.websites:operator",
        name=name,
        image="example.com/websites:1",
        namespace=home,
        watched=watched,
        replicas=2,
    )


async def install(
    audited: Audited, admin: Client, operator: Operator, objects: list[Object], folder: Path
) -> None:
    """Apply an operator's manifests, and wait until its resources are served, and known to admission."""
    write_kustomization(objects, folder)
    await audited.kubectl("apply", "-k", str(folder))
    await install_definitions(admin, operator)
    for each in objects:
        if each["kind"] == "CustomResourceDefinition":
            await until_owners(audited, each)


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


async def until_permitted(client: Client, operator: Operator, installed: Installation) -> None:
    """Wait until the server's authorizer has seen the roles."""
    needed = [
        Needed(right, installed.home, operator.name)
        if right.plural == "leases"
        else Needed(right, (installed.watched or "") if right.namespaced else "")
        for right in operator.rights()
    ]
    async with asyncio.timeout(PATIENCE):
        while await missing_rights(client, needed):
            pass


async def until_owners(audited: Audited, definition: Object) -> None:
    """Wait until admission knows a kind as an owner: it looks for new ones every ten seconds."""
    spec = definition["spec"]
    version = {"apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}", "kind": spec["names"]["kind"]}
    owner = {**version, "name": "a", "uid": "a", "blockOwnerDeletion": True}
    metadata = {"name": "owned", "ownerReferences": [owner]}
    owned = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await audited.kubectl("create", "--dry-run=server", "-f", "-", stdin=owned)
            except KubectlError as error:
                assert "no matches for kind" in str(error)  # noqa: PT017
            else:
                return
