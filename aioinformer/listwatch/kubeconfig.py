"""A kubeconfig, read by the library, with what it leaves undone."""

from __future__ import annotations

import base64
import math
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checks import require_flag
from ..errors import ConfigError
from ..tasks import with_grace
from .exec_plugin import ExecCredential, run_exec_plugin
from .libraries import Library, in_thread, to_thread
from .oidc import refreshed
from .sources import (
    TOKEN_FILE_PERIOD,
    Access,
    Wall,
    check_url,
    read_token,
    renewal_time,
    timestamp,
    without_credentials,
)

REFRESH_GRACE = 5.0
"""Seconds that a refresh may go on for whose request was cancelled: the old refresh-token may be of no use by then."""


@dataclass(slots=True, eq=False)
class KubeConfig:
    """A context of a kubeconfig, the same one for good: where that leads elsewhere later is an error.

    The library reads clusters, certificates and passwords. What it never has anew, or not safely, is put into the
    user's section before it sees it, as a plain token or certificate: token files, what exec plugins give, and OIDC.

    Args:
        context: None for what is the current one when this is first loaded.
        path: None for ``$KUBECONFIG``, which may name several files, else ``~/.kube/config``.
    """

    context: str | None = None
    path: str | os.PathLike[str] | None = None
    is_renewable: bool = field(default=True, init=False)
    _server: str = field(default="", init=False)

    async def load(self, library: Library, wall: Wall) -> Access:
        if self.path:
            paths = [os.fspath(self.path)]
        else:
            paths = (os.environ.get("KUBECONFIG") or "~/.kube/config").split(os.pathsep)
        module = library.module("config.kube_config")
        what = f"kubeconfig {os.pathsep.join(paths)}"
        try:
            merged = await to_thread(_read, module, paths, self.context)
            what += f", context {self.context}" if self.context else ", current context"
            return await self._load(module, library, merged, wall)
        except ConfigError as error:
            raise ConfigError(f"{what}: {error}") from error
        except Exception as error:  # a malformed file ends in whatever its reader stumbled over
            raise ConfigError(f"{what}: {error or type(error).__name__}") from error

    async def _load(self, module: Any, library: Library, merged: Any, wall: Wall) -> Access:
        sections = _Sections(module, merged, self.context)
        server = str(sections.cluster["server"]).rstrip("/")
        check_url(server)
        if self._server and server != self._server:
            raise ConfigError(
                f"the server is {without_credentials(server)} now, which nothing is sent to by a client that began "
                f"with {without_credentials(self._server)}: make another one"
            )
        access = Access(library.configuration(), namespace=sections.namespace)
        try:
            expires = await self._fill_in(sections, access, module.yaml, wall)
            loader = module.KubeConfigLoader(
                config_dict=merged, active_context=sections.name, config_base_path=None
            )
            try:
                await in_thread(lambda: loader.load_and_set(access.configuration))
            except module.ConfigException as error:
                raise ConfigError(f"{sections.file_named_in(str(error))}{error}") from error
            authorization = access.configuration.api_key.get("BearerToken")
            if authorization is not None:
                access.set_authorization(authorization)
        except BaseException:
            access.clean_up()
            raise
        if expires < math.inf:
            access.expires = expires
        if access.token_file is None:
            access.renew_at = renewal_time(access.expires, wall())
        if sections.user.get("client-certificate") and not sections.user.get("exec"):
            # Whoever renews it says so to nobody, and TLS' refusal of the old one has many faces.
            access.token_file, access.renew_at = None, min(access.renew_at, wall() + TOKEN_FILE_PERIOD)
        self.context, self._server = sections.name, server
        return access

    async def _fill_in(self, sections: _Sections, access: Access, yaml: Any, wall: Wall) -> float:
        """Give the user's section what it only points at; when that expires, if it says so."""
        user, directory = dict(sections.user), sections.directory
        expires = math.inf
        provider, plugin = _mapping(user, "auth-provider"), _mapping(user, "exec")
        if provider and (name := provider.get("name")) not in ("oidc", "gcp"):
            raise ConfigError(
                f"auth-provider {name!r} is none that Kubernetes still knows: use an exec plugin"
            )
        if user.get("as-groups") or user.get("as-user-extra"):
            raise ConfigError("as-groups and as-user-extra of the user are not supported")
        if user.get("as"):
            access.headers["Impersonate-User"] = str(user["as"])
        if user.get("as-uid"):
            if not user.get("as"):
                raise ConfigError("the user has as-uid, and no as whose it is")
            access.headers["Impersonate-Uid"] = str(user["as-uid"])
        if provider.get("name") == "oidc":
            config = _mapping(provider, "config")
            await with_grace(REFRESH_GRACE, _refresh(config, sections, yaml, wall))
            user = {"token": config["id-token"]}
        elif plugin and not provider:
            del user["exec"]
            cluster = await to_thread(sections.cluster_info) if plugin.get("provideClusterInfo") else {}
            credential = await run_exec_plugin(plugin, directory, cluster)
            expires = timestamp(credential.expires)
            if credential.token:
                user["token"] = credential.token
            if credential.certificate:
                user |= _write(credential, access)
        elif user.get("tokenFile") and not provider:
            access.token_file = os.path.join(directory, str(user["tokenFile"]))
            access.renew_at = wall() + TOKEN_FILE_PERIOD
            user["token"] = await to_thread(read_token, access.token_file)
        for name in ("client-certificate", "client-key"):
            if user.get(name):  # the library would look beside the file that the cluster is in
                user[name] = os.path.join(directory, str(user[name]))
        sections.replace_user(user)
        return expires


