"""Read and merge the files of a kubeconfig as kubectl does, and find the sections that a context names."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import os
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .._core.checks import require_flag
from ..errors import ConfigError
from .kept_files import KeptFiles
from .tls import TLS, Pem

_KINDS = {"clusters": "cluster", "contexts": "context", "users": "user"}

_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Encodings by byte order mark (go-yaml's reader)."""

_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)

_QUOTED = re.compile(r"'[^'<][^']{2,}'")


@dataclass(frozen=True, slots=True)
class Section:
    """A cluster, context or user of a kubeconfig.

    Attributes:
        fields: The fields without those that are null or ``""``, which kubectl treats as absent.
        file: The file that it was read from.
        kept: The last content of the files that it names.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    kept: KeptFiles = field(default_factory=KeptFiles)

    def get(self, name: str) -> str:
        """Return a text field; ``""`` if it is absent.

        Raises:
            ConfigError: The field is not text. YAML reads ``0123`` as the number 83, for example.
        """
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be text, not a {type(value).__name__}: put it in quotes")
        return value

    def path(self, name: str) -> str:
        """Return the path in a field, relative to the section's own file; ``""`` if the field is absent."""
        value = self.get(name)
        return os.path.join(os.path.dirname(self.file), native(value)) if value else ""

    def pem(self, name: str) -> Pem | None:
        """Return the certificates or key in the field ``<name>-data``, or else in the file that ``<name>`` names.

        Raises:
            ConfigError: The data is not base64.
        """
        if data := self.get(f"{name}-data"):
            try:
                return Pem(f"{name}-data", data=base64.b64decode("".join(data.split()), validate=True))
            except binascii.Error as error:
                raise ConfigError(f"{name}-data is not base64: {error}") from error
        path = self.path(name)
        return Pem(name, path, kept=self.kept) if path else None

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a nested mapping; an empty one if it is absent.

        Raises:
            ConfigError: The field is not a mapping.
        """
        return mapping(self.fields, name)


@dataclass(frozen=True, slots=True)
class Files:
    """The merged files of a kubeconfig. For each name, and for the current context, the first file wins."""

    current: str
    sections: Mapping[str, Mapping[str, Section]]


class Sections:
    """The sections that a context names.

    Args:
        files: The kubeconfig.
        context: The context's name; None for the current one.

    Raises:
        ConfigError: A section is missing or invalid.
    """

    def __init__(self, files: Files, context: str | None) -> None:
        self._files = files
        self.name = context or files.current
        if not self.name:
            raise ConfigError("no context is given, and the kubeconfig has no current-context")
        section = files.sections["contexts"].get(self.name)
        if section is None:
            raise ConfigError(f"among its contexts there is no {self.name!r}{path_hint(context)}")
        self._context = section
        self.namespace = section.get("namespace") or "default"
        self.cluster_name, self.user_name = section.get("cluster"), section.get("user")
        self.cluster = self._section("clusters", self.cluster_name)
        self.user = self._section("users", self.user_name)
        if not self.cluster.get("server"):
            raise ConfigError(f"the cluster of context {self.name!r} has no server")
        is_insecure = self.cluster.fields.get("insecure-skip-tls-verify", False)
        require_flag(f"insecure-skip-tls-verify of cluster {self.cluster_name!r}", is_insecure)
        authorities = self.cluster.pem("certificate-authority")
        if is_insecure and authorities:
            raise ConfigError(
                f"{authorities} has no effect together with insecure-skip-tls-verify: remove one of them"
            )
        self.tls = TLS(authorities, is_verified=not is_insecure)

    def cluster_info(self) -> dict[str, Any]:
        """Return the cluster's fields for an exec plugin, which reads no kubeconfig (``ConfigToExecCluster``). Blocks.

        Raises:
            ConfigError: The certificate authority cannot be read.
        """
        info = dict(self.cluster.fields)
        if self.tls.authorities:
            info["certificate-authority-data"] = base64.b64encode(self.tls.authorities.read()).decode()
        for extension in info.get("extensions") or ():
            if extension["name"] == "client.authentication.k8s.io/exec":
                info["config"] = extension["extension"]
        return info

    def _section(self, kind: str, name: str) -> Section:
        if not name:
            return Section(file=self._context.file, kept=self._context.kept)
        section = self._files.sections[kind].get(name)
        if section is None:
            key = _KINDS[kind]
            raise ConfigError(
                f"context {self.name!r} names the {key} {name!r}, which is not among the {kind}"
            )
        return section


class _EmptyFileError(ConfigError):
    """A file is empty, which is allowed if there are others."""


def read_files(yaml: Any, paths: Sequence[str], context: str | None, kept: KeptFiles | None = None) -> Files:
    """Read and merge the files of a kubeconfig that exist. Blocks.

    Args:
        yaml: The library's yaml module.
        paths: The files.
        context: The context that the user asked for, for messages.
        kept: The last content of each file, for a file that is gone.

    Raises:
        ConfigError: No file exists, or one is not a kubeconfig.
    """
    kept = kept or KeptFiles()
    existing = [path for path in paths if kept.has(path) or os.path.exists(path)]
    if not existing:
        hint = path_hint(context) or "; set $KUBECONFIG, or name the server by its URL"
        raise ConfigError(f"no such file{hint}")
    files: list[Files] = []
    for path in existing:
        try:
            files.append(kept.read_or_keep("kubeconfig", path, partial(_file, yaml, path, kept)))
        except _EmptyFileError:
            continue
        except (ConfigError, OSError) as error:
            raise ConfigError(f"{path}: {error}" if len(paths) > 1 else str(error)) from None
    if not files:
        raise ConfigError("the file is empty")
    current = next((file.current for file in files if file.current), "")
    merged = {kind: dict(ChainMap(*(dict(file.sections[kind]) for file in files))) for kind in _KINDS}
    return Files(current, merged)


def mapping(section: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a mapping within a section; an empty one if it is absent.

    Raises:
        ConfigError: The field is not a mapping.
    """
    value = section.get(name) or {}
    if not isinstance(value, dict):
        raise ConfigError(f"{name} must be a section of its own, not a {type(value).__name__}")
    return value


