"""The server behind a proxy, embedded or real, and the writer of the objects that a subject follows."""

from __future__ import annotations

import json
import ssl
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp.test_utils import RawTestServer
from aiohttp.web import BaseRequest, StreamResponse, json_response

from aioinformer import Client
from aioinformer.testing import APIServer
from tests.chaos.proxy import Proxy
from tests.e2e.api import API
from tests.kubernetes.controlplane import ControlPlane

from .objects import Objects

INTERNAL_ERROR = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "an error on the server",
    "reason": "InternalError",
    "code": 500,
}

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata", "users": ["powerless"]}, {"level": "None"}],
    "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
}
"""Log each request of the subject once, when it arrives."""

BINDING = {
    "metadata": {"name": "subject"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "powerless"}],
}


class World(ABC):
    """A namespace of a server, and the proxy by which a subject reaches it.

    Attributes:
        name: "embedded" or "real".
        proxy: The subject's way to the server.
        kubeconfig: The subject's, through the proxy.
        namespace: The subject's.
        objects: What the subject follows.
        changes: What was changed: names with their new versions, and None for deleted objects.
    """

    name: str
    namespace = "trouble"
    objects: Objects

    def __init__(self, api: API, proxy: Proxy, kubeconfig: Path) -> None:
        self.api = api
        self.proxy = proxy
        self.kubeconfig = kubeconfig
        self._refused = 0
        self.changes: list[tuple[str, str | None]] = []

    async def create(self, name: str) -> None:
        self.changes.append((name, await self.objects.create(name)))

    async def change(self, name: str) -> None:
        self.changes.append((name, await self.objects.change(name)))

    async def delete(self, name: str) -> None:
        await self.objects.delete(name)
        self.changes.append((name, None))

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """During the block the subject does not reach the server."""
        self.proxy.is_refusing = True
        await self.proxy.cut()
        try:
            yield
        finally:
            self.proxy.is_refusing = False

    @asynccontextmanager
    async def failing(self) -> AsyncIterator[None]:
        """During the block, the subject's requests on new connections are answered with 500."""

        async def refuse(request: BaseRequest) -> StreamResponse:
            self._refused += 1
            response = json_response(INTERNAL_ERROR, status=500)
            response.force_close()
            return response

        context = self.certificate()
        server = RawTestServer(refuse, scheme="https" if context else "http")
        await server.start_server(ssl=context)
        target, self.proxy.target = self.proxy.target, str(server.make_url("/"))
        try:
            yield
        finally:
            self.proxy.target = target
            await server.close()

    @abstractmethod
    def certificate(self) -> ssl.SSLContext | None:
        """Return what the server shows its clients; None without TLS."""

    @abstractmethod
    def client(self) -> Client:
        """Return the administrator's client, past the proxy; not yet entered."""

    @abstractmethod
    async def expire(self) -> None:
        """Expire all resourceVersions, while no watch is open."""

    @abstractmethod
    def requests(self) -> Counter[str]:
        """Return how many requests of each verb the subject has sent."""


class EmbeddedWorld(World):
    """The embedded server, in this process."""

    name = "embedded"
    server: APIServer

    def certificate(self) -> None:
        return None

    def client(self) -> Client:
        return Client.from_url(self.server.url, token=self.server.token)

    async def expire(self) -> None:
        self.server.faults.expire_history()

    def requests(self) -> Counter[str]:
        verbs = Counter(request.verb for request in self.server.requests if request.user == "subject")
        return verbs + Counter(refused=self._refused)


class RealWorld(World):
    """A real kube-apiserver, which writes a line for each of the subject's requests."""

    name = "real"
    plane: ControlPlane
    audit_log: Path

    def certificate(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.plane.ca_file, self.plane.ca_file.with_suffix(".key"))
        return context

    def client(self) -> Client:
        return Client.from_kubeconfig(path=self.plane.kubeconfig)

    async def expire(self) -> None:
        await self.plane.compact()
        await self.plane.restart()

    def requests(self) -> Counter[str]:
        verbs = Counter(json.loads(line)["verb"] for line in self.audit_log.read_bytes().splitlines())
        return verbs + Counter(refused=self._refused)


@asynccontextmanager
async def embedded_world(folder: Path) -> AsyncIterator[World]:
    """An embedded server for one subject."""
    async with (
        APIServer(token="administrator") as server,
        API(server.url, server.token, None) as api,
        Proxy(server.url) as proxy,
    ):
        server.users["subject"] = "subject"
        config = server.kubeconfig()
        config["clusters"][0]["cluster"]["server"] = proxy.url
        config["users"][0]["user"] = {"token": "subject"}
        world = EmbeddedWorld(api, proxy, folder / "kubeconfig")
        world.server = server
        world.kubeconfig.write_text(json.dumps(config))
        await api.do("POST", "/api/v1/namespaces", {"metadata": {"name": world.namespace}})
        yield world


@asynccontextmanager
async def real_world(folder: Path) -> AsyncIterator[World]:
    """A control plane for one subject, the user "powerless", who may do everything here."""
    policy, audit_log = folder / "audit-policy", folder / "audit.log"
    policy.write_text(json.dumps(AUDIT_POLICY))
    audit_log.touch()
    audit = [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log}"]
    async with ControlPlane(extra_args=audit) as plane:
        context = plane.ssl_context()
        async with API(plane.url, plane.token, context) as api, Proxy(plane.url) as proxy:
            await api.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
            config = json.loads(plane.kubeconfig.read_text()) | {"current-context": "powerless"}
            for cluster in config["clusters"]:
                cluster["cluster"]["server"] = proxy.url
            world = RealWorld(api, proxy, folder / "kubeconfig")
            world.plane, world.audit_log = plane, audit_log
            world.kubeconfig.write_text(json.dumps(config))
            await api.do("POST", "/api/v1/namespaces", {"metadata": {"name": world.namespace}})
            yield world
