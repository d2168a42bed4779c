"""What there is: groups, versions, resources."""

from __future__ import annotations

from ..recording import Recorder

GROUPS = (
    "apps",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
)


async def discovery(server: Recorder) -> None:
    """The documents that clients find resources with."""
    await server.ask("GET", "/api")
    await server.ask("GET", "/apis")
    await server.ask("GET", "/api/v1")
    await server.ask("GET", "/version")
    for path in ("/healthz", "/livez", "/readyz"):
        await server.ask("GET", path)
    for group in GROUPS:
        await server.ask("GET", f"/apis/{group}")
        await server.ask("GET", f"/apis/{group}/v1")
