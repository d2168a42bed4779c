"""Both versions of the operator, side by side: ``make migrations NAMES=kopf``."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from ..worlds import World
from .platform import Platform
from .story import Story
from .trial import Trial, report
from .users import Users
from .versions import VERSIONS, AioInformer, Kopf, Version

Enter = Callable[[Path], AbstractAsyncContextManager[World]]


class Stage(NamedTuple):
    """A server for one story."""

    world: World
    platform: Platform
    users: Users
    story: Story
    folder: Path

    async def install(self, make: type[Version]) -> Version:
        """Install a version of the operator."""
        version = make(self.world, self.platform, self.folder)
        await version.install(self.users.client)
        return version


async def compare(enter: Enter) -> list[list[str]]:
    """Have aioinformer's version take over from kopf's; then run the story and the trial of both.

    Args:
        enter: Makes a world in a folder.

    Returns:
        The rows of a table, with its header.
    """
    async with _stage(enter) as stage:
        old = await stage.install(Kopf)
        new = AioInformer(stage.world, stage.platform, stage.folder)
        await stage.story.hand_over(old, new)
        report(f"taken over on {stage.world.name}")
    outcomes = await asyncio.gather(*(_run(version, enter) for version in VERSIONS))
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome))
    rows = [[name, *(outcome.get(name, "") for outcome in outcomes)] for name in names]
    return [["", *(version.name for version in VERSIONS)], *rows]


async def _run(make: type[Version], enter: Enter) -> dict[str, str]:
    results: dict[str, str] = {}
    async with _stage(enter) as stage:
        began = time.monotonic()
        await stage.story.play(await stage.install(make))
        results["story"] = f"{time.monotonic() - began:.1f} s"
        results["requests in the story"] = str(stage.world.requests().total())
    async with _stage(enter) as stage:
        version = await stage.install(make)
        await stage.users.prepare()
        trial = Trial(stage.users, version, stage.world)
        await trial.run()
    report(f"{make.name} on {stage.world.name} has ended")
    return results | trial.results


@asynccontextmanager
async def _stage(enter: Enter) -> AsyncIterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as name:
        folder = Path(name)
        async with enter(folder) as world, Platform() as platform, world.client() as client:
            users = Users(client, world.namespace, patience=60.0)
            yield Stage(world, platform, users, Story(users, platform), folder)