def path_hint(context: str | None) -> str:
    """Return the end of an error if a path was passed as the context, else ``""``. Blocks."""
    given = str(context or "")
    if "/" not in given and not os.path.isfile(given):
        return ""
    return f"; {given!r} looks like a path: use from_kubeconfig(path={given!r})"


def native(text: str) -> str:
    """Return a text of a kubeconfig as a file name, argument or variable that is passed to the system as UTF-8."""
    return os.fsdecode(text.encode())


def decode(content: bytes) -> tuple[str, bytes, str]:
    """Return the text of a kubeconfig, its byte order mark and its encoding: UTF-8 unless the mark says UTF-16.

    Raises:
        ConfigError: The content is in another encoding.
    """
    mark = next((mark for mark in _ENCODINGS if content.startswith(mark)), b"")
    encoding = _ENCODINGS.get(mark, "utf-8")
    try:
        return content[len(mark) :].decode(encoding), mark, encoding
    except UnicodeDecodeError as error:
        says = f"it is not {encoding.upper()}, at byte {len(mark) + error.start}: save it as UTF-8"
        raise ConfigError(says) from None


def without_tabs(text: str) -> str:
    """Replace the tabs that kubectl accepts and PyYAML rejects by spaces, one for each.

    Replaces all tabs in JSON. In other text that begins with a brace, replaces those at the beginning of lines.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        return _INDENT.sub(lambda indent: indent[0].replace("\t", " "), text)
    return text.replace("\t", " ")  # strings in JSON contain no tabs


def _file(yaml: Any, path: str, kept: KeptFiles, content: bytes) -> Files:
    """Return the parsed content of one file."""
    config = _parse(yaml, content)
    if config is None:
        raise _EmptyFileError("the file is empty")
    sections = {kind: dict[str, Section]() for kind in _KINDS}
    try:
        current = str(config.get("current-context") or "")
        for kind, key in _KINDS.items():
            for entry in config.get(kind) or ():
                fields = mapping(entry, key)
                present = {name: value for name, value in fields.items() if value is not None and value != ""}
                sections[kind].setdefault(str(entry.get("name") or ""), Section(present, path, kept))
    except (TypeError, AttributeError, KeyError):  # a value where a mapping should be
        raise ConfigError("the file is not a kubeconfig") from None
    return Files(current, sections)


def _parse(yaml: Any, content: bytes) -> Any:
    """Parse a file as JSON or YAML. Parser errors are not chained: they quote lines that may hold a token."""
    text, _, _ = decode(content)
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            pass  # YAML can begin with a brace, too
    try:
        return yaml.safe_load(without_tabs(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "somewhere"
        problem = _QUOTED.sub("…", getattr(error, "problem", None) or type(error).__name__)
    except (ValueError, ArithmeticError, AttributeError, TypeError) as error:  # an invalid number or date
        where, problem = "somewhere", f"an invalid value ({type(error).__name__})"
    raise ConfigError(f"it is not YAML: {where}: {problem}")
