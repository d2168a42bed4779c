"""Certificates of webhooks, as files that change."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Certificates:
    """An authority, and a server's certificate and key in a folder.

    ``renew`` replaces both as kubelet does for a mounted Secret: by a link that points to another folder.

    Args:
        folder: Where the files are.
        expired: Whether the first certificate was valid until yesterday.
        names: Further names of the server.

    Attributes:
        cert: The certificate's file.
        key: The key's file.
        ca: The authority's certificate in PEM.
    """

    def __init__(self, folder: Path, *, expired: bool = False, names: Iterable[str] = ()) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self._number = 0
        self._names = names
        self._now = folder / "..data"
        self.cert, self.key = self._now / "tls.crt", self._now / "tls.key"
        self.ca: bytes = self._authority.cert_pem.bytes()
        self.renew(expired=expired)

    def renew(
        self,
        *,
        expired: bool = False,
        broken: bool = False,
        key_type: trustme.KeyType = trustme.KeyType.ECDSA,
    ) -> None:
        """Replace certificate and key.

        Args:
            expired: Whether the certificate was valid until yesterday.
            broken: Whether the key is another certificate's.
            key_type: The type of the key.
        """
        self._number += 1
        folder = self._folder / f"{self._number}"
        folder.mkdir()
        until = datetime.now(UTC) - timedelta(days=1) if expired else None
        made = self._authority.issue_cert(
            "localhost", "127.0.0.1", *self._names, not_after=until, key_type=key_type
        )
        other = self._authority.issue_cert("localhost") if broken else made
        made.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
        other.private_key_pem.write_to_path(str(folder / "tls.key"))
        link = self._folder / "..new"
        link.symlink_to(folder.name)
        os.replace(link, self._now)

    def use_curve_without_tls(self) -> None:
        """Replace certificate and key by those of a curve that TLS 1.3 does not have."""
        key = ec.generate_private_key(ec.SECP224R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(
            issuer_name=name,
            subject_name=name,
            public_key=key.public_key(),
            serial_number=1,
            not_valid_before=now - timedelta(days=1),
            not_valid_after=now + timedelta(days=1),
        ).sign(key, hashes.SHA256())
        self.cert.write_bytes(made.public_bytes(Encoding.PEM))
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def client_context(self) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts the authority."""
        return ssl.create_default_context(cadata=self.ca.decode())
