"""Sources of the client's configuration, and how each of them renews its credentials."""

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

from .._core.checks import require_text
from .._core.texts import valid_text
from ..errors import ClientClosedError, ConfigError
from ..objects.nesting import DECODE_ERRORS, decode_any
from .error_mapping import without_credentials
from .kept_files import KeptFiles
from .libraries import Library, to_thread
from .tls import TLS, Pem

if TYPE_CHECKING:
    from .exec_plugin import ExecCredential

logger = logging.getLogger(__name__)

TOKEN_FILE_PERIOD = 60.0
"""Seconds after which a token file, a pod's ca.crt or the files of a client certificate are read again
(client-go ``cachingFileTokenSource``, ``ca_rotation.go``, ``cert_rotation.go``)."""

_SHORTEST_PERIOD = 1.0
_LONGEST_MARGIN = 60.0

_IN_CLUSTER = "the in-cluster configuration"

FROM_URL = "the credentials came from the name and password in the server's URL"
"""``Access.origin`` when the URL names a user."""

WallClock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a bearer token, and its last content."""

    path: str
    kept: KeptFiles = field(default_factory=KeptFiles, repr=False, compare=False)


@dataclass(slots=True)
class Access:
    """A server and the credentials for it, as one load of the configuration gave them.

    Attributes:
        configuration: The library's Configuration.
        api_client: The wrapped ApiClient, if any.
        namespace: The configuration's namespace.
        token_file: The file that the token was read from, if any.
        renew_at: Wall time at which to renew the credentials.
        expires: Wall time at which the credentials expire.
        headers: Sent with every request.
        tls: Settings for an SSLContext. A kubernetes.aio ApiClient brings its own context.
        plugin: The arguments of the exec plugin's last run, and the credential that it returned.
        is_renewed: Whether others renew the credentials: a plugin, a provider, or what writes the token file.
        name: The configuration's name, for messages.
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
    is_renewed: bool = False
    name: str = ""
    origin: str = ""

    @property
    def has_credentials(self) -> bool:
        """Whether there is a token or a client certificate."""
        return bool(self.configuration.api_key or self.tls.certificate)

    def ssl_context(self) -> SSLContext:
        """Return the SSLContext for connections. Blocks for some ms.

        Raises:
            ConfigError: Certificates or keys are unusable.
        """
        existing = (
            None if self.api_client is None else getattr(self.api_client.rest_client, "ssl_context", None)
        )
        return existing or self.tls.context()

    def set_token(self, token: str) -> None:
        """Send this bearer token from now on.

        Raises:
            ConfigError: The token has characters that a header must not contain.
        """
        self.set_authorization(f"Bearer {token}")

    def set_authorization(self, value: str) -> None:
        """Send this Authorization header from now on. Raises as ``set_token``."""
        value = value.strip()
        if not (value.isascii() and value.isprintable()):
            raise ConfigError("the token contains characters that are not allowed in a header")
        self.configuration.api_key["BearerToken"] = value
        self.expires = expiry_of_jwt(value)


class ConfigSource(Protocol):
    """A source of the client's configuration."""

    @property
    def is_renewable(self) -> bool:
        """Whether another load may return other credentials."""
        ...

    async def load(self, library: Library, wall: WallClock) -> Access:
        """Read the configuration. Each call reads it again.

        Raises:
            ConfigError: The configuration is unusable.
        """
        ...


