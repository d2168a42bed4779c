"""The files of a kubeconfig, merged as kubectl does, and the sections that a context names."""

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
"""What the byte order mark of a file says (go-yaml's reader)."""

_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)

_QUOTED = re.compile(r"'[^'<][^']{2,}'")


@dataclass(frozen=True, slots=True)
class Section:
    """A cluster, context or user.

    Attributes:
        fields: Those that say something: what is null or ``""`` is as good as absent, as for kubectl.
        file: What it was read from.
        kept: Keeps the last content of the files that it names.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    kept: KeptFiles = field(default_factory=KeptFiles)

    def get(self, name: str) -> str:
        """A field that is text; ``""`` where there is none.

        Raises:
            ConfigError: It is something else: YAML makes a number of ``0123``, and another one than was meant.
        """
        found = self.fields.get(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise ConfigError(f"{name} must be text, not a {type(found).__name__}: put it in quotes")
        return found

    def path(self, name: str) -> str:
        """A field that names a file, from where the section's own file is; ``""`` where there is none."""
        found = self.get(name)
        return os.path.join(os.path.dirname(self.file), native(found)) if found else ""

    def pem(self, name: str) -> Pem | None:
        """What a field and its ``-data``, which comes first, say.

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
        """A section within it; an empty one where there is none.

        Raises:
            ConfigError: It is no section.
        """
        return mapping(self.fields, name)


@dataclass(frozen=True, slots=True)
class Files:
    """What the files of a kubeconfig say: of each name, and of what is the current context, the first one."""

    current: str
    sections: Mapping[str, Mapping[str, Section]]


class Sections:
    """The sections that a context names.

    Args:
        files: Where it is.
        context: Its name; None for the current one.

    Raises:
        ConfigError: They are not there, or cannot be what they say.
    """

    def __init__(self, files: Files, context: str | None) -> None:
        self._files = files
        self.name = context or files.current
        if not self.name:
            raise ConfigError("no context is given, and none is the current one")
        found = files.sections["contexts"].get(self.name)
        if found is None:
            raise ConfigError(f"among its contexts there is no {self.name!r}{if_path(context)}")
        self._context = found
        self.namespace = found.get("namespace") or "default"
        self.cluster_name, self.user_name = found.get("cluster"), found.get("user")
        self.cluster = self._section("clusters", self.cluster_name)
        self.user = self._section("users", self.user_name)
        if not self.cluster.get("server"):
            raise ConfigError(f"the cluster of context {self.name!r} has no server")
        is_insecure = self.cluster.fields.get("insecure-skip-tls-verify", False)
        require_flag(f"insecure-skip-tls-verify of cluster {self.cluster_name!r}", is_insecure)
        authorities = self.cluster.pem("certificate-authority")
        if is_insecure and authorities:
            raise ConfigError(
                f"{authorities} is of no use beside insecure-skip-tls-verify: leave one of them out"
            )
        self.tls = TLS(authorities, is_verified=not is_insecure)

    def cluster_info(self) -> dict[str, Any]:
        """The cluster's section as a plugin is told it, which reads no kubeconfig (``ConfigToExecCluster``). Blocks.

        Raises:
            ConfigError: The authority cannot be read.
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
        found = self._files.sections[kind].get(name)
        if found is None:
            key = _KINDS[kind]
            raise ConfigError(
                f"context {self.name!r} names the {key} {name!r}, which is not among the {kind}"
            )
        return found


class _EmptyFileError(ConfigError):
    """A file says nothing: beside others that is allowed."""


