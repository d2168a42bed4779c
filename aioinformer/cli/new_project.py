"""NewProject: the files of an operator's project, from templates."""

from __future__ import annotations

import keyword
import re
from importlib import metadata, resources
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from .. import __version__
from .._core.yaml_text import dump_yaml
from ..errors import ConfigError
from ..typed.declaration import Declaration, mistakes_error, plural_of
from .project_names import kind_of, name_mistake

_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")

_FILES = {
    "package_init.py": "%{package}/__init__.py",
    "main.py": "%{package}/main.py",
    "resources.py": "%{package}/resources.py",
    "test_main.py": "tests/test_main.py",
    "pyproject.toml": "pyproject.toml",
    "Makefile": "Makefile",
    "Containerfile": "Containerfile",
    "dockerignore": ".dockerignore",
    "gitignore": ".gitignore",
    "test.yml": ".github/workflows/test.yml",
    "release.yml": ".github/workflows/release.yml",
    "dependabot.yml": ".github/dependabot.yml",
    "README.md": "README.md",
}
"""Where the text of each template goes."""

_WEBHOOK_FILES = {"test_webhooks.py": "tests/test_webhooks.py"}

_CONDITION = re.compile(r"^%if (not )?(\w+)\n(.*?)^%end\n", re.DOTALL | re.MULTILINE)
"""Lines of a template that belong to projects with or without an option."""


class _Template(Template):
    """Has ``%{kind}``, because ``$`` is frequent in Makefiles."""

    delimiter = "%"


class NewProject(msgspec.Struct, frozen=True, kw_only=True):
    """The project of a new operator.

    Args:
        name: The operator's name, and its folder's.
        group: The API group of its custom resource.
        kind: The kind; ``""`` for one that follows from the name.
        webhooks: The operator has admission webhooks.
        helm: The project can make a chart for helm.
        pydantic: Spec and status are pydantic models instead of Structs.

    Raises:
        ConfigError: A value is invalid; the message has all mistakes.
    """

    name: str
    group: str = "example.com"
    kind: str = ""
    webhooks: bool = False
    helm: bool = False
    pydantic: bool = False

    def __post_init__(self) -> None:
        mistakes = [name_mistake(self.name)]
        if self.kind or not mistakes[0]:
            msgspec.structs.force_setattr(self, "kind", self.kind or kind_of(self.name))
            mistakes.append(self._kind_mistake())
        if not any(mistakes):
            declaration = Declaration(
                class_name=self.kind, group=self.group, version="v1", kind=self.kind, plural=self.plural
            )
            mistakes += declaration.mistakes()
        if wrong := [mistake for mistake in mistakes if mistake]:
            raise mistakes_error("the project", wrong)

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return self.name.replace("-", "_")

    @property
    def plural(self) -> str:
        """The plural of the kind, in paths."""
        return plural_of(self.kind)

    @property
    def command(self) -> str:
        """The command that writes the same project."""
        options = [f" --{option}" for option in ("webhooks", "helm", "pydantic") if getattr(self, option)]
        return f"aioinformer init {self.name} --group {self.group} --kind {self.kind}{''.join(options)}"

    def write(self, folder: Path) -> None:
        """Write the files into a folder, which is created.

        Raises:
            ConfigError: The folder is not empty, or cannot be written.
        """
        values = {
            "name": self.name,
            "package": self.package,
            "group": self.group,
            "kind": self.kind,
            "plural": self.plural,
            "version": __version__,
            "command": self.command,
        }
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise ConfigError(
                    f"{folder} exists and is not an empty folder: choose another name, or remove it"
                )
            for name, path in self._files().items():
                target = folder / _Template(path).substitute(values)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_Template(self._template(name)).substitute(values), encoding="utf-8")
            (folder / "example.yaml").write_text(dump_yaml([self._example()]), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot write the project into {folder}: {error.strerror}") from error

    def _files(self) -> dict[str, str]:
        return {**_FILES, **(_WEBHOOK_FILES if self.webhooks else {})}

    def _template(self, name: str) -> str:
        """Return the lines of a template that belong to this project."""
        folder = resources.files("aioinformer.cli").joinpath("templates")
        text = folder.joinpath(f"{name}.tmpl").read_text(encoding="utf-8")
        return _CONDITION.sub(self._choose, text)

    def _choose(self, condition: re.Match[str]) -> str:
        negation, option, lines = condition.groups()
        return lines if getattr(self, option) is (negation is None) else ""

    def _example(self) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": self.kind,
            "metadata": {"name": "hello", "namespace": "default"},
            "spec": {"message": "Hello, world"},
        }

    def _kind_mistake(self) -> str:
        if not _KIND.fullmatch(self.kind) or keyword.iskeyword(self.kind):
            return (
                "the kind must be letters and digits and begin with a capital letter, like 'Website', not "
                f"{self.kind!r}: pass --kind"
            )
        code = (self._template(name) for name in self._files() if name.endswith(".py"))
        if any(re.search(rf"\b{self.kind}\b", text) for text in code):
            return (
                f"the kind {self.kind!r} is a name that the project's code uses already: pass another --kind"
            )
        return ""


def find_origin() -> str:
    """Return the URL of the folder or file that aioinformer was installed from; "" if it is from a package index."""
    try:
        text = metadata.distribution("aioinformer").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    url = str(msgspec.json.decode(text or "{}").get("url", ""))
    return url if url.startswith("file:") else ""
