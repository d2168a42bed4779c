"""The frameworks: how each operator is installed and started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.building import BUILDERS, CargoBuild
from tests.go_build import ToolchainMissingError

ROOT = Path(__file__).parents[3]
PEERS = ROOT / "benchmarks" / "websites"


@dataclass(frozen=True)
class Where:
    """Where an operator runs.

    Attributes:
        port: The port of its webhook.
        certs: A folder with tls.crt, tls.key and ca.crt.
    """

    port: int
    certs: Path


class Framework:
    """An operator of Websites.

    Attributes:
        name: The framework's name.
    """

    name: str

    @property
    def missing(self) -> str:
        """Why it cannot run here; ``""`` if it can."""
        return ""

    def deploy(self, folder: Path) -> None:
        """Write a kustomization that installs the operator into a folder."""
        raise NotImplementedError

    def command(self, where: Where) -> list[str]:
        """Return the command that runs it."""
        raise NotImplementedError

    def environment(self, where: Where) -> Mapping[str, str]:
        """Return variables beside KUBECONFIG and DNS_URL."""
        return {"PYTHONPATH": str(ROOT)}


class AioInformer(Framework):
    name = "aioinformer"
    _operator = "examples.website.operator:operator"

    def deploy(self, folder: Path) -> None:
        shutil.copytree(ROOT / "examples" / "website" / "deploy", folder)
        command = [
            sys.executable,
            "-m",
            "aioinformer",
            "manifests",
            self._operator,
            "--static-webhooks",  # as those of the other frameworks
            "-o",
            str(folder / "base"),
        ]
        subprocess.run(command, cwd=ROOT, check=True)

    def command(self, where: Where) -> list[str]:
        files = [f"--tls-cert={where.certs / 'tls.crt'}", f"--tls-key={where.certs / 'tls.key'}"]
        ports = [f"--webhook-port={where.port}", "--metrics-port=0", "--probe-port=0"]
        return [sys.executable, "-m", "aioinformer", "run", self._operator, *ports, *files]


class Kopf(Framework):
    name = "kopf"

    def deploy(self, folder: Path) -> None:
        shutil.copytree(PEERS / "kopf" / "deploy", folder)

    def command(self, where: Where) -> list[str]:
        options = ["--standalone", "--all-namespaces"]
        return [sys.executable, "-m", "kopf", "run", *options, str(PEERS / "kopf" / "website.py")]

    def environment(self, where: Where) -> Mapping[str, str]:
        return {
            "WEBHOOK_HOST": "127.0.0.1",
            "WEBHOOK_PORT": str(where.port),
            "CERTS": str(where.certs),
        }


class KubeRs(Framework):
    name = "kube-rs"
    program = "websites-kube-rs"

    @property
    def missing(self) -> str:
        """It is built in a quarter of an hour, which no test should wait for."""
        build = BUILDERS[self.program]
        is_built = isinstance(build, CargoBuild) and build.is_built
        return "" if is_built else "python -m benchmarks.building builds it"

    def deploy(self, folder: Path) -> None:
        shutil.copytree(PEERS / "kube_rs" / "deploy", folder)
        (folder / "crd.json").write_bytes(
            subprocess.run([self._path, "crd"], check=True, capture_output=True).stdout
        )

    def command(self, where: Where) -> list[str]:
        return [str(self._path)]

    def environment(self, where: Where) -> Mapping[str, str]:
        return {
            "WEBHOOK_PORT": str(where.port),
            "TLS_CERT": str(where.certs / "tls.crt"),
            "TLS_KEY": str(where.certs / "tls.key"),
        }

    @property
    def _path(self) -> Path:
        return BUILDERS[self.program].ensure() / self.program


class ControllerRuntime(Framework):
    name = "controller-runtime"
    program = "websites-controller-runtime"

    @property
    def missing(self) -> str:
        try:
            BUILDERS[self.program].ensure()
        except ToolchainMissingError as error:
            return str(error)
        return ""

    def deploy(self, folder: Path) -> None:
        shutil.copytree(PEERS / "controller_runtime" / "deploy", folder)

    def command(self, where: Where) -> list[str]:
        path = BUILDERS[self.program].ensure() / self.program
        files = [f"--tls-cert={where.certs / 'tls.crt'}", f"--tls-key={where.certs / 'tls.key'}"]
        addresses = ["--metrics-address=0", "--probe-address=0"]
        return [str(path), f"--webhook-port={where.port}", *files, *addresses]


FRAMEWORKS = (AioInformer(), Kopf(), KubeRs(), ControllerRuntime())
