"""Webhooks that tests write themselves, to see exactly what a server sends and takes."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from aioinformer._core.http_server import HTTPServer

from ..operator.webhooks.certificates import Certificates
from .api import Object, Resource
from .clusters import Cluster

CONFIGURATIONS = {
    kind: Resource(
        "admissionregistration.k8s.io/v1", f"{kind.lower()}webhookconfigurations", namespaced=False
    )
    for kind in ("Mutating", "Validating")
}
Answering = Callable[[Object], Object | bytes]


class Hooks:
    """A server of webhooks, each at a path of its own.

    Attributes:
        port: Its port.
        ca: The authority of its certificate in PEM, in base64.
        asked: The requests of reviews, by path.
    """

    def __init__(self, cluster: Cluster, files: Certificates) -> None:
        self._cluster = cluster
        self._answers: dict[str, Answering] = {}
        self._stack = AsyncExitStack()
        self.port = 0
        self.ca = base64.b64encode(files.ca).decode()
        self.asked: dict[str, list[Object]] = {}

    async def serve(self, request: web.BaseRequest) -> web.Response:
        review = await request.json()
        self.asked.setdefault(request.path, []).append(review["request"])
        answer = self._answers[request.path](review["request"])
        if isinstance(answer, bytes):
            return web.Response(body=answer, content_type="application/json")
        response = {"uid": review["request"]["uid"], **answer}
        return web.json_response({**review, "request": None, "response": response})

    def hook(self, name: str, answer: Answering, **more: Any) -> Object:
        """Return a webhook's declaration; by default it is for configmaps."""
        self._answers[f"/{name}"] = answer
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
        }
        return {
            "name": f"{name}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{name}", "caBundle": self.ca},
            "rules": [rule | more.pop("rule", {})],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._cluster.namespace}},
            **more,
        }

    @asynccontextmanager
    async def register(self, kind: str, *hooks: Object) -> AsyncIterator[None]:
        """Register webhooks while the block runs, and wait until the server calls them."""
        name = f"{self._cluster.namespace}-{kind.lower()}"
        probe = self.hook(f"probe-{kind.lower()}", lambda _: deny("ready"), rule={"resources": ["secrets"]})
        configuration = {"metadata": {"name": name}, "webhooks": [*hooks, probe]}
        await self._cluster.api.do("POST", CONFIGURATIONS[kind].path(), configuration)
        path = Resource("v1", "secrets").path(self._cluster.namespace)
        try:
            async with asyncio.timeout(20):
                # Nothing tells when the real server knows its configurations.
                while (await self._cluster.api.ask("POST", path, {"metadata": {"name": "a"}})).status == 201:
                    await self._cluster.api.ask("DELETE", f"{path}/a")
                    await asyncio.sleep(0.05)
            yield
        finally:
            await self._cluster.api.do("DELETE", CONFIGURATIONS[kind].path(name=name))


@asynccontextmanager
async def serve_hooks(cluster: Cluster, folder: Path) -> AsyncIterator[Hooks]:
    """Serve webhooks by HTTPS."""
    files = Certificates(folder)
    hooks = Hooks(cluster, files)
    runner = web.ServerRunner(HTTPServer(hooks.serve))
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    hooks.port = runner.addresses[0][1]
    try:
        yield hooks
    finally:
        await runner.cleanup()


def allow(_: Object) -> Object:
    return {"allowed": True}


def deny(message: str, **status: Any) -> Object:
    return {"allowed": False, "status": {"message": message, **status}}


def patch(*steps: Object) -> Object:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(steps).encode()).decode(),
    }