class _Sections:
    """The sections of a merged kubeconfig that a context names."""

    def __init__(self, module: Any, merged: Any, context: str | None) -> None:
        self._module = module
        self._merged = merged
        self.name = context or merged.value.get("current-context")
        if not self.name:
            raise ConfigError("no context is given, and none is the current one")
        self._context = merged["contexts"].get_with_name(self.name, safe=True)
        if self._context is None:
            raise ConfigError(f"among its contexts there is no {self.name!r}{_if_path(context)}")
        fields = self._context.value.get("context") or {}
        self.namespace = str(fields.get("namespace") or "default")
        self._cluster_name = fields.get("cluster")
        self.cluster = self._section("clusters", self._cluster_name, "cluster")
        if not self.cluster.get("server"):
            raise ConfigError(f"the cluster of context {self.name!r} has no server")
        insecure = "insecure-skip-tls-verify"
        require_flag(f"{insecure} of cluster {self._cluster_name!r}", self.cluster.get(insecure) or False)
        self.user_name = fields.get("user") or ""
        self.user = self._section("users", self.user_name, "user")

    @property
    def user_file(self) -> str:
        """What the user's section is in."""
        node = self._node("users", self.user_name) or self._context
        return os.path.abspath(str(node.path))

    @property
    def directory(self) -> str:
        """Of the file that the user's section is in."""
        return os.path.dirname(self.user_file)

    def cluster_info(self) -> dict[str, Any]:
        """The cluster's section as a plugin is told it, which reads no kubeconfig (``ConfigToExecCluster``). Blocks."""
        info = dict(self.cluster)
        path = info.get("certificate-authority")
        if path and not info.get("certificate-authority-data"):
            directory = os.path.dirname(os.path.abspath(str(self._node("clusters", self._cluster_name).path)))
            info["certificate-authority-data"] = base64.b64encode(Path(directory, path).read_bytes()).decode()
        for extension in info.get("extensions") or ():
            if extension["name"] == "client.authentication.k8s.io/exec":
                info["config"] = extension["extension"]
        return info

    def replace_user(self, user: Mapping[str, Any]) -> None:
        """Let the library see this as the user's section. The files are left alone."""
        node = self._node("users", self.user_name)
        name = self.user_name or "aioinformer-nobody"
        users = self._merged.value["users"]
        replacement = self._module.ConfigNode(
            name, {"name": name, "user": dict(user)}, node.path if node else self._context.path
        )
        self._merged.value["users"] = [*(other for other in users if other is not node), replacement]
        if not self.user_name:
            context = {**(self._context.value.get("context") or {}), "user": name}
            contexts = self._merged.value["contexts"]
            named = self._module.ConfigNode(
                self._context.name, {**self._context.value, "context": context}, self._context.path
            )
            self._merged.value["contexts"] = [
                *(other for other in contexts if other is not self._context),
                named,
            ]

    def file_named_in(self, complaint: str) -> str:
        """What the file is that the library complains of, which says its path alone."""
        for section, name in (
            (self.cluster, "certificate-authority"),
            (self.user, "client-certificate"),
            (self.user, "client-key"),
        ):
            if section.get(name) and complaint.endswith(os.path.normpath(section[name])):
                return f"{name}: "
        return ""

    def _section(self, kind: str, name: str | None, key: str) -> Mapping[str, Any]:
        node = self._node(kind, name)
        if node is None and name:
            raise ConfigError(
                f"context {self.name!r} names the {key} {name!r}, which is not among the {kind}"
            )
        return _mapping(node.value, key) if node is not None else {}

    def _node(self, kind: str, name: str | None) -> Any:
        return self._merged[kind].get_with_name(name, safe=True) if name else None


