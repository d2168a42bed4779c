"""The scene of a case: a control plane, subjects that read from it, a writer, and proxies between them."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import aiohttp
import trustme

from aioinformer._core.tasks import finish
from tests.e2e.api import API, CONFIGMAPS, MERGE, PODS, Object, Refused, Resource
from tests.e2e.clusters import key_of, pod_manifest
from tests.e2e.definitions import CAVE_DEFINITION, CAVES, cave, define
from tests.kubernetes.controlplane import ControlPlane
from tests.samples import configmap

from .proxy import Proxy
from .subjects import Ours, Subject, Versions, ours, theirs

SECRETS = Resource("v1", "secrets")
ACCOUNTS = Resource("v1", "serviceaccounts")

MAKE: dict[Resource, Callable[[str], Object]] = {
    PODS: pod_manifest,
    CONFIGMAPS: configmap,
    CAVES: cave,
    SECRETS: lambda name: {"metadata": {"name": name}},
    ACCOUNTS: lambda name: {"metadata": {"name": name}},
}
"""The five collections, and a function that makes an object of each."""

OBJECTS = 20
PAUSE = 0.02
UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError, Refused)


@dataclass
class Site:
    """A control plane, and the certificate authority of rotated certificates.

    Attributes:
        plane: The control plane.
        ca_file: The authorities that clients trust: the server's own one and ``authority``.
        authority: The authority of rotated certificates.
    """

    plane: ControlPlane
    ca_file: Path
    authority: trustme.CA = field(default_factory=trustme.CA)

    def __post_init__(self) -> None:
        self.ca_file.write_bytes(self.plane.ca_file.read_bytes() + self.authority.cert_pem.bytes())

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file)


class World:
    """A namespace for one case, subjects with a proxy each, and a writer.

    Attributes:
        site: The control plane.
        api: A client of the administrator that bypasses the proxies.
        namespace: The case's namespace.
        folder: The folder of its files.
        token_file: The file with the subjects' token.
        proxies: A proxy for each subject, for cases that use proxies.
        subjects: The informers.
    """

    def __init__(self, site: Site, api: API, folder: Path) -> None:
        self.site = site
        self.api = api
        self.namespace = ""
        self.folder = folder
        self.token_file = folder / "token"
        self.proxies: list[Proxy] = []
        self.subjects: list[Subject] = []
        self._random = Random(1)
        self._serial = 0

    @property
    def plane(self) -> ControlPlane:
        return self.site.plane

    async def server_side(self) -> dict[str, Versions]:
        """Return the server's state of the five collections."""
        versions = {}
        for resource in MAKE:
            items = (await self.api.do("GET", resource.path(self.namespace)))["items"]
            versions[resource.plural] = {key_of(item): item["metadata"]["resourceVersion"] for item in items}
        return versions

    async def status_for(self, token: str) -> int:
        """Return the status of a read in this namespace with a token."""
        async with API(self.plane.url, token, self.site.ssl_context()) as api:
            return (await api.ask("GET", CONFIGMAPS.path(self.namespace))).status

    async def create(self, resource: Resource, name: str) -> None:
        await self.api.do("POST", resource.path(self.namespace), MAKE[resource](name))

    async def mark(self, name: str) -> None:
        """Create an object of this name in each collection."""
        await asyncio.gather(*(self.create(resource, name) for resource in MAKE))

    async def write(self) -> None:
        """Create, change and delete objects of all collections; skip writes that fail."""
        while True:
            for resource in MAKE:
                with suppress(*UNREACHABLE):
                    async with asyncio.timeout(2.0):
                        await self._change(resource)
                await asyncio.sleep(PAUSE)

    async def change_much(self, rounds: int = 20) -> None:
        """Make a number of changes to each collection, concurrently."""
        for _ in range(rounds):
            for resource in MAKE:
                with suppress(Refused):
                    await self._change(resource)

    async def _change(self, resource: Resource) -> None:
        name = f"object-{self._random.randrange(OBJECTS)}"
        path = resource.path(self.namespace)
        self._serial += 1
        kind = self._random.random()
        if kind < 0.3:
            await self.api.ask("POST", path, MAKE[resource](name))
        elif kind < 0.5:
            await self.api.ask("DELETE", f"{path}/{name}")
        else:
            patch = {"metadata": {"annotations": {"serial": str(self._serial)}}}
            await self.api.ask("PATCH", f"{path}/{name}", patch, content_type=MERGE)

    def kubeconfig(self, name: str, url: str) -> Path:
        """Write a kubeconfig for this URL that uses the token file."""
        path = self.folder / f"kubeconfig-{name}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": url, "certificate-authority": str(self.site.ca_file)}}
            ],
            "users": [{"name": "u", "user": {"tokenFile": str(self.token_file)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        path.write_text(json.dumps(config))
        return path

    @property
    def ours(self) -> Ours:
        """Return our informers."""
        (subject_of_ours,) = (subject for subject in self.subjects if isinstance(subject, Ours))
        return subject_of_ours


@asynccontextmanager
async def chaos_world(site: Site, folder: Path) -> AsyncIterator[World]:
    """Make a namespace with some objects of each collection, before the subjects start."""
    plane = site.plane
    async with API(plane.url, plane.token, site.ssl_context()) as api:
        made = World(site, api, folder)
        made.token_file.write_text(plane.token)
        await define(api, CAVE_DEFINITION)
        namespace = await api.do("POST", "/api/v1/namespaces", {"metadata": {"generateName": "chaos-"}})
        made.namespace = str(namespace["metadata"]["name"])
        for resource in MAKE:
            for number in range(0, OBJECTS, 2):
                await made.create(resource, f"object-{number}")
        yield made


@asynccontextmanager
async def run_readers(made: World, *, proxied: bool, with_client_go: bool) -> AsyncIterator[None]:
    """Run the subjects during the block, from when they have the server's state."""
    resources = list(MAKE)
    names = ["ours", *(["theirs"] if with_client_go else [])]
    async with AsyncExitStack() as stack:
        for name in names:
            proxy = await stack.enter_async_context(Proxy(made.plane.url))
            made.proxies.append(proxy)
            kubeconfig = made.kubeconfig(name, proxy.url if proxied else made.plane.url)
            running = (
                ours(kubeconfig, made.namespace, resources)
                if name == "ours"
                else theirs(kubeconfig, made.namespace, resources, made.folder / "client-go.log")
            )
            made.subjects.append(await stack.enter_async_context(running))
        wanted = await made.server_side()
        for subject in made.subjects:
            await subject.until(lambda subject=subject: subject.shadows == wanted, 30)  # type: ignore[misc]
        yield


@asynccontextmanager
async def run_writer(made: World) -> AsyncIterator[None]:
    """Run the writer during the block."""
    task = asyncio.create_task(made.write())
    try:
        yield
    finally:
        await finish(task)
        if not task.cancelled():
            task.result()
