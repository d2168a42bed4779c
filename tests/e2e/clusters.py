"""Two API servers behind one interface: the embedded one and the real one."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from aioinformer import Client, ListWatch
from aioinformer.testing import APIServer
from aioinformer.testing.faults import Fault
from tests.kubernetes.controlplane import ControlPlane

from .api import API, MERGE, NAMESPACES, Object, Resource
from .definitions import define


class Cluster(ABC):
    """An API server with a namespace of the test's own, and an administrator who changes things in it.

    Attributes:
        api: Asks as the administrator.
        kubeconfig: A file with the administrator's context.
        folder: For files of the test.
        namespace: The test's own.
        protobuf: Whether collections are read as that.
    """

    protobuf = False

    def __init__(self, api: API, kubeconfig: Path, folder: Path) -> None:
        self.api = api
        self.kubeconfig = kubeconfig
        self.folder = folder
        self.namespace = ""

    @property
    @abstractmethod
    def token(self) -> str:
        """The administrator's."""

    @abstractmethod
    async def forbid(self) -> Client:
        """Return a client of a user without permission to read the test namespace's configmaps."""

    @abstractmethod
    async def permit(self) -> None:
        """Give that user the permission."""

    @abstractmethod
    async def expire_history(self) -> None:
        """Expire every version issued so far for new requests."""

    # Clients

    def client(self) -> Client:
        """The administrator's client, not yet entered."""
        return Client.from_kubeconfig(path=self.kubeconfig)

    def client_with_token_file(self, token_file: Path) -> Client:
        """A client that shows the token that this file has."""
        config = json.loads(self.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"tokenFile": str(token_file)}
        return self._client_of(config)

    def client_through(self, url: str) -> Client:
        """The administrator's client, by another URL."""
        config = json.loads(self.kubeconfig.read_text())
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = url
        return self._client_of(config)

    def _client_of(self, config: Object) -> Client:
        path = self.folder / "kubeconfig-of-test"
        path.write_text(json.dumps(config))
        return Client.from_kubeconfig(path=path)

    def list_watch(
        self, client: Client, resource: Resource, namespace: str | None = None, **selectors: Any
    ) -> ListWatch:
        """A collection in a namespace; "" for all, None for the test's own."""
        where = self.namespace if namespace is None else namespace
        options = {"protobuf": self.protobuf, **selectors}
        return ListWatch.for_resource(
            client, resource.api_version, resource.plural, where if resource.namespaced else None, **options
        )

    # The administrator's verbs; without a namespace they are about the test's own

    async def new_namespace(self) -> str:
        created = await self.api.do("POST", NAMESPACES.path(), {"metadata": {"generateName": "test-"}})
        return str(created["metadata"]["name"])

    async def create(self, resource: Resource, obj: Object, namespace: str | None = None) -> Object:
        return await self.api.do("POST", resource.path(self._or_own(namespace)), obj)

    async def replace(self, resource: Resource, obj: Object, namespace: str | None = None) -> Object:
        path = resource.path(self._or_own(namespace), obj["metadata"]["name"])
        return await self.api.do("PUT", path, obj)

    async def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """A merge patch."""
        path = resource.path(self._or_own(namespace), name) + subresource
        return await self.api.do("PATCH", path, patch, content_type=MERGE)

    async def delete(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        return await self.api.do("DELETE", resource.path(self._or_own(namespace), name))

    async def list(self, resource: Resource, namespace: str | None = None, **query: str) -> dict[str, Object]:
        """The objects by key, as a GET of each would give them; namespace "" for all of them."""
        path = resource.path(self._or_own(namespace) or None)
        listed = await self.api.do("GET", path, query=query)
        type_meta = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
        return {key_of(item): type_meta | item for item in listed["items"]}

    async def define(self, definition: Object) -> None:
        """Create a CustomResourceDefinition where there is none, and wait until it is served."""
        await define(self.api, definition)

    def key(self, name: str) -> str:
        """The key of an object of the test's own namespace."""
        return f"{self.namespace}/{name}"

    def _or_own(self, namespace: str | None) -> str:
        return self.namespace if namespace is None else namespace


class EmbeddedCluster(Cluster):
    """The embedded server, in the test's own loop.

    Attributes:
        server: For faults, counts and all that a real server cannot do.
    """

    def __init__(self, server: APIServer, api: API, folder: Path) -> None:
        kubeconfig = folder / "kubeconfig"
        server.kubeconfig(kubeconfig)
        super().__init__(api, kubeconfig, folder)
        self.server = server
        self._forbidden: list[Fault] = []

    @property
    def token(self) -> str:
        assert self.server.token is not None
        return self.server.token

    async def forbid(self) -> Client:
        self._forbidden = [self.server.forbid(verb, "configmaps") for verb in ("list", "watch")]
        return self.client()

    async def permit(self) -> None:
        for rule in self._forbidden:
            rule.remove()

    async def expire_history(self) -> None:
        self.server.faults.expire_history()


class KubernetesCluster(Cluster):
    """The session's real server; a test that kills it must restart it."""

    def __init__(self, control_plane: ControlPlane, api: API, folder: Path) -> None:
        super().__init__(api, control_plane.kubeconfig, folder)
        self.control_plane = control_plane

    @property
    def token(self) -> str:
        return self.control_plane.token

    async def create(self, resource: Resource, obj: Object, namespace: str | None = None) -> Object:
        """As the others', and wait until the server's watch cache has it: a list of version 0 shows it then."""
        created = await super().create(resource, obj, namespace)
        version = created["metadata"]["resourceVersion"]
        seen = {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}  # a limit would ask etcd
        await self.api.do("GET", resource.path(self._or_own(namespace)), query=seen)
        return created

    async def forbid(self) -> Client:
        return Client.from_kubeconfig("powerless", self.kubeconfig)

    async def permit(self) -> None:
        rbac = "rbac.authorization.k8s.io"
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
        role = {"metadata": {"name": "reader"}, "rules": [rule]}
        binding = {
            "metadata": {"name": "reader"},
            "subjects": [{"kind": "User", "name": "powerless", "apiGroup": rbac}],
            "roleRef": {"kind": "Role", "name": "reader", "apiGroup": rbac},
        }
        await self.create(Resource(f"{rbac}/v1", "roles"), role)
        await self.create(Resource(f"{rbac}/v1", "rolebindings"), binding)

    async def expire_history(self) -> None:
        """By a new kube-apiserver, whose watch cache is empty."""
        await self.control_plane.compact()
        self.control_plane.kill()
        await self.control_plane.restart()


def key_of(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


def pod_manifest(name: str, *, node: str = "", labels: dict[str, str] | None = None) -> Object:
    spec: Object = {"containers": [{"name": "main", "image": "example.com/main"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}
