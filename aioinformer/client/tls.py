"""TLS settings: certificate authorities and the client certificate, as an SSLContext.

The libraries need files instead: they write a kubeconfig's data to ``/tmp``, where a cleanup can delete it and where a
key remains after the process is killed.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError
from .kept_files import KeptFiles


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key in PEM format, in a file or in memory.

    Attributes:
        name: The name of the field in the configuration, for messages.
        path: The file; ``""`` for none.
        data: The content, if there is no file.
        kept: The file's last content.
    """

    name: str
    path: str = ""
    data: bytes = field(default=b"", repr=False)
    kept: KeptFiles = field(default_factory=KeptFiles, repr=False, compare=False)

    def read(self) -> bytes:
        """Return the current content; for a file that is gone, its last content. Blocks.

        Raises:
            ConfigError: The file cannot be read, or is empty.
        """
        if not self.path:
            return self.data
        try:
            return self.kept.read_or_keep(self.name, self.path, self._not_empty)
        except OSError as error:
            raise ConfigError(f"{self.name}: {error}") from error

    @property
    def is_in_file(self) -> bool:
        """Whether the file still exists after ``read``, so that OpenSSL can read it. Blocks."""
        return os.path.isfile(self.path) and not self.kept.is_missing(self.path)

    def _not_empty(self, content: bytes) -> bytes:
        if not content.strip():
            raise ConfigError(f"{self} is empty")
        return content

    def __str__(self) -> str:
        return f"{self.name} {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class TLS:
    """The TLS settings of a configuration.

    Attributes:
        authorities: The certificate authorities for the server's certificate; None for the system's.
        certificate: The client certificate with its chain; None for none.
        key: The private key of the client certificate.
        is_verified: Whether to verify the server's certificate.
    """

    authorities: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    is_verified: bool = True

    def read(self) -> list[bytes]:
        """Return the current content of authorities, certificate and key. Blocks.

        Raises:
            ConfigError: A file cannot be read, or is empty.
        """
        return [pem.read() if pem else b"" for pem in (self.authorities, self.certificate, self.key)]

    def context(self) -> ssl.SSLContext:
        """Return an SSLContext that accepts the servers that Go accepts. Blocks for some ms.

        Raises:
            ConfigError: Certificates or keys are unusable.
        """
        context = _context_trusting(self.authorities) if self.authorities else ssl.create_default_context()
        # Accept any configured certificate as trust anchor, not only self-signed ones. Default since Python 3.13.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        # Python 3.13 requires the key identifiers of RFC 5280; many clusters' certificates lack them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if ssl.HAS_NEVER_CHECK_COMMON_NAME:
            context.hostname_checks_common_name = False  # Go checks subject alternative names only
        if not self.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._load_certificate(context)
        return context

    def check_certificate(self) -> None:
        """Check that the client certificate, if there is one, is usable. Blocks.

        Raises:
            ConfigError: It is invalid, or does not match its key.
        """
        self._load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        if self.certificate is None or self.key is None:
            return
        try:
            with ExitStack() as files:
                certificate, key = (
                    files.enter_context(_in_file(pem)) for pem in (self.certificate, self.key)
                )
                # Without a password, OpenSSL asks for one at the terminal.
                context.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ConfigError(f"{self.certificate} and {self.key} cannot be used: {error}") from error


def _context_trusting(authorities: Pem) -> ssl.SSLContext:
    """Return an SSLContext that trusts these authorities only."""
    text = authorities.read().decode("ascii", "ignore")  # comments can be in any language
    if not text.strip():  # an empty text would select the system's authorities
        raise ConfigError(f"{authorities} is empty")
    try:
        if authorities.is_in_file:  # parsing a file releases the GIL
            return ssl.create_default_context(cafile=authorities.path)
        return ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{authorities} contains no usable certificates: {error}") from error


@contextmanager
def _in_file(pem: Pem) -> Iterator[str]:
    """Provide the content as a file, as OpenSSL reads certificates and keys from files only. Remove it at the end."""
    content = pem.read()
    if pem.is_in_file:
        yield pem.path
        return
    if hasattr(os, "memfd_create"):  # Linux: a file in memory, as possibly no directory is writable
        with open(os.memfd_create(pem.name), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as directory:  # other users cannot read it
        path = Path(directory, pem.name)
        path.write_bytes(content)
        yield str(path)