def read_files(yaml: Any, paths: Sequence[str], context: str | None, kept: KeptFiles | None = None) -> Files:
    """The files of a kubeconfig, those that there are. Blocks.

    Args:
        yaml: The library's.
        paths: Of the files.
        context: What was given for one, for messages.
        kept: Keeps what each file said last, for when it is gone.

    Raises:
        ConfigError: There is none, or one is no kubeconfig.
    """
    kept = kept or KeptFiles()
    there = [path for path in paths if kept.has(path) or os.path.exists(path)]
    if not there:
        raise ConfigError(f"no such file{if_path(context)}")
    found: list[Files] = []
    for path in there:
        try:
            found.append(kept.read_or_keep("kubeconfig", path, partial(_file, yaml, path, kept)))
        except _EmptyFileError:
            continue
        except (ConfigError, OSError) as error:
            raise ConfigError(f"{path}: {error}" if len(paths) > 1 else str(error)) from None
    if not found:
        raise ConfigError("the file is empty")
    current = next((file.current for file in found if file.current), "")
    merged = {kind: dict(ChainMap(*(dict(file.sections[kind]) for file in found))) for kind in _KINDS}
    return Files(current, merged)


def mapping(section: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section within a section; an empty one where there is none.

    Raises:
        ConfigError: It is no section.
    """
    found = section.get(name) or {}
    if not isinstance(found, dict):
        raise ConfigError(f"{name} must be a section of its own, not a {type(found).__name__}")
    return found


def if_path(context: str | None) -> str:
    """What is to be said where a path was given for a context, which is what comes first; else ``""``. Blocks."""
    given = str(context or "")
    if "/" not in given and not os.path.isfile(given):
        return ""
    return f"; {given!r} looks like a path: from_kubeconfig(path={given!r})"


def native(text: str) -> str:
    """The text with which this process names a file, or tells another one what a kubeconfig says: as UTF-8."""
    return os.fsdecode(text.encode())


def decoded(content: bytes) -> tuple[str, bytes, str]:
    """The text of a kubeconfig, its byte order mark and its encoding: UTF-8 unless the mark says UTF-16.

    Raises:
        ConfigError: It is in another encoding.
    """
    mark = next((mark for mark in _ENCODINGS if content.startswith(mark)), b"")
    encoding = _ENCODINGS.get(mark, "utf-8")
    try:
        return content[len(mark) :].decode(encoding), mark, encoding
    except UnicodeDecodeError as error:
        says = f"it is not {encoding.upper()}, at byte {len(mark) + error.start}: save it as UTF-8"
        raise ConfigError(says) from None


def without_tabs(text: str) -> str:
    """The text, character for character, with spaces for the tabs that kubectl takes and PyYAML does not.

    They are all tabs of JSON, and those that indent lines of what begins with a brace as well.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        return _INDENT.sub(lambda indent: indent[0].replace("\t", " "), text)
    return text.replace("\t", " ")  # within its strings there are none


def _file(yaml: Any, path: str, kept: KeptFiles, content: bytes) -> Files:
    """What one file says."""
    config = _parsed(yaml, content)
    if config is None:
        raise _EmptyFileError("the file is empty")
    sections = {kind: dict[str, Section]() for kind in _KINDS}
    try:
        current = str(config.get("current-context") or "")
        for kind, key in _KINDS.items():
            for entry in config.get(kind) or ():
                fields = mapping(entry, key)
                says = {name: value for name, value in fields.items() if value is not None and value != ""}
                sections[kind].setdefault(str(entry.get("name") or ""), Section(says, path, kept))
    except (TypeError, AttributeError, KeyError):  # of what it takes for a mapping
        raise ConfigError("the file is no kubeconfig") from None
    return Files(current, sections)


def _parsed(yaml: Any, content: bytes) -> Any:
    """What a file says. Errors that parsers raise quote its lines, which may hold a token: theirs are not kept."""
    text, _, _ = decoded(content)
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            pass  # YAML may begin so
    try:
        return yaml.safe_load(without_tabs(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "somewhere"
        problem = _QUOTED.sub("…", getattr(error, "problem", None) or type(error).__name__)
    except (
        ValueError,
        ArithmeticError,
        AttributeError,
        TypeError,
    ) as error:  # of a number or date that is none
        where, problem = "somewhere", f"a value that is none ({type(error).__name__})"
    raise ConfigError(f"it is not YAML: {where}: {problem}")
