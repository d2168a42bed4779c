"""A server that calls an operator's webhooks, for tests end to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aioinformer import Client, Resource
from aioinformer.operator import Operator, WebhookServer

from ..operator.webhooks.certificates import Certificates
from ..operator.webhooks.kinds import WebsiteV1
from . import api
from .clusters import Cluster
from .definitions import define

SITES = api.Resource("hooks.example.com/v1", "websites")
CONFIGURATIONS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


class World:
    """A server with an operator's webhooks, and a namespace of the test's own.

    Attributes:
        client: The administrator's.
        sites: The Websites.
        warnings: What the server warned of.
        namespace: The test's own.
        files: The certificate of the webhooks.
    """

    def __init__(
        self, client: Client, asking: api.API, files: Certificates, namespace: str, warnings: list[str]
    ) -> None:
        self.client = client
        self.api = asking
        self.sites = Resource(client, WebsiteV1)
        self.files = files
        self.namespace = namespace
        self.warnings = warnings

    def site(self, name: str = "a", /, **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": "hooks.example.com/v1",
            "kind": "Website",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"host": "a.example", **spec},
        }

    async def dry_run(self, obj: dict[str, Any]) -> api.Answer:
        """Create a Website without storing it."""
        return await self.api.ask("POST", SITES.path(self.namespace), obj, {"dryRun": "All"})

    async def until_refused(self, obj: dict[str, Any]) -> api.Answer:
        """Wait until the server knows of the webhooks, which refuse this object."""
        return await self._until(obj, lambda answer: "webhook" in answer.body.get("message", ""))

    async def until_allowed(self, obj: dict[str, Any]) -> api.Answer:
        """Wait until the webhooks allow this object."""
        return await self._until(obj, lambda answer: answer.status == 201)

    async def _until(self, obj: dict[str, Any], is_reached: Callable[[api.Answer], bool]) -> api.Answer:
        async with asyncio.timeout(20):
            # Nothing tells when the server knows its configurations.
            while not is_reached(answer := await self.dry_run(obj)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            return answer


@asynccontextmanager
async def webhook_world(
    cluster: Cluster, folder: Path, operator: Operator, *, expired: bool = False
) -> AsyncIterator[World]:
    """Serve an operator's webhooks, and register them at a server until the block ends."""
    files = Certificates(folder, expired=expired)
    warnings: list[str] = []
    async with (
        Client.from_kubeconfig(path=cluster.kubeconfig, on_warning=warnings.append) as client,
        WebhookServer(
            operator.webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1", poll=0.05
        ) as server,
    ):
        asking, url = cluster.api, f"https://127.0.0.1:{server.port}"
        for definition in operator.definitions(url=url, ca_bundle=files.ca):
            await define(asking, definition)
        configurations = [
            (
                api.Resource("admissionregistration.k8s.io/v1", CONFIGURATIONS[configuration["kind"]], False),
                configuration,
            )
            for configuration in operator.webhook_configurations(url=url, ca_bundle=files.ca)
        ]
        try:
            for resource, configuration in configurations:
                await asking.do("POST", resource.path(), configuration)
            yield World(client, asking, files, cluster.namespace, warnings)
        finally:
            for resource, configuration in configurations:
                await asking.ask("DELETE", resource.path(name=configuration["metadata"]["name"]))
