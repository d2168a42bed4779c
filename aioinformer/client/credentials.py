"""Where a configuration comes from, and how its credentials are had anew."""

from __future__ import annotations

import base64
import ipaddress
import logging
import math
import os
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from ..errors import ClientClosedError, ConfigError
from ..objects.decoders import DECODE_ERRORS
from .error_mapping import without_credentials
from .kept_files import KeptFiles
from .libraries import Library, to_thread
from .tls import TLS, Pem

if TYPE_CHECKING:
    from .exec_plugin import ExecCredential

logger = logging.getLogger(__name__)

TOKEN_FILE_PERIOD = 60.0
"""Seconds after which a token file is read again, and a pod's ca.crt with it; or a client certificate's files
(client-go ``cachingFileTokenSource``, ``ca_rotation.go``, ``cert_rotation.go``)."""

_SHORTEST_PERIOD = 1.0
_LONGEST_MARGIN = 60.0

_IN_CLUSTER = "the in-cluster configuration"

FROM_URL = "the credentials came from the name and password in the server's URL"
"""``Access.origin`` where the URL names a user."""

Wall = Callable[[], float]


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a bearer token, and what keeps its last content."""

    path: str
    kept: KeptFiles = field(default_factory=KeptFiles, repr=False, compare=False)


@dataclass(slots=True)
class Access:
    """How to reach a server, as some moment's configuration has it.

    Attributes:
        configuration: The library's.
        api_client: The library's, where there is one already.
        namespace: What the configuration names.
        token_file: What the token was read from.
        renew_at: Wall time from which the credentials are to be renewed.
        expires: Wall time from which they are of no use.
        headers: Sent with every request.
        tls: What an SSLContext is made of. A kubernetes.aio ApiClient has its own.
        plugin: What was asked for the credentials, and what it gave.
        name: Of the configuration, for messages.
        origin: Where the credentials came from, for the message of a 401.
    """

    configuration: Any
    api_client: Any = None
    namespace: str = "default"
    token_file: TokenFile | None = None
    renew_at: float = math.inf
    expires: float = math.inf
    headers: MutableMapping[str, str] = field(default_factory=dict)
    tls: TLS = field(default_factory=TLS)
    plugin: tuple[object, ExecCredential] | None = None
    name: str = ""
    origin: str = ""

    @property
    def has_credentials(self) -> bool:
        """Whether it identifies a user, by a token or a certificate."""
        return bool(self.configuration.api_key or self.tls.certificate)

    def ssl_context(self) -> SSLContext:
        """Return the TLS settings for connections. Blocks for some ms.

        Raises:
            ConfigError: Certificates or keys cannot be used.
        """
        made = None if self.api_client is None else getattr(self.api_client.rest_client, "ssl_context", None)
        return made or self.tls.context()

    def set_token(self, token: str) -> None:
        """Send this bearer token from now on.

        Raises:
            ConfigError: No header can carry it.
        """
        self.set_authorization(f"Bearer {token}")

    def set_authorization(self, value: str) -> None:
        """Send this Authorization from now on. Raises as ``set_token``."""
        value = value.strip()
        if not (value.isascii() and value.isprintable()):
            raise ConfigError("the token contains characters that no header can carry")
        self.configuration.api_key["BearerToken"] = value
        self.expires = expiry_of_jwt(value)


class Source(Protocol):
    """Where a configuration comes from."""

    @property
    def is_renewable(self) -> bool:
        """Whether loading again may give other credentials."""
        ...

    async def load(self, library: Library, wall: Wall) -> Access:
        """Read the configuration, anew each time.

        Raises:
            ConfigError: It cannot work.
        """
        ...


@dataclass(frozen=True, slots=True)
class StaticURL:
    """A URL and perhaps a token, as given."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    is_renewable: bool = field(default=False, init=False)

    async def load(self, library: Library, wall: Wall) -> Access:
        access = Access(library.configuration())
        access.configuration.host = with_utf8_credentials(self.url)
        if self.token:
            access.set_token(self.token.strip())
            access.origin = "the credentials came from the token given to Client.from_url"
        elif without_credentials(self.url) != self.url:
            access.origin = FROM_URL
        else:
            access.origin = "no credentials were sent: give Client.from_url a token"
        return access


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The user's ApiClient. Its credentials are as current as its own hook keeps them."""

    api_client: Any

    @property
    def is_renewable(self) -> bool:
        return getattr(self.api_client.configuration, "refresh_api_key_hook", None) is not None

    async def load(self, library: Library, wall: Wall) -> Access:
        session = self.api_client.rest_client.pool_manager
        if session is not None and session.closed:
            raise ClientClosedError("the ApiClient is closed")
        configuration = self.api_client.configuration
        return Access(
            configuration,
            self.api_client,
            headers=self.api_client.default_headers,
            tls=_tls_of(configuration),
            origin="the credentials came from the ApiClient that the Client wraps",
        )


