"""The operator that was ported from kopf, as a process on the embedded API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer.operator import Right
from aioinformer.testing import assert_rbac_covers
from examples.migrations.kopf.after import operator

from ..worlds import EmbeddedWorld, embedded_world
from .platform import Platform
from .story import Story
from .users import Users
from .versions import AioInformer


@pytest.mark.timeout(240)
async def test_the_story_of_databases(tmp_path: Path) -> None:
    async with (
        embedded_world(tmp_path) as world,
        Platform() as platform,
        world.client() as client,
    ):
        version = AioInformer(world, platform, tmp_path)
        await version.install(client)
        await Story(Users(client, world.namespace, patience=60.0), platform).play(version)
        assert isinstance(world, EmbeddedWorld)
        definitions = Right(
            "apiextensions.k8s.io", "customresourcedefinitions", False, ("get",)
        )  # it is tried
        rights = [*operator.rights(leader_election=False), definitions]
        assert_rbac_covers(world.server, rights, user="subject")
