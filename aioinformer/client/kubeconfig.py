"""The kubeconfig as a source of configuration: the server and the credentials of one context."""

from __future__ import annotations

import base64
import logging
import math
import os
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from .._core.tasks import shield
from ..errors import ConfigError
from .credentials import (
    FROM_URL,
    TOKEN_FILE_PERIOD,
    Access,
    TokenFile,
    WallClock,
    check_url,
    is_local,
    last_token,
    renewal_time,
    timestamp,
    with_utf8_credentials,
    without_query,
)
from .error_mapping import without_credentials
from .exec_plugin import run_exec_plugin
from .kept_files import KeptFiles
from .libraries import Library, in_thread, to_thread
from .oidc import OidcTokens
from .sections import Section, Sections, mapping, read_files
from .tls import Pem

logger = logging.getLogger(__name__)

REFRESH_GRACE = 5.0
"""Seconds that a token refresh may continue after its request is cancelled: the old refresh-token may be used up."""


@dataclass(slots=True, eq=False)
class KubeConfig:
    """One context of a kubeconfig. Later loads use the same context, and fail if it names another server.

    Keeps the last content of files that are deleted, and of pipes. When the user has several kinds of credentials,
    sends those that client-go sends.

    Args:
        context: None for the current context at the first load.
        path: None for ``$KUBECONFIG``, which may name several files, else ``~/.kube/config``.
    """

    context: str | None = None
    path: str | os.PathLike[str] | None = None
    is_renewable: bool = field(default=True, init=False)
    _paths: list[str] = field(default_factory=list, init=False)
    _server: str = field(default="", init=False, repr=False)
    _last: Access | None = field(default=None, init=False, repr=False)
    _kept: KeptFiles = field(default_factory=KeptFiles, init=False, repr=False)
    _oidc: OidcTokens = field(default_factory=OidcTokens, init=False, repr=False)

    async def load(self, library: Library, wall: WallClock) -> Access:
        try:
            self._paths = self._paths or kubeconfig_paths(self.path)
        except OSError as error:
            raise ConfigError(
                f"kubeconfig: cannot resolve a relative path, as the working directory is gone: {error}"
            ) from error
        yaml = library.module("config.kube_config").yaml
        what = f"kubeconfig {os.pathsep.join(self._paths)}"
        try:
            files = await to_thread(read_files, yaml, self._paths, self.context, self._kept)
            what += f", context {self.context}" if self.context else ", current context"
            access = await self._load(library, Sections(files, self.context), wall)
        except ConfigError as error:
            raise ConfigError(f"{what}: {error}") from error
        except Exception as error:  # a malformed file can raise anything
            raise ConfigError(f"{what}: {error or type(error).__name__}") from error
        access.name = what
        return access

    async def _load(self, library: Library, sections: Sections, wall: WallClock) -> Access:
        cluster = sections.cluster
        check_url(cluster.get("server"))
        server = without_query(cluster.get("server"))
        url = urlsplit(server)
        if self._server and server != self._server:
            raise ConfigError(
                f"the context's server changed from {without_credentials(self._server)} to "
                f"{without_credentials(server)}, and a client stays with its server: make a new client"
            )
        access = Access(library.configuration(), namespace=sections.namespace, tls=sections.tls)
        access.configuration.host = with_utf8_credentials(server)
        access.configuration.tls_server_name = cluster.get("tls-server-name") or None
        access.configuration.proxy = with_utf8_credentials(cluster.get("proxy-url")) or None
        # As client-go, send no credentials in clear text over a network. Without a proxy, loopback is no network.
        stays_local = is_local(url.hostname or "") and not access.configuration.proxy
        if url.scheme == "https" or stays_local:
            await self._identify(sections, access, library, wall)
            if self._last is not None and self._last.has_credentials and not access.has_credentials:
                # An anonymous request gets 403, and only a 401 reloads the kubeconfig.
                raise ConfigError("the user has no credentials any more")
            if url.username is not None:
                access.configuration.api_key.clear()  # the URL's credentials win, as in Go; aiohttp refuses both
                access.origin = FROM_URL
        else:
            access.origin = "no credentials were sent, as the server's URL is not https"
            if sections.user.fields and not self._server:
                logger.warning(
                    "%s: the user's credentials are not sent, as the URL is not https",
                    without_credentials(server),
                )
        if access.token_file is None:
            access.renew_at = min(access.renew_at, renewal_time(access.expires, wall()))
        self.context, self._server, self._last = sections.name, server, access
        return access

    async def _identify(self, sections: Sections, access: Access, library: Library, wall: WallClock) -> None:
        """Set the user's credentials. Reuses the last result of an exec plugin while it is valid (``exec.go``)."""
        user, last = sections.user, self._last
        provider, plugin = user.mapping("auth-provider"), user.mapping("exec")
        if provider and (name := provider.get("name")) not in ("oidc", "gcp"):
            raise ConfigError(
                f"auth-provider {name!r} is not supported by Kubernetes any more: use an exec plugin"
            )
        _impersonate(user, access)
        certificate, key = user.pem("client-certificate"), user.pem("client-key")
        if bool(certificate) != bool(key):
            other = "client-key" if certificate else "client-certificate"
            raise ConfigError(f"{certificate or key} is set, but {other} is missing")
        access.tls = replace(access.tls, certificate=certificate, key=key)
        origins = [str(certificate)] if certificate else []
        authorization, origin = await _own_authorization(user, access, wall)
        expires = math.inf
        if authorization:
            origins.append(origin)  # providers and plugins are not used
        elif provider.get("name") == "gcp":
            loader = _loader(library.module("config.kube_config"), user)
            authorization = await in_thread(loader.load_gcp_token)
            origins.append("auth-provider gcp")
        elif provider:
            yaml = library.module("config.kube_config").yaml
            renewing = self._oidc.renew({**mapping(provider, "config")}, user, sections.user_name, yaml, wall)
            authorization = f"Bearer {await shield(renewing, grace=REFRESH_GRACE)}"
            origins.append("auth-provider oidc")
        elif plugin and not certificate:
            cluster = await to_thread(sections.cluster_info) if plugin.get("provideClusterInfo") else {}
            arguments = plugin, os.path.dirname(user.file), cluster
            last_run = last.plugin if last is not None and wall() < last.renew_at else None
            if last_run is None or last_run[0] != arguments:
                last_run = arguments, await run_exec_plugin(*arguments)
            access.plugin = last_run
            credential = last_run[1]
            expires = timestamp(credential.expires)
            origins.append(f"exec plugin {plugin.get('command')}")
            if credential.token:
                authorization = f"Bearer {credential.token}"
            if credential.certificate:
                shown = Pem("clientCertificateData", data=credential.certificate.encode())
                access.tls = replace(
                    access.tls, certificate=shown, key=Pem("clientKeyData", data=credential.key.encode())
                )
                await to_thread(
                    access.tls.check_certificate
                )  # else an unusable one is reused until it expires
        access.is_renewed = bool(access.token_file or provider or access.plugin)
        if authorization:
            access.set_authorization(authorization)
        access.origin = _origin(sections, origins)
        if expires < math.inf:
            access.expires = expires
        if any(pem and pem.path for pem in (certificate, key)):
            # No event announces a renewed certificate, and a server can refuse the old one in many ways.
            access.token_file, access.renew_at = None, wall() + TOKEN_FILE_PERIOD