def _mapping(section: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section within a section; an empty one where there is none."""
    found = section.get(name) or {}
    if not isinstance(found, dict):
        raise ConfigError(f"{name} must be a section of its own, not a {type(found).__name__}")
    return found


async def _refresh(config: dict[str, Any], sections: _Sections, yaml: Any, wall: Wall) -> None:
    """Have a good OIDC id-token, and write down what it was had for: a refresh-token may be good for one use only."""
    new = await refreshed(config, sections.directory, wall)
    if new is not None:
        config.update(new)
        await to_thread(_write_down, yaml, sections.user_file, sections.user_name, new)


def _write_down(yaml: Any, path: str, user_name: str, new: Mapping[str, str]) -> None:
    """Change these values of an OIDC user in the file as it is by now. Blocks."""
    path = os.path.realpath(path)
    written = yaml.safe_load(Path(path).read_text())
    for user in (written or {}).get("users") or ():
        if user["name"] == user_name and "auth-provider" in user["user"]:
            user["user"]["auth-provider"].setdefault("config", {}).update(new)
            break
    else:
        return  # somebody has logged out, or in otherwise
    text = yaml.safe_dump(written, default_flow_style=False)
    try:
        _replace(path, text)
    except OSError:  # mounted by itself, or in a directory that is not ours
        Path(path).write_text(text)


def _replace(path: str, text: str) -> None:
    """Put a file with this text in the place of one, of the same owner and mode: nobody reads half of it. Blocks."""
    old = os.stat(path)
    descriptor, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}-")
    try:
        with open(descriptor, "w") as file:
            file.write(text)
        if hasattr(os, "chown"):
            os.chown(new, old.st_uid, old.st_gid)
        os.chmod(new, stat.S_IMODE(old.st_mode))
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def _write(credential: ExecCredential, access: Access) -> dict[str, str]:
    """Put a client certificate into files, which the SSLContext is made from, and say where."""
    files = tempfile.TemporaryDirectory(prefix="aioinformer-")  # only its owner may read it
    access.clean_up = files.cleanup
    certificate, key = Path(files.name, "client.crt"), Path(files.name, "client.key")
    certificate.write_text(credential.certificate)
    key.write_text(credential.key)
    return {"client-certificate": str(certificate), "client-key": str(key)}


def _if_path(context: str | None) -> str:
    """What is to be said where a path was given for a context, which is what comes first; else ``""``. Blocks."""
    given = str(context or "")
    if "/" not in given and not os.path.isfile(given):
        return ""
    return f"; {given!r} looks like a path: from_kubeconfig(path={given!r})"


def _read(module: Any, paths: list[str], context: str | None) -> Any:
    """The files, merged as kubectl does: of each name, and of what is the current context, the first one. Blocks."""
    named = [os.path.expanduser(path) for path in paths if path]
    files = {path: module.yaml.safe_load(Path(path).read_text()) for path in named if os.path.exists(path)}
    if not files:
        raise ConfigError(f"no such file{_if_path(context)}")
    if all(config is None for config in files.values()):
        raise ConfigError("the file is empty")
    merged: dict[str, Any] = {"current-context": "", "clusters": [], "contexts": [], "users": []}
    for path, config in files.items():
        try:
            _merge(module, merged, path, config or {})
        except (TypeError, AttributeError, KeyError) as error:  # of what it takes for a mapping
            raise ConfigError(f"{f'{path}: ' * (len(files) > 1)}the file is no kubeconfig") from error
    return module.ConfigNode("kubeconfig", merged)


def _merge(module: Any, merged: dict[str, Any], path: str, config: Any) -> None:
    merged["current-context"] = merged["current-context"] or config.get("current-context")
    for kind in ("clusters", "contexts", "users"):
        for section in config.get(kind) or ():
            if all(section["name"] != other["name"] for other in merged[kind]):
                merged[kind].append(module.ConfigNode(f"{path}/{kind}", section, path))
