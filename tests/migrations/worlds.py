"""The server behind a proxy, embedded or real, and the writer of the objects that a subject follows."""

from __future__ import annotations

import json
import ssl
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aioinformer.testing import APIServer
from tests.chaos.proxy import Proxy
from tests.e2e.api import API, CONFIGMAPS, MERGE, PODS, Object, Resource
from tests.e2e.clusters import pod_manifest
from tests.kubernetes.controlplane import ControlPlane
from tests.samples import configmap


def _pod(name: str) -> Object:
    """Return a pod as KubeSpawner and Airflow select them."""
    made = pod_manifest(name, labels={"component": "singleuser-server", "airflow-worker": "1"})
    made["metadata"]["annotations"] = {"dag_id": "d", "task_id": "t", "run_id": "r", "try_number": "1"}
    return made


MAKE: dict[str, tuple[Resource, Callable[[str], Object]]] = {
    "configmaps": (CONFIGMAPS, configmap),
    "pods": (PODS, _pod),
}


class World(ABC):
    """A namespace of a server, and the proxy by which a subject reaches it.

    Attributes:
        name: "embedded" or "real".
        kubeconfig: The subject's, through the proxy.
        namespace: The subject's.
    """

    name: str

    def __init__(self, api: API, proxy: Proxy, kubeconfig: Path, namespace: str, plural: str) -> None:
        self._api = api
        self.proxy = proxy
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._resource, self._make = MAKE[plural]

    async def create(self, name: str) -> None:
        await self._api.do("POST", self._resource.path(self.namespace), self._make(name))

    async def change(self, name: str) -> None:
        """Change an annotation."""
        version = (await self.versions())[name]
        patch = {"metadata": {"annotations": {"changed-at": version}}}
        await self._api.do("PATCH", self._resource.path(self.namespace, name), patch, content_type=MERGE)

    async def delete(self, name: str) -> None:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        await self._api.do("DELETE", self._resource.path(self.namespace, name), body)

    async def versions(self) -> dict[str, str]:
        """Return what the server has: the resourceVersion of each object by name."""
        items = (await self._api.do("GET", self._resource.path(self.namespace)))["items"]
        return {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in items
            if item["metadata"]["name"] != "kube-root-ca.crt"
        }

    @abstractmethod
    async def expire(self) -> None:
        """Expire all resourceVersions, while no watch is open."""

    @abstractmethod
    async def fail(self, times: int) -> bool:
        """Answer lists and watches of the subject with 500; returns False if the server cannot."""

    @abstractmethod
    def requests(self) -> int | None:
        """Return how many requests the subject has sent; None if unknown."""


class EmbeddedWorld(World):
    """The embedded server, in this process."""

    name = "embedded"
    server: APIServer

    async def expire(self) -> None:
        self.server.faults.expire_history()

    async def fail(self, times: int) -> bool:
        for verb in ("list", "watch"):
            self.server.faults.fail(
                500, times=times, verb=verb, resource=self._resource.plural, matching=_is_of_subject
            )
        return True

    def requests(self) -> int | None:
        return Counter(_is_of_subject(request) for request in self.server.requests)[True]


def _is_of_subject(request: object) -> bool:
    return getattr(request, "user", "") == "subject"


class RealWorld(World):
    """A real kube-apiserver."""

    name = "real"
    plane: ControlPlane

    async def expire(self) -> None:
        await self.plane.compact()
        await self.plane.restart()

    async def fail(self, times: int) -> bool:
        return False

    def requests(self) -> int | None:
        return None


@asynccontextmanager
async def embedded_world(folder: Path, plural: str) -> AsyncIterator[World]:
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
        world = EmbeddedWorld(api, proxy, folder / "kubeconfig", "trouble", plural)
        world.server = server
        world.kubeconfig.write_text(json.dumps(config))
        await api.do("POST", "/api/v1/namespaces", {"metadata": {"name": world.namespace}})
        yield world


@asynccontextmanager
async def real_world(folder: Path, plural: str) -> AsyncIterator[World]:
    """A control plane for one subject."""
    with ControlPlane() as plane:
        context: ssl.SSLContext = plane.ssl_context()
        async with API(plane.url, plane.token, context) as api, Proxy(plane.url) as proxy:
            config = json.loads(plane.kubeconfig.read_text())
            for cluster in config["clusters"]:
                cluster["cluster"]["server"] = proxy.url
            world = RealWorld(api, proxy, folder / "kubeconfig", "trouble", plural)
            world.plane = plane
            world.kubeconfig.write_text(json.dumps(config))
            await api.do("POST", "/api/v1/namespaces", {"metadata": {"name": world.namespace}})
            yield world