def _tls_of(configuration: Any) -> TLS:
    """Return the TLS settings of a kubernetes_asyncio Configuration."""

    def pem(name: str, path: str | None) -> Pem | None:
        return Pem(name, path) if path else None

    certificate = configuration.cert_file
    return TLS(
        pem("ssl_ca_cert", configuration.ssl_ca_cert),
        pem("cert_file", certificate),
        pem("key_file", configuration.key_file or certificate),
        configuration.verify_ssl,
    )


@dataclass(slots=True, eq=False)
class InCluster:
    """The service account of the pod that this runs in."""

    is_renewable: bool = field(default=True, init=False)
    _had_authority: bool | None = field(default=None, init=False)
    _kept: KeptFiles = field(default_factory=KeptFiles, init=False, repr=False)

    async def load(self, library: Library, wall: Wall) -> Access:
        module = library.module("config.incluster_config")
        try:
            return await to_thread(self._load, module, library.configuration(), wall())
        except (ConfigError, OSError, ValueError) as error:
            raise ConfigError(f"{_IN_CLUSTER} cannot be used: {error}") from error

    def _load(self, module: Any, configuration: Any, now: float) -> Access:
        variables = (module.SERVICE_HOST_ENV_NAME, module.SERVICE_PORT_ENV_NAME)
        host, port = (os.environ.get(variable, "") for variable in variables)
        if not host or not port:
            raise ConfigError(f"{' and '.join(variables)} are not set, as they are in a pod")
        token_file = str(module.SERVICE_TOKEN_FILENAME)
        access = Access(
            configuration,
            namespace=self._namespace(str(Path(token_file).with_name("namespace"))),
            renew_at=now + TOKEN_FILE_PERIOD,
            name=_IN_CLUSTER,
            origin=f"the credentials came from the service account's token in {token_file}",
        )
        configuration.host = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        access.set_token(last_token(TokenFile(token_file, self._kept)))
        authority = Pem("ca.crt", str(module.SERVICE_CERT_FILENAME), kept=self._kept)
        if self._had_authority or os.path.exists(authority.path):
            self._had_authority = True
            access.tls = TLS(authority)
        elif self._had_authority is None:  # as client-go
            self._had_authority = False
            logger.warning("%s is not there: whom the system trusts is trusted in its place", authority.path)
        return access

    def _namespace(self, file: str) -> str:
        """Whose namespace a pod is in (client-go ``inClusterClientConfig.Namespace``). Blocks."""
        said = os.environ.get("POD_NAMESPACE")
        if not said and (os.path.isfile(file) or self._kept.has(file)):
            said = self._kept.read_or_keep("namespace file", file, lambda content: content.decode().strip())
        return said or "default"


def check_url(url: str) -> None:
    """See that this can be an API server's.

    Raises:
        ConfigError: It cannot.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"an API server's URL is like 'https://host:6443', not {without_credentials(url)!r}"
        )


def is_local(host: str) -> bool:
    """Whether a host is this machine, by its name or address alone."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def with_utf8_credentials(url: str) -> str:
    """A URL whose name and password aiohttp sends as UTF-8, as Go does: it sends each character as one of Latin-1."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # what uses it says so
    credentials, at, host = parts.netloc.rpartition("@")
    said = [unquote_to_bytes(part) for part in credentials.split(":", 1)]
    if all(part.isascii() for part in said):
        return url
    credentials = ":".join(quote(part.decode("latin-1"), safe="") for part in said)
    return parts._replace(netloc=f"{credentials}{at}{host}").geturl()


def read_token(file: TokenFile) -> str:
    """The token in a file, as it is now. Blocks.

    Raises:
        ConfigError: There is none.
    """
    try:
        return file.kept.read(file.path, partial(_token, file.path))
    except OSError as error:
        raise ConfigError(f"token file {file.path} cannot be read: {error}") from error


def last_token(file: TokenFile) -> str:
    """The token in a file, or the last one that was in it (client-go ``cachingTokenSource.Token``). Blocks.

    Raises:
        ConfigError: There never was one.
    """
    try:
        return file.kept.read_or_keep("token file", file.path, partial(_token, file.path))
    except OSError as error:
        raise ConfigError(f"token file {file.path} cannot be read: {error}") from error


def _token(path: str, content: bytes) -> str:
    try:
        token = content.decode().strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"token file {path} cannot be read: {error}") from error
    if not token:
        raise ConfigError(f"token file {path} is empty")
    return token


def renewal_time(expires: float, now: float) -> float:
    """When to renew what expires then: a minute before, but at least when a tenth of its life is left."""
    if expires == math.inf:
        return math.inf
    return max(now + _SHORTEST_PERIOD, expires - min(_LONGEST_MARGIN, (expires - now) / 10))


def timestamp(text: str) -> float:
    """An RFC 3339 time as wall time; infinite if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return math.inf
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def expiry_of_jwt(token: str) -> float:
    """When a token expires, if it is a JWT that says so, else never. Nothing is verified."""
    parts = token.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return math.inf
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, *DECODE_ERRORS):
        return math.inf
    expires = claims.get("exp") if isinstance(claims, dict) else None
    try:
        return float(expires) if isinstance(expires, (int, float)) else math.inf
    except OverflowError:  # of hundreds of digits
        return math.inf
