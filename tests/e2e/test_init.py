"""``aioinformer init`` as a program, and what its project does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest
import yaml

from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer.testing import eventually
from tests.e2e.processes import Ended, Running, running
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.process import free_ports

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # the programs have event loops of their own


def program(folder: Path, *command: str, **environment: str) -> AbstractAsyncContextManager[Running]:
    own = {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return running("env", "-C", str(folder), *command, environment={**own, **environment})


async def ended(folder: Path, *command: str, **environment: str) -> Ended:
    async with program(folder, *command, **environment) as started:
        return await started.end()


async def init(folder: Path, *args: str) -> Ended:
    return await ended(folder, sys.executable, "-m", "aioinformer", "init", *args)


async def make(folder: Path, *args: str, **environment: str) -> Ended:
    return await ended(folder, "make", f"PYTHON={sys.executable}", *args, **environment)


@pytest.fixture
async def project(tmp_path: Path) -> Path:
    done = await init(tmp_path, "websites")
    assert (done.code, done.errors) == (0, "")
    assert done.output.startswith("websites/ has an operator of the kind Website (example.com/v1). Next:\n")
    return tmp_path / "websites"


async def test_its_tests_pass(project: Path) -> None:
    done = await make(project, "test", TEST_KUBECONFIG="")
    assert done.code == 0, done.output + done.errors
    assert "4 passed, 4 skipped" in done.output


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_its_tests_pass_on_the_real_server(project: Path, control_plane: ControlPlane) -> None:
    done = await make(project, "test", TEST_KUBECONFIG=str(control_plane.kubeconfig))
    assert done.code == 0, done.output + done.errors
    assert "8 passed" in done.output


@pytest.mark.parametrize(
    "args",
    [["storage-policies", "--group=web.example.org"], ["a", "--kind=Zebra"]],
    ids=lambda args: args[0],
)
async def test_its_code_passes_ruff_and_mypy(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, args: list[str]
) -> None:
    cache = tmp_path_factory.getbasetemp() / "mypy"  # a cold one costs half a minute
    assert (await init(tmp_path, *args)).code == 0
    done = await make(tmp_path / args[0], "lint", MYPY_CACHE_DIR=str(cache))
    assert done.code == 0, done.output + done.errors


async def test_manifests_are_written(project: Path) -> None:
    done = await make(project, "manifests", "IMAGE=registry/websites:1")
    assert done.code == 0, done.output + done.errors
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
        async with asyncio.timeout(60):
            while await readiness(port) != 200:
                pass
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


async def readiness(port: int) -> int:
    """Return the status of /readyz; 0 while nothing listens."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status
        except aiohttp.ClientConnectionError:
            return 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["Web_Sites"], "the name must be at most 55 letters"),
        (["operators"], "pass another --kind"),
        (["taken"], "taken exists and is not an empty folder: choose another name, or remove it"),
    ],
)
async def test_a_mistake_is_one_line(tmp_path: Path, args: list[str], message: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    done = await init(tmp_path, *args)
    assert (done.code, done.output) == (1, "")
    assert len(done.errors.splitlines()) == 1
    assert message in done.errors
    assert os.listdir(tmp_path) == ["taken"]