def kubeconfig_paths(path: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the absolute paths of a kubeconfig's files.

    Args:
        path: The only file; None for ``$KUBECONFIG`` or ``~/.kube/config``.
    """
    named = (os.environ.get("KUBECONFIG") or "~/.kube/config").split(os.pathsep)
    return [
        os.path.abspath(os.path.expanduser(file)) for file in ([os.fspath(path)] if path else named) if file
    ]


async def _own_authorization(user: Section, access: Access, wall: WallClock) -> tuple[str, str]:
    """Return the Authorization header from a token or password, and the field it came from; ``""`` for none."""
    token, file = user.get("token"), user.path("tokenFile")
    name, password = user.get("username"), user.get("password")
    if name or password:
        if token or file:
            raise ConfigError("the user has both a token and a password: remove one of them")
        return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}", "username and password"
    origin = "the token"
    if file:
        access.token_file, access.renew_at = TokenFile(file, user.kept), wall() + TOKEN_FILE_PERIOD
        try:
            token = await to_thread(last_token, access.token_file)
            origin = f"tokenFile {user.kept.describe(file)}"
        except ConfigError:
            if not token:
                raise
    return token and f"Bearer {token}", origin


def _origin(sections: Sections, origins: list[str]) -> str:
    """Return where the credentials came from, for the message of a 401."""
    file = f"kubeconfig {sections.user.kept.describe(sections.user.file)}"
    if not sections.user_name:
        return f"no credentials were sent: context {sections.name!r} in {file} names no user"
    user = f"user {sections.user_name!r} in {file}"
    if not origins:
        return f"no credentials were sent: {user} has none"
    return f"the credentials came from {' and '.join(origins)} of {user}"


def _impersonate(user: Section, access: Access) -> None:
    """Set the impersonation headers that the user's section asks for."""
    if user.fields.get("as-groups") or user.fields.get("as-user-extra"):
        raise ConfigError("as-groups and as-user-extra of the user are not supported")
    if user.get("as-uid") and not user.get("as"):
        raise ConfigError("the user has as-uid without as: set both")
    for name, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
        if user.get(name):
            access.headers[header] = user.get(name)


def _loader(module: Any, user: Section) -> Any:
    """Return the library's own KubeConfigLoader for this user."""
    config = {
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {}}],
        "users": [{"name": "u", "user": user.fields}],
    }
    return module.KubeConfigLoader(config_dict=config, active_context="c")
