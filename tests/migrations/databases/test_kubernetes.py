"""The operator that was ported from kopf, as a process on the real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import REAL

from ..worlds import real_world
from .platform import Platform
from .story import Story
from .users import Users
from .versions import AioInformer

pytestmark = [*REAL, pytest.mark.timeout(300)]


async def test_the_story_of_databases(kubernetes_binaries: Path, tmp_path: Path) -> None:
    async with real_world(tmp_path) as world, Platform() as platform, world.client() as client:
        version = AioInformer(world, platform, tmp_path)
        await version.install(client)
        await Story(Users(client, world.namespace, patience=60.0), platform).play(version)
