"""Both versions of the operator: how each is installed and started."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import trustme
import yaml

from aioinformer import Client, Resource
from aioinformer.operator.definitions import install
from examples.migrations.kopf.after import operator
from tests.kubernetes.process import free_ports

from ..environments import ROOT, environment_of, variables
from ..subjects import Subject, subject
from ..worlds import World
from .platform import Platform

FOLDER = ROOT / "examples" / "migrations" / "kopf"
HEALTH_SECONDS = "0.5"


class Version(ABC):
    """A version of the operator in a world.

    Args:
        world: Where it works.
        platform: What it calls.
        folder: For its certificate.
    """

    name: str

    def __init__(self, world: World, platform: Platform, folder: Path) -> None:
        self._world = world
        self._platform = platform
        self._port = free_ports(1)[0]
        self._authority = trustme.CA()
        certs = folder / self.name
        certs.mkdir()
        self._files = {name: certs / name for name in ("tls.crt", "tls.key", "ca.crt")}
        certificate = self._authority.issue_cert("127.0.0.1")
        certificate.cert_chain_pems[0].write_to_path(str(self._files["tls.crt"]))
        certificate.private_key_pem.write_to_path(str(self._files["tls.key"]))
        self._authority.cert_pem.write_to_path(str(self._files["ca.crt"]))

    @abstractmethod
    async def install(self, client: Client) -> None:
        """Create or update what it needs on the server."""

    def run(self) -> AbstractAsyncContextManager[Subject]:
        """Run it during a block; it ends by SIGTERM."""
        environment = {
            **variables(),
            **self._environment(),
            "KUBECONFIG": str(self._world.kubeconfig),
            "AGENT_URL": self._platform.url,
        }
        return subject(self._command(), environment)

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _environment(self) -> Mapping[str, str]: ...


class Kopf(Version):
    name = "before"

    async def install(self, client: Client) -> None:
        """Create its definitions. It registers its webhooks itself."""
        definitions = Resource(client, "customresourcedefinitions", dict)
        for definition in yaml.safe_load_all((FOLDER / "definitions.yaml").read_text()):
            await definitions.create(definition)

    def _command(self) -> list[str]:
        options = ["--standalone", f"--namespace={self._world.namespace}"]
        python = environment_of(FOLDER / "requirements.txt")
        return [str(python), "-m", "kopf", "run", *options, str(FOLDER / "before.py")]

    def _environment(self) -> Mapping[str, str]:
        return {
            "HEALTH_SECONDS": HEALTH_SECONDS,
            "WEBHOOK_PORT": str(self._port),
            "CERTS": str(self._files["ca.crt"].parent),
        }


class AioInformer(Version):
    name = "after"

    async def install(self, client: Client) -> None:
        """Create its definitions, and register its webhooks at the address of this machine."""
        await install(client, operator)
        url, authority = f"https://127.0.0.1:{self._port}", self._authority.cert_pem.bytes()
        for configuration in operator.webhook_configurations(url=url, ca_bundle=authority):
            configurations = Resource(client, f"{configuration['kind'].lower()}s", dict)
            await configurations.apply(configuration, force=True)

    def _command(self) -> list[str]:
        options = [
            f"--namespace={self._world.namespace}",
            f"--webhook-port={self._port}",
            f"--tls-cert={self._files['tls.crt']}",
            f"--tls-key={self._files['tls.key']}",
            "--metrics-port=0",
            "--probe-port=0",
        ]
        return [
            sys.executable, "-m", "aioinformer", "run", "examples.migrations.kopf.after:operator", *options
        ]  # fmt: skip

    def _environment(self) -> Mapping[str, str]:
        return {"DATABASES_HEALTH_SECONDS": HEALTH_SECONDS}


VERSIONS = (Kopf, AioInformer)
