"""Tenants' namespaces: an external account is closed once its namespace is empty.

A namespace's spec.finalizers change only through its subresource `finalize`. One of them is `kubernetes`: once it is
removed, the namespace is empty. Ours keeps the namespace itself until the account is closed.

    python examples/namespace_finalizer.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioinformer import Client, KubeObject
from aioinformer.operator import Controller, Manager, Request
from aioinformer.testing import APIServer, eventually

FINALIZER = "example.com/account"
TENANTS = "example.com/tenant"


def operator(client: Client, say: Callable[[str], object] = print, tenants: str = TENANTS) -> Manager:
    """Add a controller for the namespaces that have a label.

    Args:
        client: The cluster's client.
        say: Called with a line for each action.
        tenants: The label.
    """
    manager = Manager(client)
    namespaces = manager.resource("v1", "namespaces", namespaced=False, label_selector=tenants)

    async def reconcile(request: Request[KubeObject]) -> None:
        namespace = request.object
        if namespace is None:
            return
        finalizers = namespace["spec"].get("finalizers") or []
        if namespace.metadata.deletion_timestamp is None:
            if FINALIZER not in finalizers and await namespaces.ensure_spec_finalizer(namespace, FINALIZER):
                say(f"opened an account for {request.name}")
        elif FINALIZER in finalizers and "kubernetes" not in finalizers:
            say(f"{request.name} is empty: closed its account")
            await namespaces.drop_spec_finalizer(namespace, FINALIZER)

    manager.add(Controller("tenants", reconcile, namespaces))
    return manager


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client, operator(client):
        server.create("v1", "namespaces", {"metadata": {"name": "acme", "labels": {TENANTS: ""}}})
        server.create("v1", "configmaps", {"metadata": {"name": "settings"}}, "acme")
        await eventually(lambda: FINALIZER in server.get("v1", "namespaces", "acme")["spec"]["finalizers"])
        server.delete("v1", "namespaces", "acme")
        await eventually(lambda: "acme" not in server.snapshot("v1", "namespaces"))
        print("acme is gone")


if __name__ == "__main__":
    asyncio.run(main())
