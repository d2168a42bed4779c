"""Install an operator on the real server, and run it with its own rights."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trustme
import yaml

from tests.e2e.processes import Running, started_program
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.process import free_ports

from .dns import DNS
from .frameworks import Framework, Where

Object = dict[str, Any]
HOME = "websites"
"""The namespace of the operators, and the name of their ServiceAccounts."""
ABSENT = "cert-manager.io"
"""The server has no cert-manager."""


@asynccontextmanager
async def run_website_operator(
    plane: ControlPlane, framework: Framework, dns: DNS, folder: Path
) -> AsyncIterator[Running]:
    """Install an operator and run it until the block ends; then remove what installed it."""
    certs = folder / "certs"
    certs.mkdir()
    where = Where(port=free_ports(1)[0], certs=certs)
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(str(certs / "tls.crt"))
    made.private_key_pem.write_to_path(str(certs / "tls.key"))
    authority.cert_pem.write_to_path(str(certs / "ca.crt"))
    framework.deploy(folder / "deploy")
    deployed = yaml.safe_load_all(await plane.kubectl("kustomize", str(folder / "deploy")))
    objects = [obj for obj in deployed if not obj["apiVersion"].startswith(ABSENT)]
    for obj in objects:
        if obj["kind"] == "ValidatingWebhookConfiguration":
            _call_here(obj, where, authority.cert_pem.bytes())
    await plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    removed = [obj for obj in objects if obj["kind"] != "Namespace"]  # the next operator's, too
    environment = {
        **framework.environment(where),
        "KUBECONFIG": str(await _kubeconfig(plane, folder)),
        "DNS_URL": dns.url,
        "PATH": os.environ["PATH"],
    }
    try:
        async with started_program(*framework.command(where), environment=environment) as program:
            yield program
    finally:
        await plane.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=yaml.safe_dump_all(removed))
        await plane.kubectl("delete", "validatingwebhookconfigurations", "--all")


def _call_here(configuration: Object, where: Where, authority: bytes) -> None:
    """Make the server call a webhook at a port of this machine instead of a Service."""
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{where.port}{path}"
        webhook["clientConfig"]["caBundle"] = base64.b64encode(authority).decode()


async def _kubeconfig(plane: ControlPlane, folder: Path) -> Path:
    """Write a kubeconfig of the operator's ServiceAccount."""
    token = (await plane.kubectl("create", "token", f"--namespace={HOME}", HOME)).strip()
    config = json.loads(plane.kubeconfig.read_text())
    config["users"] = [{"name": "operator", "user": {"token": token}}]
    cluster = config["clusters"][0]["name"]
    config["contexts"] = [{"name": "operator", "context": {"cluster": cluster, "user": "operator"}}]
    config["current-context"] = "operator"
    path = folder / "operator.kubeconfig"
    path.write_text(json.dumps(config))
    return path
