"""The chart of a project that ``aioinformer init --helm`` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer.cli.new_project import NewProject
from tests.init.projects import make

from .charts import Helm

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])


@pytest.mark.parametrize("webhooks", [False, True], ids=["none", "webhooks"])
@pytest.mark.parametrize("pydantic", [False, True], ids=["structs", "pydantic"])
async def test_the_chart_of_a_new_project_passes_lint(
    helm: Helm, tmp_path: Path, webhooks: bool, pydantic: bool
) -> None:
    project = tmp_path / "websites"
    NewProject(name="websites", helm=True, webhooks=webhooks, pydantic=pydantic).write(project)
    await make(project, "chart", "IMAGE=ghcr.io/example/websites:1.2.3")
    assert "0 chart(s) failed" in await helm.run("lint", "--strict", project / "chart")
    packaged = await helm.run("package", project / "chart", "--destination", tmp_path)
    assert "websites-1.2.3.tgz" in packaged
    kinds = {obj["kind"] for obj in await helm.render("websites", project / "chart")}
    assert ("ValidatingWebhookConfiguration" in kinds) is webhooks
