"""Install an operator as a user does: by kubectl, from what ``aioinformer manifests`` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aioinformer import Client
from aioinformer.operator import Operator
from aioinformer.operator.definitions import install as install_definitions
from aioinformer.operator.manifests import Installation, write_kustomization

from .audit import Audited

Object = dict[str, Any]


async def install(
    audited: Audited, admin: Client, operator: Operator, objects: Iterable[Object], folder: Path
) -> None:
    """Apply an operator's manifests, and wait until its resources are served."""
    write_kustomization(objects, folder)
    await audited.kubectl("apply", "-k", str(folder))
    await install_definitions(admin, operator)


async def kubeconfig_of(audited: Audited, installation: Installation, folder: Path) -> Path:
    """Return a kubeconfig of the operator's ServiceAccount."""
    namespace = f"--namespace={installation.home}"
    token = (await audited.kubectl("create", "token", namespace, installation.name)).strip()
    config = json.loads(audited.kubeconfig.read_text())
    config["users"] = [{"name": "operator", "user": {"token": token}}]
    config["contexts"] = [
        {
            "name": "operator",
            "context": {"cluster": "tests", "user": "operator", "namespace": installation.home},
        }
    ]
    config["current-context"] = "operator"
    path = folder / "operator.kubeconfig"
    path.write_text(json.dumps(config))
    return path
