"""Where trouble happens: a control plane of one's own, who reads from it, who writes to it, and what lies between."""

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
from tests.e2e.clusters import configmap, key_of, pod
from tests.e2e.definitions import CAVE_DEFINITION, CAVES, cave, define
from tests.kubernetes.controlplane import ControlPlane

from .proxy import Proxy
from .subjects import Ours, Subject, Versions, ours, theirs

SECRETS = Resource("v1", "secrets")
ACCOUNTS = Resource("v1", "serviceaccounts")

MAKE: dict[Resource, Callable[[str], Object]] = {
    PODS: pod,
    CONFIGMAPS: configmap,
    CAVES: cave,
    SECRETS: lambda name: {"metadata": {"name": name}},
    ACCOUNTS: lambda name: {"metadata": {"name": name}},
}
"""The five collections, and how an object of each is made."""

OBJECTS = 20
PAUSE = 0.02
UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError, Refused)


@dataclass
class Site:
    """A control plane, and the certificate authority that rotated certificates are of.

    Attributes:
        plane: The control plane.
        ca_file: What clients trust: the authority that the server made up at its first start, and the other one.
        authority: The other one.
    """

    plane: ControlPlane
    ca_file: Path
    authority: trustme.CA = field(default_factory=trustme.CA)

    def __post_init__(self) -> None:
        self.ca_file.write_bytes(self.plane.ca_file.read_bytes() + self.authority.cert_pem.bytes())

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file)


class World:
    """One case's: a namespace, subjects with a proxy each, and a writer.

    Attributes:
        site: Where.
        api: Asks the server as the administrator, past the proxies.
        namespace: The case's own.
        folder: For its files.
        token_file: The token that the subjects show.
        proxies: One for each subject; they are used where the case wants that.
        subjects: Who reads.
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
        """What the server holds of the five collections."""
        found = {}
        for resource in MAKE:
            items = (await self.api.do("GET", resource.path(self.namespace)))["items"]
            found[resource.plural] = {key_of(item): item["metadata"]["resourceVersion"] for item in items}
        return found

    async def status_for(self, token: str) -> int:
        """How the server answers the holder of a token who wants to read here."""
        async with API(self.plane.url, token, self.site.ssl_context()) as api:
            return (await api.ask("GET", CONFIGMAPS.path(self.namespace))).status

    async def create(self, resource: Resource, name: str) -> None:
        await self.api.do("POST", resource.path(self.namespace), MAKE[resource](name))

    async def mark(self, name: str) -> None:
        """An object of this name in each collection."""
        await asyncio.gather(*(self.create(resource, name) for resource in MAKE))

    async def write(self) -> None:
        """Create, change and delete objects of all collections; what cannot be done just now is left."""
        while True:
            for resource in MAKE:
                with suppress(*UNREACHABLE):
                    async with asyncio.timeout(2.0):
                        await self._change(resource)
                await asyncio.sleep(PAUSE)

    async def change_much(self, rounds: int = 20) -> None:
        """So many changes of each collection, at once."""
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
        """A kubeconfig for this URL, with the token that the token file has."""
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
        """Our informers."""
        (found,) = (subject for subject in self.subjects if isinstance(subject, Ours))
        return found


@asynccontextmanager
async def world(site: Site, folder: Path) -> AsyncIterator[World]:
    """A namespace with some objects of each collection; nobody reads yet."""
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
async def reading(made: World, *, proxied: bool, with_client_go: bool) -> AsyncIterator[None]:
    """The subjects run and have all that the server has."""
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
async def writing(made: World) -> AsyncIterator[None]:
    """The writer is at work."""
    task = asyncio.create_task(made.write())
    try:
        yield
    finally:
        await finish(task)
        if not task.cancelled():
            task.result()