@dataclass(frozen=True, slots=True)
class StaticURL:
    """A fixed URL, and optionally a token."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    is_renewable: bool = field(default=False, init=False)

    async def load(self, library: Library, wall: WallClock) -> Access:
        access = Access(library.configuration())
        access.configuration.host = with_utf8_credentials(self.url)
        if self.token:
            access.set_token(self.token.strip())
            access.origin = "the credentials came from the token given to Client.from_url"
        elif without_credentials(self.url) != self.url:
            access.origin = FROM_URL
        else:
            access.origin = "no credentials were sent: pass a token to Client.from_url"
        return access


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The user's ApiClient. Its own ``refresh_api_key_hook`` renews its credentials."""

    api_client: Any

    @property
    def is_renewable(self) -> bool:
        return getattr(self.api_client.configuration, "refresh_api_key_hook", None) is not None

    async def load(self, library: Library, wall: WallClock) -> Access:
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
    """The service account of the pod that this process runs in."""

    is_renewable: bool = field(default=True, init=False)
    _had_authority: bool | None = field(default=None, init=False)
    _kept: KeptFiles = field(default_factory=KeptFiles, init=False, repr=False)

    async def load(self, library: Library, wall: WallClock) -> Access:
        module = library.module("config.incluster_config")
        try:
            return await to_thread(self._load, module, library.configuration(), wall())
        except (ConfigError, OSError, ValueError) as error:
            raise ConfigError(f"{_IN_CLUSTER} cannot be used: {error}") from error

    def _load(self, module: Any, configuration: Any, now: float) -> Access:
        variables = (module.SERVICE_HOST_ENV_NAME, module.SERVICE_PORT_ENV_NAME)
        host, port = (os.environ.get(variable, "") for variable in variables)
        if not host or not port:
            raise ConfigError(f"{' and '.join(variables)} are not set; Kubernetes sets them in a pod")
        token_file = str(module.SERVICE_TOKEN_FILENAME)
        access = Access(
            configuration,
            namespace=self._namespace(str(Path(token_file).with_name("namespace"))),
            renew_at=now + TOKEN_FILE_PERIOD,
            is_renewed=True,
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
            logger.warning(
                "%s does not exist: TLS is verified with the system's certificate authorities", authority.path
            )
        return access

    def _namespace(self, file: str) -> str:
        """Return the pod's namespace (client-go ``inClusterClientConfig.Namespace``). Blocks."""
        namespace = os.environ.get("POD_NAMESPACE")
        if not namespace and (os.path.isfile(file) or self._kept.has(file)):
            namespace = self._kept.read_or_keep(
                "namespace file", file, lambda content: content.decode().strip()
            )
        return namespace or "default"


def check_url(url: str, what: str = "an API server's URL", example: str = "https://host:6443") -> None:
    """Check that this can be the URL of a server.

    Args:
        url: The URL.
        what: What it has to be, for the message.
        example: One that it can be, for the message.

    Raises:
        ConfigError: It is not an http or https URL with a host.
    """
    require_text(what, url, example)
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and valid_text(url) == url
        )
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"expected {what}, such as {example!r}, got {without_credentials(url)!r}")


def without_query(url: str) -> str:
    """Return a server's URL without query, fragment and final slashes, so that a path can follow."""
    return urlsplit(url)._replace(query="", fragment="").geturl().rstrip("/")


def is_local(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address. Resolves no names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def with_utf8_credentials(url: str) -> str:
    """Return a URL whose name and password aiohttp sends as UTF-8, as Go does. aiohttp encodes them as Latin-1."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # check_url and proxy_for report it
    credentials, at, host = parts.netloc.rpartition("@")
    name_and_password = [unquote_to_bytes(part) for part in credentials.split(":", 1)]
    if all(part.isascii() for part in name_and_password):
        return url
    credentials = ":".join(quote(part.decode("latin-1"), safe="") for part in name_and_password)
    return parts._replace(netloc=f"{credentials}{at}{host}").geturl()


def read_token(file: TokenFile) -> str:
    """Return the token that the file holds now. Blocks.

    Raises:
        ConfigError: The file holds no token or cannot be read.
    """
    try:
        return file.kept.read(file.path, partial(_token, file.path))
    except OSError as error:
        raise ConfigError(f"token file {file.path} cannot be read: {error}") from error


def last_token(file: TokenFile) -> str:
    """Return the token in a file, or else the last one read from it (client-go ``cachingTokenSource.Token``). Blocks.

    Raises:
        ConfigError: No token was ever read from the file.
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
    """Return when to renew credentials: a minute before they expire, or with a tenth of a short lifetime remaining."""
    if expires == math.inf:
        return math.inf
    return max(now + _SHORTEST_PERIOD, expires - min(_LONGEST_MARGIN, (expires - now) / 10))


def timestamp(text: str) -> float:
    """Return an RFC 3339 time as wall time, or infinity if it cannot be parsed."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return math.inf
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def expiry_of_jwt(token: str) -> float:
    """Return when a JWT expires, or infinity for other tokens. Verifies no signature."""
    parts = token.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return math.inf
    try:
        claims = decode_any(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, *DECODE_ERRORS):
        return math.inf
    expires = claims.get("exp") if isinstance(claims, dict) else None
    try:
        return float(expires) if isinstance(expires, (int, float)) else math.inf
    except OverflowError:  # a number of hundreds of digits
        return math.inf
