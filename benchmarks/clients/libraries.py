"""Python's other clients, each with a list, a watch and a dict, as its users write them."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from .peer import Handler, Options, Peer

PAGE = 500


class KubernetesAsyncio(Peer):
    """kubernetes_asyncio: pages of a list, then its Watch, both with models."""

    version = f"kubernetes_asyncio {version('kubernetes_asyncio')}"
    shape = "model"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", initial="list", informers=1)
        self._pods: dict[tuple[str, str], Any] = {}

    async def open(self) -> None:
        from kubernetes_asyncio import client, watch

        self._configuration = client.Configuration(host=self.options.server)
        self._configuration.ssl_ca_cert = self.options.ca or None
        self._api = client.ApiClient(self._configuration)
        self._core: Any = client.CoreV1Api(self._api)
        self._watch = watch.Watch
        await client.VersionApi(self._api).get_code()

    async def sync(self) -> None:
        token = None
        while True:
            page = await self._core.list_pod_for_all_namespaces(limit=PAGE, _continue=token)
            for pod in page.items:
                self._keep(pod)
            token = page.metadata._continue
            if not token:
                break
        self.spawn(self._follow(page.metadata.resource_version))

    async def _follow(self, resource_version: str) -> None:
        async with self._watch() as watch:
            events = watch.stream(self._core.list_pod_for_all_namespaces, resource_version=resource_version)
            async for event in events:
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._keep(event["object"])

    def _keep(self, pod: Any) -> None:
        self._pods[pod.metadata.namespace, pod.metadata.name] = pod
        self.notify(pod)

    async def close(self) -> None:
        await self._api.close()


class Official(Peer):
    """The informer of the ``kubernetes`` package, in its thread."""

    version = f"kubernetes {version('kubernetes')}"
    shape = "model"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", initial="list", informers=1)

    async def open(self) -> None:
        from kubernetes import client, informer

        shared_informer: Any = informer.SharedInformer
        configuration = client.Configuration(host=self.options.server)
        configuration.ssl_ca_cert = self.options.ca or None
        api = client.ApiClient(configuration)
        await asyncio.to_thread(client.VersionApi(api).get_code)
        self._informer = shared_informer(client.CoreV1Api(api).list_pod_for_all_namespaces)
        for handler in self.handlers:
            self._informer.add_event_handler("ADDED", handler)
            self._informer.add_event_handler("MODIFIED", handler)

    async def sync(self) -> None:
        self._informer.start()

    async def close(self) -> None:
        """Do nothing: its thread is a daemon, and stopping it waits for an event."""


class Lightkube(Peer):
    """lightkube: its list and its watch, with its structs."""

    version = f"lightkube {version('lightkube')}"
    shape = "camel"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", initial="list", informers=1)
        self._pods: dict[tuple[str, str], Any] = {}

    async def open(self) -> None:
        import httpx2
        from lightkube.config.kubeconfig import KubeConfig
        from lightkube.config.models import Cluster, User
        from lightkube.core.async_client import AsyncClient
        from lightkube.resources.core_v1 import Pod

        cluster = Cluster(server=self.options.server, certificate_auth=self.options.ca or None)
        self._client = AsyncClient(config=KubeConfig.from_one(cluster=cluster, user=User()), trust_env=False)
        self._pod = Pod
        async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
            await client.get(f"{self.options.server}/version")

    async def sync(self) -> None:
        pods = self._client.list(self._pod, namespace="*", chunk_size=PAGE)
        async for pod in pods:
            self._keep(pod)
        self.spawn(self._follow(pods.resourceVersion))

    async def _follow(self, resource_version: str) -> None:
        events = self._client.watch(self._pod, namespace="*", resource_version=resource_version)
        async for kind, pod in events:
            if kind in ("ADDED", "MODIFIED"):
                self._keep(pod)

    def _keep(self, pod: Any) -> None:
        self._pods[pod.metadata.namespace, pod.metadata.name] = pod
        self.notify(pod)

    async def close(self) -> None:
        await self._client.close()


class Kopf(Peer):
    """kopf's watching only: the events for its queues, without its queues, tasks and handlers."""

    version = f"kopf {version('kopf')}"
    shape = "dict"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", informers=1)
        self._pods: dict[tuple[str, str], Any] = {}

    async def open(self) -> None:
        import kopf
        from kopf._cogs.clients import auth, watching
        from kopf._cogs.structs import credentials, references

        self._settings: Any = kopf.OperatorSettings()
        self._settings.watching.initial_streaming = self.options.initial == "watchlist"
        self._settings.watching.chunk_size = PAGE
        vault = credentials.Vault()
        info = credentials.ConnectionInfo(server=self.options.server, ca_path=self.options.ca or None)
        await vault.populate({credentials.VaultKey("benchmark"): info})
        auth.vault_var.set(vault)
        self._resource = references.Resource(
            group="",
            version="v1",
            plural="pods",
            kind="Pod",
            namespaced=True,
            verbs=frozenset({"list", "watch"}),
        )
        self._watching = watching
        self._listed = asyncio.Event()

    async def sync(self) -> None:
        self.spawn(self._follow())
        await asyncio.wait(
            [asyncio.ensure_future(self._listed.wait()), *self.tasks], return_when=asyncio.FIRST_COMPLETED
        )

    async def _follow(self) -> None:
        events = self._watching.infinite_watch(
            settings=self._settings, resource=self._resource, namespace=None
        )
        async for event in events:
            if event is self._watching.Bookmark.LISTED:
                self._listed.set()
            elif event["type"] in (None, "ADDED", "MODIFIED"):
                pod = event["object"]
                metadata = pod["metadata"]
                self._pods[metadata["namespace"], metadata["name"]] = pod
                self.notify(pod)
