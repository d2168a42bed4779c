"""TLS: who may have signed a server's certificate, and by which certificate it knows us.

The libraries want files: what a kubeconfig holds itself they write to ``/tmp`` and look for there again, whether or not
something has tidied up meanwhile, and a key stays there when the process is killed.
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
    """Certificates, or a key.

    Attributes:
        name: What the configuration calls it, for messages.
        path: The file that it is in; ``""`` for none.
        data: Itself, where it is in no file.
        kept: Keeps the file's last content.
    """

    name: str
    path: str = ""
    data: bytes = field(default=b"", repr=False)
    kept: KeptFiles = field(default_factory=KeptFiles, repr=False, compare=False)

    def read(self) -> bytes:
        """Itself, as it is now; of a file that is gone by now, its last content. Blocks.

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
        """Whether its file can be read once more, after ``read``. Blocks."""
        return os.path.isfile(self.path) and not self.kept.is_missing(self.path)

    def _not_empty(self, content: bytes) -> bytes:
        if not content.strip():
            raise ConfigError(f"{self} is empty")
        return content

    def __str__(self) -> str:
        return f"{self.name} {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class TLS:
    """What a configuration says of it.

    Attributes:
        authorities: Who may have signed the server's certificate; None for those whom the system trusts.
        certificate: Ours, with its chain; None for none.
        key: Its private key.
        is_verified: Whether the server has to show who it is.
    """

    authorities: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    is_verified: bool = True

    def read(self) -> list[bytes]:
        """All that is pointed at, as it is now. Blocks.

        Raises:
            ConfigError: A file cannot be read, or is empty.
        """
        return [pem.read() if pem else b"" for pem in (self.authorities, self.certificate, self.key)]

    def context(self) -> ssl.SSLContext:
        """An SSLContext that takes the servers that Go takes. Blocks, for some ms.

        Raises:
            ConfigError: Certificates or keys cannot be used.
        """
        context = _trusting(self.authorities) if self.authorities else ssl.create_default_context()
        # Any certificate that is given is an anchor, not those alone that have signed themselves (3.13 does so).
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        # Many clusters' certificates lack the key identifiers that RFC 5280 asks for, as 3.13 does.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if ssl.HAS_NEVER_CHECK_COMMON_NAME:
            context.hostname_checks_common_name = False  # Go looks at subject alternative names only
        if not self.is_verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._show_in(context)
        return context

    def check_certificate(self) -> None:
        """See that ours, if there is one, can be shown. Blocks.

        Raises:
            ConfigError: It cannot be, or not by this key.
        """
        self._show_in(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _show_in(self, context: ssl.SSLContext) -> None:
        if self.certificate is None or self.key is None:
            return
        try:
            with ExitStack() as files:
                shown, by = (files.enter_context(_in_file(pem)) for pem in (self.certificate, self.key))
                context.load_cert_chain(
                    shown, by, password=""
                )  # or else OpenSSL asks for it, at the terminal
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ConfigError(f"{self.certificate} and {self.key} cannot be used: {error}") from error


def _trusting(authorities: Pem) -> ssl.SSLContext:
    text = authorities.read().decode("ascii", "ignore")  # comments are in any language
    if not text.strip():  # without any, the system's would be trusted
        raise ConfigError(f"{authorities} is empty")
    try:
        if authorities.is_in_file:  # as a file it is parsed without the GIL
            return ssl.create_default_context(cafile=authorities.path)
        return ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{authorities} holds no certificates that can be used: {error}") from error


@contextmanager
def _in_file(pem: Pem) -> Iterator[str]:
    """A file that OpenSSL, which takes nothing else, may read it from: for as long as it does so."""
    content = pem.read()
    if pem.is_in_file:
        yield pem.path
        return
    if hasattr(os, "memfd_create"):  # Linux: in memory, as no directory may be writable
        with open(os.memfd_create(pem.name), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as directory:  # only its owner may enter
        path = Path(directory, pem.name)
        path.write_bytes(content)
        yield str(path)
