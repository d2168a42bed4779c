"""What users do with Databases, and what they see of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aioinformer import ApiError, Client, NotFoundError, Resource
from aioinformer.testing import eventually

Object = dict[str, Any]
CHILDREN = ("secrets", "persistentvolumeclaims", "services", "deployments", "cronjobs")


class Users:
    """Users and administrators of Databases.

    Args:
        client: Theirs.
        namespace: Where the Databases are.
        patience: Seconds that an operator may take.
    """

    def __init__(self, client: Client, namespace: str, patience: float = 30.0) -> None:
        self.client = client
        self.namespace = namespace
        self._patience = patience
        self._databases = Resource(client, "example.com/v1", "databases", dict, kind="Database")
        self.classes = Resource(
            client, "example.com/v1", "databaseclasses", dict, kind="DatabaseClass", namespaced=False
        )
        self.children = {plural: Resource(client, plural, dict) for plural in CHILDREN}
        self._storage_classes = Resource(client, "storageclasses", dict)
        self._events = Resource(client, "v1", "events", dict)
        self._validators = Resource(client, "validatingwebhookconfigurations", dict)

    def key(self, name: str) -> str:
        return f"{self.namespace}/{name}"

    async def prepare(self) -> None:
        """Create what administrators create."""
        provisioner = {"provisioner": "example.com/none", "allowVolumeExpansion": True}
        await self._storage_classes.create({"metadata": {"name": "fast"}, **provisioner})
        spec = {"image": "postgres", "version": "16", "storageClass": "fast", "maxStorage": 100}
        await self.classes.create({"metadata": {"name": "small"}, "spec": spec})

    async def start(self) -> None:
        """Wait until webhooks and indexes work."""
        await self.reach(self._refuses_unknown_class, "a webhook that refuses")

    async def _refuses_unknown_class(self) -> bool:
        if not await self._validators.list():
            return False  # kopf has not registered its webhooks
        try:
            await self.add("probe", className="none")
        except ApiError as error:
            return "no DatabaseClass none" in str(error)
        await self.remove("probe")
        return False

    async def add(self, name: str, **spec: Any) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        wanted = {"className": "small", "storage": 10, **spec}
        await self._databases.create({"metadata": metadata, "spec": wanted})

    async def patch(self, name: str, spec: Object) -> None:
        await self._databases.patch(self.key(name), {"spec": spec})

    async def remove(self, name: str) -> None:
        await self._databases.delete(self.key(name))

    async def get(self, name: str) -> Object:
        return await self._databases.get(self.key(name))

    async def child(self, plural: str, name: str) -> Object:
        return await self.children[plural].get(self.key(name))

    async def password(self, name: str) -> str:
        return str((await self.child("secrets", name))["data"]["password"])

    async def exists(self, plural: str, name: str) -> bool:
        try:
            return "deletionTimestamp" not in (await self.child(plural, name))["metadata"]
        except NotFoundError:
            return False

    async def is_deleted(self, name: str) -> bool:
        try:
            await self.get(name)
        except NotFoundError:
            return True
        return False

    async def has_status(self, name: str, **fields: Any) -> bool:
        status = (await self.get(name)).get("status") or {}
        return fields.items() <= status.items()

    async def is_deployed(self, name: str, image: str, replicas: int = 1) -> bool:
        spec = (await self.child("deployments", name))["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        return bool((container["image"], spec["replicas"]) == (image, replicas))

    async def has_replicas(self, name: str, replicas: int) -> bool:
        return bool((await self.child("deployments", name))["spec"]["replicas"] == replicas)

    async def has_event(self, reason: str, text: str = "") -> bool:
        events = await self._events.list(self.namespace)
        return any(event["reason"] == reason and text in event["message"] for event in events)

    async def settle(self, name: str) -> None:
        """Wait until an operator writes a Database no more."""
        versions = [""]

        async def is_quiet() -> bool:
            versions.append((await self.get(name))["metadata"]["resourceVersion"])
            return versions[-1] == versions[-2]

        await eventually(is_quiet, within=self._patience, what=f"{name} settles", every=0.5)

    async def bind(self, name: str) -> None:
        """Bind the claim of a Database, as the controllers of Kubernetes do: only a bound one may grow."""
        claims, key = self.children["persistentvolumeclaims"], self.key(name)
        await claims.patch(key, {"spec": {"volumeName": f"volume-{name}"}})
        status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
        await claims.patch_status(key, {"status": status})

    async def reach(
        self, condition: Callable[[], Awaitable[object] | object], what: str, patience: float | None = None
    ) -> None:
        """Wait until a condition holds; an object that is missing means not yet."""
        await eventually(condition, within=patience or self._patience, what=what, every=0.1)
