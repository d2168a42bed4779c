"""The servers' configuration: files and command lines."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.kubernetes.process import free_ports

CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
)


@dataclass(frozen=True)
class Configuration:
    """The files, ports and tokens of one control plane."""

    folder: Path
    binaries: Path
    port: int
    etcd_port: int
    etcd_peer_port: int
    controller_manager_port: int
    token: str = field(default_factory=secrets.token_urlsafe)
    powerless_token: str = field(default_factory=secrets.token_urlsafe)

    @classmethod
    def make(cls, folder: Path, binaries: Path) -> Self:
        port, etcd_port, etcd_peer_port, controller_manager_port = free_ports(4)
        return cls(folder, binaries, port, etcd_port, etcd_peer_port, controller_manager_port)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"

    @property
    def ca_file(self) -> Path:
        """The certificate that the server writes at its first start, and that of its own authority."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def controller_manager_ca_file(self) -> Path:
        return self.folder / "certificates" / "kube-controller-manager.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def write(self) -> None:
        """Write the files that the servers read, into a folder for this control plane alone."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        (self.folder / "service-account.key").write_bytes(pem)
        (self.folder / "tokens.csv").write_text(
            f'{self.token},admin,admin,"system:masters"\n{self.powerless_token},powerless,powerless\n'
        )
        self.kubeconfig.write_text(json.dumps(self._kubeconfig(), indent=2))

    def _kubeconfig(self) -> dict[str, object]:
        users = {"admin": self.token, "powerless": self.powerless_token}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "tests", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}
            ],
            "users": [{"name": name, "user": {"token": token}} for name, token in users.items()],
            "contexts": [{"name": name, "context": {"cluster": "tests", "user": name}} for name in users],
            "current-context": "admin",
        }

    def etcd(self) -> list[str | Path]:
        peer_url = f"http://127.0.0.1:{self.etcd_peer_port}"
        return [
            self.binaries / "etcd",
            "--name=tests",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=tests={peer_url}",
            "--unsafe-no-fsync",
            "--heartbeat-interval=20",
            "--election-timeout=200",  # a restart waits for it; there is no other candidate
            "--log-level=warn",
        ]

    def apiserver(self, feature_gates: Mapping[str, bool], extra_args: Sequence[str]) -> list[str | Path]:
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in feature_gates.items())
        return [
            self.binaries / "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            "--etcd-compaction-interval=0",  # a test decides when history expires
            f"--cert-dir={self.folder / 'certificates'}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # a Service cannot have a loopback address
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'service-account.key'}",
            f"--service-account-signing-key-file={self.folder / 'service-account.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",  # no controller creates the accounts that pods need
            "--service-cluster-ip-range=10.0.0.0/24",
            *([f"--feature-gates={gates}"] if gates else []),
            *extra_args,
        ]

    def controller_manager(self, controllers: Sequence[str]) -> list[str | Path]:
        return [
            self.binaries / "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--secure-port={self.controller_manager_port}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            f"--controllers={','.join(controllers)}",
        ]

    def kubectl(self) -> list[str | Path]:
        return [
            self.binaries / "kubectl",
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.folder / 'kubectl'}",
        ]
