"""What the project that ``aioinformer init`` writes does."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest
import yaml

from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer.cli.new_project import NewProject
from aioinformer.testing import APIServer, eventually
from tests.e2e.processes import Ended, Running, started_program
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.process import free_ports

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # the programs have event loops of their own


def program(folder: Path, *command: str, **environment: str) -> AbstractAsyncContextManager[Running]:
    own = {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return started_program("env", "-C", str(folder), *command, environment={**own, **environment})


async def run_to_end(folder: Path, *command: str, **environment: str) -> Ended:
    async with program(folder, *command, **environment) as started:
        return await started.end()


async def make(folder: Path, *args: str, **environment: str) -> Ended:
    done = await run_to_end(folder, "make", f"PYTHON={sys.executable}", *args, **environment)
    assert done.code == 0, done.output + done.errors
    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "websites"
    NewProject(name="websites").write(folder)
    return folder


@pytest.fixture
def project_with_webhook(project: Path) -> Path:
    """Remove the comment signs from the webhook, and import its names."""
    main = project / "websites" / "main.py"
    code, mark, webhook = main.read_text().partition("# @")
    code = code.replace("\n\n", "\n\nfrom aioinformer.operator import AdmissionReview, Denied\n", 1)
    main.write_text(code + re.sub("^# ", "", mark + webhook, flags=re.MULTILINE))
    for arguments in (["check", "--fix"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *arguments, "--quiet"], cwd=project, check=True)
    return project


async def test_its_tests_pass(tmp_path: Path) -> None:
    done = await run_to_end(tmp_path, sys.executable, "-m", "aioinformer", "init", "websites")
    assert (done.code, done.errors) == (0, "")
    assert done.output.startswith("websites/ has an operator of the kind Website (example.com/v1). Next:\n")
    assert "4 passed" in (await make(tmp_path / "websites", "test")).output


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_its_tests_pass_on_the_real_server(project: Path, control_plane: ControlPlane) -> None:
    done = await make(project, "test", "SERVER=kubeconfig", KUBECONFIG=str(control_plane.kubeconfig))
    assert "4 passed" in done.output


async def test_its_code_passes_ruff_and_mypy(project_with_webhook: Path) -> None:
    await make(project_with_webhook, "lint")


@pytest.mark.parametrize(
    ("name", "kind", "group"), [("storage-policies", "", "web.example.org"), ("a", "Zebra", "example.com")]
)
async def test_lines_fit_with_long_and_short_names(tmp_path: Path, name: str, kind: str, group: str) -> None:
    NewProject(name=name, kind=kind, group=group).write(tmp_path)
    for arguments in (["check"], ["format", "--check"]):
        done = await run_to_end(tmp_path, sys.executable, "-m", "ruff", *arguments)
        assert done.code == 0, done.output + done.errors


async def test_its_webhook_denies(project_with_webhook: Path) -> None:
    code = """
import asyncio

from aioinformer.typed import Metadata
from websites.main import operator
from websites.resources import Website, WebsiteSpec

site = Website(metadata=Metadata(name="a"), spec=WebsiteSpec(message=" "))
print(asyncio.run(operator.review(site)).message)
"""
    done = await run_to_end(project_with_webhook, sys.executable, "-c", code)
    assert done.code == 0, done.errors
    assert "is blank" in done.output


async def test_manifests_are_written(project: Path) -> None:
    await make(project, "manifests", "IMAGE=registry/websites:1")
    (deployment,) = yaml.safe_load_all((project / "manifests" / "deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/websites:1"
    assert container["args"][:2] == ["run", "websites.main:operator"]


async def test_it_runs_on_an_embedded_server_until_sigterm(project: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "aioinformer", "run", "--dev", "websites.main:operator"]
    example = yaml.safe_load((project / "example.yaml").read_text())
    async with program(project, *command, f"--metrics-port={port}", f"--probe-port={port}") as started:
        kubeconfig = (await started.output.next()).rpartition("KUBECONFIG=")[2]
        await eventually(lambda: is_ready(port), within=60)
        async with (
            Client.from_kubeconfig(path=kubeconfig) as client,
            SharedInformerFactory(client) as factory,
        ):
            await Resource(client, "example.com/v1", "websites").create(example)
            made = factory.for_resource("configmaps").lister
            await eventually(lambda: made.get("default/hello")["data"] == {"message": "Hello, world"})
        started.signal(signal.SIGTERM)
        done = await started.end()
    assert done.code == 0, done.errors


async def is_ready(port: int) -> bool:
    """Return whether /readyz says so."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False


async def test_its_image_runs_it_without_packages_for_tests(project: Path, tmp_path: Path) -> None:
    """The steps of the Dockerfile, in folders in place of a container's."""
    source, venv, tools = (tmp_path / folder for folder in ("src", "venv", "tools"))
    command = ("wheel", "--quiet", "--no-deps", "--wheel-dir", str(project / "wheels"), str(ROOT))
    done = await run_to_end(tmp_path, sys.executable, "-m", "pip", *command)
    if done.code and not os.environ.get("CI"):
        pytest.skip(f"needs the package index: {done.errors}")
    tools.mkdir()
    for name, arguments in (("python", ""), ("pip", "-m pip")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        (tools / name).chmod(0o755)
    for line in (project / ".dockerignore").read_text().splitlines():
        if line.startswith("!") and (project / line[1:]).exists():
            copy = shutil.copytree if (project / line[1:]).is_dir() else shutil.copy
            source.mkdir(exist_ok=True)
            copy(project / line[1:], source / line[1:])
    stages = (project / "Dockerfile").read_text().replace("/venv", str(venv)).splitlines()
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": "", "PIP_NO_COMPILE": "1"}
    for step in (line.removeprefix("RUN ") for line in stages if line.startswith("RUN ")):
        done = await run_to_end(source, "sh", "-c", step, **environment)
        assert done.code == 0, done.errors
    packages = {path.name for path in next(venv.glob("lib/*/site-packages")).iterdir()}
    assert packages >= {"websites", "aioinformer"}
    assert packages & {"pip", "pytest", "_pytest", "cryptography", "trustme", "jsonpatch"} == set()
    entry, arguments = (
        json.loads(line.partition(" ")[2]) for line in stages if line.startswith(("ENTRYPOINT", "CMD"))
    )
    example = yaml.safe_load((project / "example.yaml").read_text())
    async with APIServer() as server:
        options = (f"--server={server.url}", "--install-crds", "--metrics-port=0", "--probe-port=0")
        async with program(tmp_path, *entry, *arguments, *options, PYTHONPATH="") as started:
            await eventually(lambda: server.create("example.com/v1", "websites", example), within=60)
            await eventually(lambda: server.get("v1", "configmaps", "hello"))
            started.signal(signal.SIGTERM)
            done = await started.end()
    assert done.code == 0, done.errors
