"""Both versions of the operator, side by side: ``make migrations NAMES=kopf``."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from ..worlds import World
from .platform import Platform
from .story import Story
from .trial import Trial
from .versions import VERSIONS, Version

Enter = Callable[[Path, str], AbstractAsyncContextManager[World]]


async def compare(enter: Enter) -> list[list[str]]:
    """Run the story and the trial of both versions, each on servers of its own.

    Args:
        enter: Makes a world in a folder.

    Returns:
        The rows of a table, with its header.
    """
    outcomes = await asyncio.gather(*(_run(version, enter) for version in VERSIONS.values()))
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome))
    rows = [[name, *(outcome.get(name, "") for outcome in outcomes)] for name in names]
    return [["", *VERSIONS], *rows]


async def _run(make: type[Version], enter: Enter) -> dict[str, str]:
    results: dict[str, str] = {}

    async def play(story: Story, version: Version, world: World) -> None:
        began = time.monotonic()
        await story.play(version)
        results["story"] = f"{time.monotonic() - began:.1f} s"
        if (requests := world.requests()) is not None:
            results["requests in the story"] = str(requests)

    async def attempt(story: Story, version: Version, world: World) -> None:
        await story.prepare()
        trial = Trial(story, version, world)
        await trial.run()
        results.update(trial.results)

    for part in (play, attempt):
        with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
            async with (
                enter(Path(folder), "configmaps") as world,
                Platform() as platform,
                world.client() as user,
            ):
                version = make(world, platform, Path(folder))
                await version.install(user)
                await part(Story(user, platform, world.namespace, patience=60.0), version, world)
                print(f"{make.name} on {world.name}: {results}", file=sys.stderr, flush=True)  # noqa: T201
    return results
