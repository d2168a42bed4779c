"""What users notice of an operator beside its story: troubles, changes by hand, requests."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from aioinformer import ApiError

from ..subjects import Subject
from ..worlds import World
from .users import Users
from .versions import Version

DATABASES = 10
PATIENCE = 360.0
"""Seconds after which an operator has not recovered."""
HAND = 20.0
"""Seconds after which a change by hand counts as not corrected."""
QUIET = 20.0
"""Seconds without a change, in which requests are counted."""
SETTLING = 10.0
"""Seconds until Events and the like are written."""
OUTAGE, LONG_OUTAGE = 5.0, 60.0


class Trial:
    """One operator with ten Databases; ``results`` has a text for each thing that was tried.

    Args:
        users: Its users; what administrators create exists.
        version: The operator, which is installed and does not run.
        world: Where it works.
    """

    def __init__(self, users: Users, version: Version, world: World) -> None:
        self._users = users
        self._version = version
        self._world = world
        self.results: dict[str, str] = {}

    async def run(self) -> None:
        """Try everything."""
        async with self._version.run() as program:
            await self._users.start()
            await self._create_many(program)
            await self._stay_quiet(program)
            await self._change_early()
            await self._change_by_hand()
            await self._recover("watch cut", self._cut)
            await self._recover("5 s outage, change, deletion", self._outage)
            await self._recover("version expired (410)", self._expire)
            await self._recover("half-open connection", self._lose)
            await self._recover("60 s outage, change, deletion", self._long_outage)
            self.results["CPU in all"] = f"{program.cpu():.1f} s"
            self.results["memory"] = f"{program.memory:.0f} MiB"
        await self._be_away()

    def _requests(self) -> int:
        return self._world.requests().total()

    async def _create_many(self, program: Subject) -> None:
        requests, cpu, began = self._requests(), program.cpu(), time.monotonic()
        names = [f"db-{number}" for number in range(DATABASES)]
        await asyncio.gather(*(self._users.add(name, backup="0 3 * * *") for name in names))
        for name in names:
            await self._users.reach(partial(self._is_settled, name), f"{name} is running")
        self.results["ten Databases created"] = f"{time.monotonic() - began:.1f} s"
        self.results["CPU for that"] = f"{program.cpu() - cpu:.1f} s"
        self.results["requests for that"] = str(self._requests() - requests)

    async def _is_settled(self, name: str) -> bool:
        return await self._users.has_status(name, phase="Running", health="Healthy", storage=10)

    async def _stay_quiet(self, program: Subject) -> None:
        await asyncio.sleep(SETTLING)
        annotations = (await self._users.get("db-0"))["metadata"].get("annotations", {})
        self.results["its annotations on a Database"] = ", ".join(sorted(annotations)) or "none"
        requests, cpu = self._requests(), program.cpu()
        await asyncio.sleep(QUIET)
        self.results[f"requests in {QUIET:.0f} s without a change"] = str(self._requests() - requests)
        self.results[f"CPU in {QUIET:.0f} s without a change"] = f"{program.cpu() - cpu:.2f} s"

    async def _change_early(self) -> None:
        """Change Databases as soon as their Deployments exist, while an operator may still handle the creation."""
        names = [f"early-{number}" for number in range(DATABASES)]

        async def change(name: str) -> bool:
            await self._users.add(name)
            await self._users.reach(lambda: self._users.exists("deployments", name), "a Deployment")
            await self._users.patch(name, {"replicas": 3})
            with suppress(AssertionError):
                await self._users.reach(lambda: self._users.has_replicas(name, 3), "three replicas", HAND)
            return await self._users.has_replicas(name, 3)

        wrong = [await change(name) for name in names].count(False)
        self.results["changes right after the creation that had no effect"] = f"{wrong} of {len(names)}"
        for name in names:
            await self._users.remove(name)

    async def _change_by_hand(self) -> None:
        services = self._users.children["services"]
        key = self._users.key("db-0")
        selector = (await services.get(key))["spec"]["selector"]
        await services.delete(key)
        self.results["a deleted child"] = await self._measure(
            lambda: self._users.exists("services", "db-0"), HAND
        )
        if not await self._users.exists("services", "db-0"):
            key = self._users.key("db-1")
            selector = (await services.get(key))["spec"]["selector"]
        await services.patch(key, {"spec": {"selector": {"changed": "by-hand"}}})

        async def is_corrected() -> bool:
            return bool((await services.get(key))["spec"]["selector"] == selector)

        self.results["a child edited by hand"] = await self._measure(is_corrected, HAND)

    async def _recover(self, trouble: str, cause: Callable[[str], Awaitable[None]]) -> None:
        """Cause a trouble, in which a Database may be deleted, and wait until another one has three replicas."""
        number = len(self.results)
        victim = f"victim-{number}"
        await self._users.add(victim)
        await self._users.reach(lambda: self._is_settled(victim), f"{victim} is running")
        await self._users.patch("db-2", {"replicas": 1})
        with suppress(AssertionError):
            await self._users.reach(lambda: self._users.has_replicas("db-2", 1), "one replica", 10.0)
        await cause(victim)

        async def is_right() -> bool:
            return await self._users.has_replicas("db-2", 3) and await self._users.is_deleted(victim)

        self.results[trouble] = await self._measure(is_right)
        report(f"{self._version.name} on {self._world.name}: {trouble}: {self.results[trouble]}")

    async def _change(self, victim: str) -> None:
        await self._users.patch("db-2", {"replicas": 3})
        await self._users.remove(victim)

    async def _cut(self, victim: str) -> None:
        await self._world.proxy.cut()
        await self._change(victim)

    async def _lose(self, victim: str) -> None:
        self._world.proxy.lose()
        await self._change(victim)

    async def _expire(self, victim: str) -> None:
        async with self._world.outage():
            await self._change(victim)
            await self._world.expire()

    async def _outage(self, victim: str, seconds: float = OUTAGE) -> None:
        async with self._world.outage():
            await self._change(victim)
            await asyncio.sleep(seconds)

    async def _long_outage(self, victim: str) -> None:
        await self._outage(victim, LONG_OUTAGE)

    async def _be_away(self) -> None:
        """Try to store a Database that the operator would refuse, while it does not run."""
        try:
            await self._users.add("invalid", storage=1000)
        except ApiError:
            self.results["an invalid Database while it does not run"] = "refused"
        else:
            self.results["an invalid Database while it does not run"] = "accepted"

    async def _measure(self, condition: Callable[[], Awaitable[bool]], patience: float = PATIENCE) -> str:
        began = time.monotonic()
        try:
            await self._users.reach(condition, "the right state", patience)
        except AssertionError:
            return f"wrong after {patience:.0f} s"
        return f"{time.monotonic() - began:.1f} s"


def report(line: str) -> None:
    """Print the progress."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201
