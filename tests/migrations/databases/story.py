"""The life of some Databases, the same for both versions of the operator."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from aioinformer import ApiError

from .platform import Platform
from .users import CHILDREN, Object, Users
from .versions import Version

ROTATED = "databases.example.com/rotated-at"


class Story:
    """What users do with Databases, and what an operator has to make of it.

    Args:
        users: Who do it, in an empty namespace.
        platform: What the operator calls.
    """

    def __init__(self, users: Users, platform: Platform) -> None:
        self._users = users
        self._platform = platform

    async def play(self, version: Version) -> None:
        """Play the whole story, in which the operator is started again once."""
        await self._users.prepare()
        steps = (
            *(self._users.start, self.create, self.update, self.keep_off, self.grow, self.refuse),
            *(self.rotate, self.watch_health, self.follow_class),
        )
        await self._play(version, *steps)
        password = await self.change_while_away()
        await self._play(version, partial(self.catch_up, password), self.delete)

    async def hand_over(self, old: Version, new: Version) -> None:
        """Another version takes over Databases that exist, with their passwords."""
        await self._users.prepare()
        await self._play(old, self._users.start, self.create)
        password, service = (
            await self._users.password("orders"),
            await self._users.child("services", "orders"),
        )
        await new.install(self._users.client)
        await self._play(new, self._users.start, self.update, self.grow, self.watch_health)
        assert await self._users.password("orders") == password
        uid = (await self._users.child("services", "orders"))["metadata"]["uid"]
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

    async def create(self, name: str = "orders") -> None:
        """A Database gets the version of its class, what it owns, a bucket, and a status."""
        await self._users.add(name, backup="0 3 * * *")
        await self._users.reach(
            lambda: self._users.has_status(name, phase="Running", image="postgres:16"), "a status"
        )
        await self._users.reach(lambda: self._users.key(name) in self._platform.buckets, "a bucket")
        database = await self._users.get(name)
        assert (database["spec"]["version"], database["spec"]["replicas"]) == ("16", 1)
        for plural in CHILDREN:
            await self._users.reach(partial(self._users.exists, plural, name), plural)
            child = await self._users.child(plural, name)
            (owner,) = child["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (database["metadata"]["uid"], True)
        assert len(base64.b64decode((await self._users.child("secrets", name))["data"]["password"])) == 32
        await self._users.reach(lambda: self._users.has_event("Created"), "an Event")

    async def update(self) -> None:
        """The Deployment follows the spec; without a schedule there is no CronJob."""
        await self._change("orders", {"replicas": 2, "version": "17", "backup": None})
        await self._users.reach(
            lambda: self._users.is_deployed("orders", "postgres:17", 2), "a new Deployment"
        )

        async def is_gone() -> bool:
            return not await self._users.exists("cronjobs", "orders")

        await self._users.reach(is_gone, "no CronJob")
        await self._change("orders", {"backup": "0 4 * * *"})
        await self._users.reach(lambda: self._users.exists("cronjobs", "orders"), "another CronJob")

    async def keep_off(self) -> None:
        """A CronJob that no Database owns stays, also if a Database without backups has its name."""
        container = {"name": "report", "image": "report"}
        pod = {"containers": [container], "restartPolicy": "Never"}
        job = {"schedule": "0 5 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
        metadata = {"name": "reports", "namespace": self._users.namespace}
        made = await self._users.children["cronjobs"].create({"metadata": metadata, "spec": job})
        await self._users.add("reports")
        await self._users.reach(lambda: self._users.has_status("reports", phase="Running"), "a status")
        await self._change("reports", {"version": "17"})
        await self._users.reach(lambda: self._users.is_deployed("reports", "postgres:17"), "a new Deployment")
        assert (await self._users.child("cronjobs", "reports"))["metadata"]["uid"] == made["metadata"]["uid"]
        await self._users.remove("reports")
        await self._users.reach(lambda: self._users.is_deleted("reports"), "the end of the Database")

    async def grow(self) -> None:
        """The claim grows with the Database; an Event has both sizes."""
        await self._users.bind("orders")
        await self._change("orders", {"storage": 20})

        async def is_grown() -> bool:
            claim = await self._users.child("persistentvolumeclaims", "orders")
            return bool(claim["spec"]["resources"]["requests"]["storage"] == "20Gi")

        await self._users.reach(is_grown, "a larger claim")
        await self._users.reach(lambda: self._users.has_status("orders", storage=20), "a status")
        await self._users.reach(lambda: self._users.has_event("Grown", "from 10 to 20 GiB"), "an Event")

    async def refuse(self) -> None:
        """What the class or the schema does not allow is refused, with the field."""
        refused = {"storage": 5}, {"storage": 101}, {"className": "other"}, {"replicas": 6}
        for spec in refused:
            with pytest.raises(ApiError, match=rf"spec\.{next(iter(spec))}"):
                await self._change("orders", spec)

    async def rotate(self) -> None:
        """The password changes in time, and the pods with it."""
        first = await self._users.password("orders")
        await self._change("orders", {"rotateSeconds": 2})

        async def is_rotated() -> bool:
            secret = await self._users.child("secrets", "orders")
            rotated = secret["metadata"]["annotations"][ROTATED]
            template = (await self._users.child("deployments", "orders"))["spec"]["template"]
            return (
                await self._users.password("orders") != first
                and template["metadata"]["annotations"][ROTATED] == rotated
                and await self._users.has_status("orders", rotatedAt=rotated)
            )

        await self._users.reach(is_rotated, "a new password")
        await self._users.reach(lambda: self._users.has_event("Rotated"), "an Event")
        await self._change("orders", {"rotateSeconds": 86400})
        await self._users.reach(is_rotated, "a password that stays")

    async def watch_health(self) -> None:
        """The status follows the health of the database."""
        await self._users.reach(lambda: self._users.has_status("orders", health="Healthy"), "health")
        self._platform.unhealthy.add(self._users.key("orders"))
        await self._users.reach(lambda: self._users.has_status("orders", health="Unhealthy"), "no health")
        await self._users.reach(lambda: self._users.has_event("Unhealthy"), "an Event")
        self._platform.unhealthy.clear()
        await self._users.reach(lambda: self._users.has_status("orders", health="Healthy"), "health again")

    async def follow_class(self) -> None:
        """A new image of the class reaches its Databases."""
        await self.create("stock")
        await self._users.classes.patch("small", {"spec": {"image": "pg"}})
        await self._users.reach(lambda: self._users.is_deployed("orders", "pg:17", 2), "the image of one")
        await self._users.reach(lambda: self._users.is_deployed("stock", "pg:16"), "the image of the other")
        await self._users.reach(lambda: self._users.has_status("stock", image="pg:16"), "its status")

    async def change_while_away(self) -> str:
        """While no operator runs, users change and delete. Return the password of a Database."""
        await self._users.classes.patch("small", {"spec": {"image": "postgresql"}})
        await self._users.remove("stock")
        await self._users.children["services"].delete(self._users.key("orders"))
        return await self._users.password("orders")

    async def catch_up(self, password: str) -> None:
        """An operator that starts again makes good what it missed, and no new password."""
        await self._users.reach(
            lambda: self._users.is_deployed("orders", "postgresql:17", 2), "the newest image"
        )
        await self._users.reach(lambda: self._users.exists("services", "orders"), "another Service")
        await self._users.reach(lambda: self._users.is_deleted("stock"), "the end of the other Database")
        assert self._platform.buckets == {self._users.key("orders")}
        assert await self._users.password("orders") == password
        await self._users.start()

    async def delete(self) -> None:
        """A deleted Database stays until its bucket is removed, also if its class is gone."""
        self._platform.failures = 2
        await self._users.classes.delete("small")
        await self._users.remove("orders")
        await self._users.reach(lambda: self._users.is_deleted("orders"), "the end of the Database")
        assert (self._platform.failures, self._platform.buckets) == (0, set())
        await self._users.reach(lambda: self._users.has_event("ReleaseFailed"), "an Event of the failure")

    async def _change(self, name: str, spec: Object) -> None:
        """Change a Database that the operator writes no more: kopf loses a change that comes before."""
        await self._users.settle(name)
        await self._users.patch(name, spec)
