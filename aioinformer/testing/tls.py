"""Certificates for a server with TLS, and the kubeconfig that trusts it."""

from __future__ import annotations

import base64
import os
import ssl
import stat
from pathlib import Path
from typing import Any

import msgspec

from aioinformer.testing.errors import MissingExtraError


class Certificates:
    """A certificate authority of its own and a server certificate for the loopback addresses.

    Attributes:
        ca_pem: The authority's certificate, for the client to trust.
        server_context: What the server speaks TLS with.
    """

    def __init__(self) -> None:
        try:
            import trustme
        except ImportError as error:
            raise MissingExtraError("trustme", "a server with TLS") from error
        authority = trustme.CA()
        self.ca_pem: bytes = authority.cert_pem.bytes()
        self.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost", "127.0.0.1", "::1").configure_cert(self.server_context)


def kubeconfig(url: str, *, token: str | None, ca_pem: bytes | None) -> dict[str, Any]:
    """A kubeconfig with one context, for one server."""
    cluster: dict[str, Any] = {"server": url}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca_pem).decode()
        token = token or "any"  # with TLS, kubectl asks whoever shows nothing for a name
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": cluster}],
        "users": [{"name": "embedded", "user": {} if token is None else {"token": token}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
        "current-context": "embedded",
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> Path:
    """Write a kubeconfig, readable by its owner alone, also where the file is there already; JSON is YAML too.

    Raises:
        OSError: It cannot be written, or is a file of another user.
    """
    text = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fchmod(file.fileno(), 0o600)
        file.write(text)
    return path
