"""The checks of a new project pass, whatever its options."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from aioinformer.cli.new_project import NewProject
from tests.kubernetes.controlplane import ControlPlane

from .projects import make, run_to_end

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # the programs have event loops of their own

OPTIONS = ("webhooks", "helm", "pydantic")
COMBINATIONS = [names for size in range(len(OPTIONS) + 1) for names in combinations(OPTIONS, size)]
every_combination = pytest.mark.parametrize(
    "options", COMBINATIONS, ids=["-".join(names) or "none" for names in COMBINATIONS]
)


def write_project(
    folder: Path, *options: str, name: str = "websites", kind: str = "", group: str = "example.com"
) -> Path:
    project = NewProject(
        name=name,
        kind=kind,
        group=group,
        webhooks="webhooks" in options,
        helm="helm" in options,
        pydantic="pydantic" in options,
    )
    project.write(folder)
    return folder


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder that the projects share, because they import the same packages."""
    return str(tmp_path_factory.mktemp("mypy"))


@every_combination
async def test_lint_passes(options: tuple[str, ...], tmp_path: Path, mypy_cache: str) -> None:
    project = write_project(tmp_path / "websites", *options)
    done = await make(project, "lint", MYPY_CACHE_DIR=mypy_cache)
    assert "Success: no issues found" in done.output


@pytest.mark.parametrize("length", [2, 25, 40, 55])
@pytest.mark.parametrize("options", [(), OPTIONS], ids=["none", "all"])
async def test_code_is_formatted_whatever_the_length_of_the_name(
    options: tuple[str, ...], length: int, tmp_path: Path
) -> None:
    project = write_project(tmp_path / "project", *options, name="w" * (length - 1) + "x")
    for command in (("check",), ("format", "--check")):
        done = await run_to_end(project, sys.executable, "-m", "ruff", *command, ".")
        assert done.code == 0, done.output


@every_combination
async def test_its_tests_pass_and_it_makes_manifests(options: tuple[str, ...], tmp_path: Path) -> None:
    arguments = ("-m", "aioinformer", "init", "websites", *(f"--{option}" for option in options))
    done = await run_to_end(tmp_path, sys.executable, *arguments)
    assert (done.code, done.errors) == (0, "")
    assert done.output.startswith("websites/ has an operator of the kind Website (example.com/v1). Next:\n")
    project = tmp_path / "websites"
    targets = ("manifests", "dist", *(["chart"] if "helm" in options else []))
    done = await make(project, "test", *targets, "IMAGE=registry/websites:1.2.3")
    assert f"{7 if 'webhooks' in options else 4} passed" in done.output
    (deployment,) = yaml.safe_load_all((project / "manifests" / "deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/websites:1.2.3"
    assert container["args"][:2] == ["run", "websites.main:operator"]
    kinds = {obj["kind"] for obj in yaml.safe_load_all((project / "dist" / "install.yaml").read_text())}
    assert kinds >= {"Namespace", "CustomResourceDefinition", "Deployment"}
    assert ("ValidatingWebhookConfiguration" in kinds) is ("webhooks" in options)
    assert (project / "chart" / "Chart.yaml").exists() is ("helm" in options)


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_its_tests_pass_on_the_real_server(tmp_path: Path, control_plane: ControlPlane) -> None:
    project = write_project(tmp_path, *OPTIONS)
    done = await make(project, "test", "SERVER=kubeconfig", KUBECONFIG=str(control_plane.kubeconfig))
    assert "6 passed, 1 skipped" in done.output


@pytest.mark.parametrize("options", [(), OPTIONS], ids=["none", "all"])
@pytest.mark.parametrize(
    ("name", "kind", "group"), [("storage-policies", "", "web.example.org"), ("a", "Zebra", "example.com")]
)
async def test_lines_fit_with_long_and_short_names(
    tmp_path: Path, name: str, kind: str, group: str, options: tuple[str, ...]
) -> None:
    write_project(tmp_path, *options, name=name, kind=kind, group=group)
    for arguments in (["check"], ["format", "--check"]):
        done = await run_to_end(tmp_path, sys.executable, "-m", "ruff", *arguments)
        assert done.code == 0, done.output + done.errors


@pytest.mark.parametrize("options", [(), ("helm",)], ids=["none", "helm"])
async def test_workflows_pass_actionlint(options: tuple[str, ...], tmp_path: Path, actionlint: Path) -> None:
    project = write_project(tmp_path, *options)
    workflows = sorted(str(path) for path in (project / ".github" / "workflows").iterdir())
    assert [Path(path).name for path in workflows] == ["release.yml", "test.yml"]
    done = await run_to_end(project, str(actionlint), *workflows)
    assert (done.code, done.output) == (0, ""), done.output + done.errors


@pytest.mark.parametrize("options", [(), ("helm",)], ids=["none", "helm"])
async def test_workflows_have_no_known_weakness(options: tuple[str, ...], tmp_path: Path) -> None:
    project = write_project(tmp_path, *options)
    zizmor = str(Path(sys.executable).with_name("zizmor"))
    done = await run_to_end(project, zizmor, "--offline", "--pedantic", "--no-progress", ".")
    assert done.code == 0, done.output + done.errors
    assert "No findings to report" in done.output + done.errors
