"""etcd and kube-apiserver on loopback, from the user's own binaries (such as envtest's)."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import ssl
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urlsplit

import pytest

from .ports import free_ports

READY_DEADLINE = 60.0
GRACE = 10.0

MISSING = (
    "--api-server kubernetes: {name} is neither in $KUBEBUILDER_ASSETS nor on $PATH. To download it: "
    "go run sigs.k8s.io/controller-runtime/tools/setup-envtest@latest use -p path, and set KUBEBUILDER_ASSETS to the "
    "folder that it prints. Without a real server: --api-server embedded"
)


def binaries() -> dict[str, str]:
    """Return where kube-apiserver and etcd are.

    Raises:
        UsageError: One is missing.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    paths: dict[str, str] = {}
    for name in ("etcd", "kube-apiserver"):
        where = (shutil.which(name, path=assets) if assets else None) or shutil.which(name)
        if where is None:
            raise pytest.UsageError(MISSING.format(name=name))
        paths[name] = where
    return paths


class ControlPlane:
    """etcd and kube-apiserver, which end with the context. There are no controllers and no kubelet.

    Args:
        binaries: Where the programs are.
        folder: An empty folder, for data and logs.

    Attributes:
        kubeconfig: The kubeconfig of a user with all rights.
    """

    def __init__(self, binaries: dict[str, str], folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._binaries = binaries
        self._folder = folder
        self._token = secrets.token_urlsafe()
        self._certificate = folder / "certificates" / "apiserver.crt"
        client_port, peer_port, port = free_ports(3)
        self._etcd_url, self._peer_url = (f"http://127.0.0.1:{number}" for number in (client_port, peer_port))
        self._port = port
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            self._write_files()
            self._start(exits, "etcd", self._etcd_options(), f"{self._etcd_url}/health")
            # The server creates the namespace default some time after it is ready, and tests may use it.
            ready = f"https://127.0.0.1:{self._port}/api/v1/namespaces/default"
            self._start(exits, "kube-apiserver", self._apiserver_options(), ready)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def _etcd_options(self) -> list[str]:
        return [
            "--name=tests",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster=tests={self._peer_url}",
            "--unsafe-no-fsync",
        ]

    def _apiserver_options(self) -> list[str]:
        key = self._folder / "service-account.key"
        return [
            f"--etcd-servers={self._etcd_url}",
            f"--cert-dir={self._certificate.parent}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # a Service cannot have a loopback address
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",  # no controller creates the accounts that pods need
            "--service-cluster-ip-range=10.0.0.0/24",
        ]

    def _write_files(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        (self._folder / "service-account.key").write_bytes(pem)
        (self._folder / "tokens.csv").write_text(f'{self._token},admin,admin,"system:masters"\n')
        cluster = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority": str(self._certificate),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
            "current-context": "tests",
        }
        self.kubeconfig.write_text(json.dumps(config, indent=2))

    def _start(self, exits: ExitStack, name: str, options: list[str], url: str) -> None:
        """Start a program and wait until it answers."""
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [self._binaries[name], *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # pytest handles Ctrl-C, and ends the servers in order
            )
        exits.callback(_end, process)
        deadline = time.monotonic() + READY_DEADLINE
        while not self._answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                why = (
                    "has ended" if process.poll() is not None else f"was not ready after {READY_DEADLINE:g} s"
                )
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
                pytest.fail(f"{self._binaries[name]} {why}; the end of its log:\n{tail}", pytrace=False)
            time.sleep(0.05)

    def _answers(self, url: str) -> bool:
        try:
            with closing(self._connection(urlsplit(url))) as connection:
                connection.request(
                    "GET", urlsplit(url).path, headers={"Authorization": f"Bearer {self._token}"}
                )
                return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):  # also of a certificate that is half written
            return False

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=2)
        context = ssl.create_default_context(cafile=self._certificate)
        return http.client.HTTPSConnection(url.hostname or "", url.port, timeout=2, context=context)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
