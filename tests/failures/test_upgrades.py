"""Three upgrades by rolling update, while a user creates and changes Websites: nothing is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aioinformer import ApiError, NotFoundError, Resource
from aioinformer.testing import eventually
from tests.e2e.conftest import REAL

from .installed import REPLICAS, Installed
from .releases import first, fourth, second, third

pytestmark = [*REAL, pytest.mark.timeout(300)]

SITES = 20
EVERY = 0.2
"""Seconds between writes."""


class User:
    """Creates and changes Websites of v1, and remembers what the server has accepted.

    Attributes:
        accepted: The text of each Website.
        refused: The errors of writes that the server did not accept.
    """

    def __init__(self, release: Installed) -> None:
        self.sites = Resource(release.client, "example.com/v1", "websites", dict, kind="Website")
        self._namespace = release.namespace
        self.accepted: dict[str, str] = {}
        self.refused: list[str] = []

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write until the block ends."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._write_on())
            yield
            task.cancel()

    async def _write_on(self) -> None:
        number = 0
        while True:
            number += 1
            name, html = f"site-{number % SITES}", f"text {number}"
            try:
                if name in self.accepted:
                    await self.sites.patch(f"{self._namespace}/{name}", {"spec": {"html": html}})
                else:
                    spec = {"host": f"{name}.example.com", "html": html}
                    metadata = {"name": name, "namespace": self._namespace}
                    await self.sites.create({"metadata": metadata, "spec": spec})
            except ApiError as error:
                self.refused.append(str(error))
            else:
                self.accepted[name] = html
            await asyncio.sleep(EVERY)


async def test_nothing_is_lost_in_three_upgrades(release: Installed) -> None:
    target = "tests.failures.releases.{}:operator"
    await release.install(first.operator, target.format("first"))
    for _ in range(REPLICAS):
        await release.start_pod()
    await release.until_created("home")
    user = User(release)
    async with user.writing():
        for version, newer_release in enumerate((second, third, fourth), start=2):
            name = newer_release.__name__.rpartition(".")[2]
            await release.install(newer_release.operator, target.format(name), version=version)
            await release.roll()
            await release.find_leader()
        await asyncio.sleep(5)
    maps = Resource(release.client, "configmaps", dict)
    newer = Resource(release.client, fourth.WebsiteV2)

    async def is_published() -> bool:
        try:
            for name, html in user.accepted.items():
                published = await maps.get(f"{release.namespace}/{name}")
                if published["data"] != {"index.html": html, "plan": "free"}:
                    return False
        except NotFoundError:
            return False
        return True

    await eventually(is_published, within=60)
    for name, html in user.accepted.items():
        key = f"{release.namespace}/{name}"
        assert (await user.sites.get(key))["spec"] == {
            "host": f"{name}.example.com",
            "html": html,
            "plan": "free",
        }
        assert (await newer.get(key)).spec.tier == "free"
        await newer.wait_for(key, "condition=Ready", timeout=60)
    assert release.dns.records == {"home.example.com", *(f"{name}.example.com" for name in user.accepted)}
    assert len(user.accepted) == SITES
    assert user.refused == []
    definition = json.loads(await release.plane.kubectl("get", "crd", "websites.example.com", "-o=json"))
    assert definition["status"]["storedVersions"] == ["v1"]
