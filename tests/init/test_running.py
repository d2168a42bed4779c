"""The operator of a new project runs: from its folder, and from its image."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
import trustme
import yaml

from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer.cli.new_project import NewProject
from aioinformer.testing import APIServer, eventually
from tests.e2e.pods import is_ready
from tests.kubernetes.process import free_ports

from .projects import ROOT, program, run_to_end

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # the programs have event loops of their own


@pytest.mark.parametrize("chosen", [False, True], ids=["no-options", "all-options"])
async def test_it_runs_on_an_embedded_server_until_sigterm(tmp_path: Path, chosen: bool) -> None:
    project = tmp_path / "websites"
    NewProject(name="websites", webhooks=chosen, helm=chosen, pydantic=chosen).write(project)
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


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate and its key, and return the files."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    issued = trustme.CA().issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    return certificate, key


async def test_its_image_runs_it_without_packages_for_tests(tmp_path: Path) -> None:
    """The steps of the Containerfile, in folders in place of a container's."""
    project = tmp_path / "websites"
    NewProject(name="websites", webhooks=True, helm=True, pydantic=True).write(project)
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
    stages = (project / "Containerfile").read_text().replace("/venv", str(venv)).splitlines()
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": "", "PIP_NO_COMPILE": "1"}
    for step in (line.removeprefix("RUN ") for line in stages if line.startswith("RUN ")):
        done = await run_to_end(source, "sh", "-c", step, **environment)
        assert done.code == 0, done.errors
    packages = {path.name for path in next(venv.glob("lib/*/site-packages")).iterdir()}
    assert packages >= {"websites", "aioinformer", "pydantic"}
    assert packages & {"pip", "pytest", "_pytest", "cryptography", "trustme", "jsonpatch"} == set()
    entry, arguments = (
        json.loads(line.partition(" ")[2]) for line in stages if line.startswith(("ENTRYPOINT", "CMD"))
    )
    done = await run_to_end(tmp_path, *entry, "manifests", "websites.main:operator", PYTHONPATH="")
    assert done.code == 0, done.errors
    certificate, key = write_certificate(tmp_path)
    example = yaml.safe_load((project / "example.yaml").read_text())
    async with APIServer() as server:
        options = (
            f"--server={server.url}", "--install-crds", "--metrics-port=0", "--probe-port=0",
            f"--tls-cert={certificate}", f"--tls-key={key}", f"--webhook-port={free_ports(1)[0]}",
        )  # fmt: skip
        async with program(tmp_path, *entry, *arguments, *options, PYTHONPATH="") as started:
            await eventually(lambda: server.create("example.com/v1", "websites", example), within=60)
            await eventually(lambda: server.get("v1", "configmaps", "hello"))
            started.signal(signal.SIGTERM)
            done = await started.end()
    assert done.code == 0, done.errors
