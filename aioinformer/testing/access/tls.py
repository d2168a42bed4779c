"""Certificates for servers with TLS, and a kubeconfig that trusts them."""

from __future__ import annotations

import base64
import os
import ssl
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.errors import MissingExtraError

if TYPE_CHECKING:
    import trustme

_HOSTS = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """A certificate authority and a server certificate for the loopback addresses.

    Attributes:
        ca_pem: The authority's certificate, which clients must trust.
        server_context: The server's TLS context.
    """

    def __init__(self) -> None:
        try:
            import trustme
        except ImportError as error:
            raise MissingExtraError("trustme", "a server with TLS") from error
        authority = trustme.CA()
        self.ca_pem: bytes = authority.cert_pem.bytes()
        self.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*_HOSTS).configure_cert(self.server_context)


def write_certificate(authority: trustme.CA, folder: Path) -> tuple[Path, Path, Path]:
    """Write a certificate for the loopback addresses, its key, and its authority's certificate; return the files."""
    issued = authority.issue_cert(*_HOSTS)
    cert, key, trusted = folder / "tls.crt", folder / "tls.key", folder / "ca.crt"
    authority.cert_pem.write_to_path(str(trusted))
    issued.private_key_pem.write_to_path(str(key))
    for number, pem in enumerate(issued.cert_chain_pems):
        pem.write_to_path(str(cert), append=number > 0)
    return cert, key, trusted


def kubeconfig(url: str, *, token: str | None, ca_pem: bytes | None) -> dict[str, Any]:
    """Return a kubeconfig with a single context for a server."""
    cluster: dict[str, Any] = {"server": url}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca_pem).decode()
        token = token or "any"  # with TLS, kubectl asks for a user name if there is no credential
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": cluster}],
        "users": [{"name": "embedded", "user": {} if token is None else {"token": token}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
        "current-context": "embedded",
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> Path:
    """Write a kubeconfig as JSON, which is YAML, too; only its owner can read it, also if the file existed before.

    Raises:
        OSError: The file cannot be written, or belongs to another user.
    """
    text = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fchmod(file.fileno(), 0o600)
        file.write(text)
    return path
