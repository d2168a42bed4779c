"""The life of some Databases, the same for both versions of the operator."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from aioinformer import ApiError, Client, NotFoundError, Resource
from aioinformer.testing import eventually

from .platform import Platform
from .versions import Version

Object = dict[str, Any]
CHILDREN = ("secrets", "persistentvolumeclaims", "services", "deployments", "cronjobs")
ROTATED = "databases.example.com/rotated-at"


class Story:
    """What users do with Databases, and what an operator has to make of it.

    Args:
        client: The users'.
        platform: What the operator calls.
        namespace: Where the Databases are. It is empty.
        patience: Seconds that the operator may take for a step.
    """

    def __init__(self, client: Client, platform: Platform, namespace: str, patience: float = 30.0) -> None:
        self._platform = platform
        self._namespace = namespace
        self._patience = patience
        self.databases = Resource(client, "example.com/v1", "databases", dict, kind="Database")
        self.classes = Resource(
            client, "example.com/v1", "databaseclasses", dict, kind="DatabaseClass", namespaced=False
        )
        self.children = {plural: Resource(client, plural, dict) for plural in CHILDREN}
        self._storage_classes = Resource(client, "storageclasses", dict)
        self._events = Resource(client, "v1", "events", dict)
        self._validators = Resource(client, "validatingwebhookconfigurations", dict)

    async def play(self, version: Version) -> None:
        """Play the whole story, in which the operator is started again once."""
        await self.prepare()
        steps = (
            *(self.start, self.create, self.update, self.keep_off, self.grow, self.refuse),
            *(self.rotate, self.watch_health, self.follow_class),
        )
        await self._play(version, *steps)
        password = await self.change_while_away()
        await self._play(version, partial(self.catch_up, password), self.delete)

    async def hand_over(self, old: Version, new: Version, client: Client) -> None:
        """Another version takes over Databases that exist, with their passwords."""
        await self.prepare()
        await self._play(old, self.start, self.create)
        password, service = await self.password("orders"), await self.child("services", "orders")
        await new.install(client)
        await self._play(new, self.start, self.update, self.grow, self.watch_health)
        assert await self.password("orders") == password
        uid = (await self.child("services", "orders"))["metadata"]["uid"]
        assert uid == service["metadata"]["uid"]
        await self._play(new, self.delete)

    async def _play(self, version: Version, *steps: Callable[[], Awaitable[None]]) -> None:
        async with version.run() as program:
            try:
                for step in steps:
                    await step()
            except Exception as error:
                error.add_note("\n".join([f"{version.name} said:", *program.log]))
                raise

    async def prepare(self) -> None:
        """Create what administrators create."""
        provisioner = {"provisioner": "example.com/none", "allowVolumeExpansion": True}
        await self._storage_classes.create({"metadata": {"name": "fast"}, **provisioner})
        spec = {"image": "postgres", "version": "16", "storageClass": "fast", "maxStorage": 100}
        await self.classes.create({"metadata": {"name": "small"}, "spec": spec})

    async def start(self) -> None:
        """Wait until webhooks and indexes work."""
        await self.reach(self._refuses_unknown_class, "a webhook that refuses")

    async def create(self, name: str = "orders") -> None:
        """A Database gets the version of its class, what it owns, a bucket, and a status."""
        await self.add(name, backup="0 3 * * *")
        await self.reach(lambda: self.has_status(name, phase="Running", image="postgres:16"), "a status")
        await self.reach(lambda: self.key(name) in self._platform.buckets, "a bucket")
        database = await self.get(name)
        assert (database["spec"]["version"], database["spec"]["replicas"]) == ("16", 1)
        for plural in CHILDREN:
            await self.reach(partial(self.exists, plural, name), plural)
            child = await self.child(plural, name)
            (owner,) = child["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (database["metadata"]["uid"], True)
        assert len(base64.b64decode((await self.child("secrets", name))["data"]["password"])) == 32
        await self.reach(lambda: self._has_event("Created"), "an Event")
        await self.settle(name)

    async def update(self) -> None:
        """The Deployment follows the spec; without a schedule there is no CronJob."""
        await self.patch("orders", {"replicas": 2, "version": "17", "backup": None})
        await self.reach(lambda: self.is_deployed("orders", "postgres:17", 2), "a new Deployment")
        await self.reach(lambda: self._is_gone("cronjobs", "orders"), "no CronJob")
        await self.patch("orders", {"backup": "0 4 * * *"})
        await self.reach(lambda: self.exists("cronjobs", "orders"), "another CronJob")

    async def keep_off(self) -> None:
        """A CronJob that no Database owns stays, also if a Database without backups has its name."""
        container = {"name": "report", "image": "report"}
        pod = {"containers": [container], "restartPolicy": "Never"}
        job = {"schedule": "0 5 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
        metadata = {"name": "reports", "namespace": self._namespace}
        made = await self.children["cronjobs"].create({"metadata": metadata, "spec": job})
        await self.add("reports")
        await self.reach(lambda: self.has_status("reports", phase="Running"), "a status")
        await self.settle("reports")
        await self.patch("reports", {"version": "17"})
        await self.reach(lambda: self.is_deployed("reports", "postgres:17"), "a new Deployment")
        assert (await self.child("cronjobs", "reports"))["metadata"]["uid"] == made["metadata"]["uid"]
        await self.remove("reports")
        await self.reach(lambda: self.is_deleted("reports"), "the end of the Database")

    async def grow(self) -> None:
        """The claim grows with the Database; an Event has both sizes."""
        await self._bind("orders")
        await self.patch("orders", {"storage": 20})

        async def is_grown() -> bool:
            claim = await self.child("persistentvolumeclaims", "orders")
            return bool(claim["spec"]["resources"]["requests"]["storage"] == "20Gi")

        await self.reach(is_grown, "a larger claim")
        await self.reach(lambda: self.has_status("orders", storage=20), "a status")
        await self.reach(lambda: self._has_event("Grown", "from 10 to 20 GiB"), "an Event")

    async def refuse(self) -> None:
        """What the class or the schema does not allow is refused, with the field."""
        refused = {"storage": 5}, {"storage": 101}, {"className": "other"}, {"replicas": 6}
        for spec in refused:
            with pytest.raises(ApiError, match=rf"spec\.{next(iter(spec))}"):
                await self.patch("orders", spec)

    async def rotate(self) -> None:
        """The password changes in time, and the pods with it."""
        first = await self.password("orders")
        await self.patch("orders", {"rotateSeconds": 2})

        async def is_rotated() -> bool:
            secret = await self.child("secrets", "orders")
            rotated = secret["metadata"]["annotations"][ROTATED]
            template = (await self.child("deployments", "orders"))["spec"]["template"]
            return (
                await self.password("orders") != first
                and template["metadata"]["annotations"][ROTATED] == rotated
                and await self.has_status("orders", rotatedAt=rotated)
            )

        await self.reach(is_rotated, "a new password")
        await self.reach(lambda: self._has_event("Rotated"), "an Event")
        await self.patch("orders", {"rotateSeconds": 86400})
        await self.reach(is_rotated, "a password that stays")

    async def watch_health(self) -> None:
        """The status follows the health of the database."""
        await self.reach(lambda: self.has_status("orders", health="Healthy"), "health")
        self._platform.unhealthy.add(self.key("orders"))
        await self.reach(lambda: self.has_status("orders", health="Unhealthy"), "no health")
        await self.reach(lambda: self._has_event("Unhealthy"), "an Event")
        self._platform.unhealthy.clear()
        await self.reach(lambda: self.has_status("orders", health="Healthy"), "health again")

    async def follow_class(self) -> None:
        """A new image of the class reaches its Databases."""
        await self.create("stock")
        await self.classes.patch("small", {"spec": {"image": "pg"}})
        await self.reach(lambda: self.is_deployed("orders", "pg:17", 2), "the image of one")
        await self.reach(lambda: self.is_deployed("stock", "pg:16"), "the image of the other")
        await self.reach(lambda: self.has_status("stock", image="pg:16"), "its status")

    async def change_while_away(self) -> str:
        """While no operator runs, users change and delete. Return the password of a Database."""
        await self.classes.patch("small", {"spec": {"image": "postgresql"}})
        await self.remove("stock")
        await self.children["services"].delete(self.key("orders"))
        return await self.password("orders")

    async def catch_up(self, password: str) -> None:
        """An operator that starts again makes good what it missed, and no new password."""
        await self.reach(lambda: self.is_deployed("orders", "postgresql:17", 2), "the newest image")
        await self.reach(lambda: self.exists("services", "orders"), "another Service")
        await self.reach(lambda: self.is_deleted("stock"), "the end of the other Database")
        assert self._platform.buckets == {self.key("orders")}
        assert await self.password("orders") == password
        await self.start()

    async def delete(self) -> None:
        """A deleted Database stays until its bucket is removed, also if its class is gone."""
        self._platform.failures = 2
        await self.classes.delete("small")
        await self.remove("orders")
        await self.reach(lambda: self.is_deleted("orders"), "the end of the Database")
        assert (self._platform.failures, self._platform.buckets) == (0, set())
        await self.reach(lambda: self._has_event("ReleaseFailed"), "an Event of the failure")

    # What users see

    async def get(self, name: str) -> Object:
        return await self.databases.get(self.key(name))

    async def child(self, plural: str, name: str) -> Object:
        return await self.children[plural].get(self.key(name))

    async def password(self, name: str) -> str:
        return str((await self.child("secrets", name))["data"]["password"])

    async def add(self, name: str, **spec: Any) -> None:
        metadata = {"name": name, "namespace": self._namespace}
        wanted = {"className": "small", "storage": 10, **spec}
        await self.databases.create({"metadata": metadata, "spec": wanted})

    async def settle(self, name: str) -> None:
        """Wait until the operator writes a Database no more: kopf loses a change that comes before."""
        versions = [""]

        async def is_quiet() -> bool:
            versions.append((await self.get(name))["metadata"]["resourceVersion"])
            return versions[-1] == versions[-2]

        await eventually(is_quiet, within=self._patience, what=f"{name} settles", every=1.0)

    async def remove(self, name: str) -> None:
        await self.databases.delete(self.key(name))

    async def patch(self, name: str, spec: Object) -> None:
        await self.databases.patch(self.key(name), {"spec": spec})

    async def has_status(self, name: str, **fields: Any) -> bool:
        status = (await self.get(name)).get("status") or {}
        return fields.items() <= status.items()

    async def is_deployed(self, name: str, image: str, replicas: int = 1) -> bool:
        spec = (await self.child("deployments", name))["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        return bool((container["image"], spec["replicas"]) == (image, replicas))

    async def has_replicas(self, name: str, replicas: int) -> bool:
        return bool((await self.child("deployments", name))["spec"]["replicas"] == replicas)

    async def is_deleted(self, name: str) -> bool:
        try:
            await self.get(name)
        except NotFoundError:
            return True
        return False

    async def exists(self, plural: str, name: str) -> bool:
        try:
            return "deletionTimestamp" not in (await self.child(plural, name))["metadata"]
        except NotFoundError:
            return False

    async def _is_gone(self, plural: str, name: str) -> bool:
        return not await self.exists(plural, name)

    async def _has_event(self, reason: str, text: str = "") -> bool:
        events = await self._events.list(self._namespace)
        return any(event["reason"] == reason and text in event["message"] for event in events)

    async def _refuses_unknown_class(self) -> bool:
        if not await self._validators.list():
            return False  # kopf has not registered its webhooks
        try:
            await self.add("probe", className="none")
        except ApiError as error:
            return "no DatabaseClass none" in str(error)
        await self.remove("probe")
        return False

    async def _bind(self, name: str) -> None:
        """Bind the claim of a Database, as the controllers of Kubernetes do: only a bound one may grow."""
        claims, key = self.children["persistentvolumeclaims"], self.key(name)
        await claims.patch(key, {"spec": {"volumeName": f"volume-{name}"}})
        status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
        await claims.patch_status(key, {"status": status})

    def key(self, name: str) -> str:
        return f"{self._namespace}/{name}"

    async def reach(
        self, condition: Callable[[], Awaitable[object] | object], what: str, patience: float | None = None
    ) -> None:
        """Wait until a condition holds; an object that is missing means not yet."""
        await eventually(condition, within=patience or self._patience, what=what, every=0.1)
